"""Listings with files that are gone since a run began go in; what is said of these comes out: an error, or a note."""

from collections.abc import Sequence
from pathlib import Path

from labelsieve.data.pictures.listing import Listing, readable_name
from labelsieve.errors import ToolError


def lost(listing: Listing, rows: Sequence[int], cache: Path) -> ToolError:
    """For pictures that are gone and that the cache cannot give."""
    names = ", ".join(f'"{readable_name(listing.origin.path(row))}"' for row in rows[:3])
    more = f" and {len(rows) - 3:,} more" if len(rows) > 3 else ""
    return ToolError(
        f"{listing.place}: {len(rows):,} of the pictures that the run began with {'is' if len(rows) == 1 else 'are'} gone, and "
        f"not decoded in {cache}: {names}{more}. Put them back, or start a new run without them, with --out elsewhere"
    )


def about_gone(listing: Listing, cache: Path) -> tuple[str, ...]:
    """A sentence on the files that are gone and were taken from the cache; nothing where there is none."""
    rows = listing.gone_rows()
    if not rows:
        return ()
    first = readable_name(listing.origin.path(rows[0]))
    what = f"{len(rows):,} picture file{' is' if len(rows) == 1 else 's are'} gone since the run began"
    return (f'{what}, the first is "{first}" of {listing.place}: taken as decoded in {cache}',)
