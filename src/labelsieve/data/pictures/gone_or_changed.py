"""Says which files are gone or changed since a run started: an error, or a note."""

from collections.abc import Sequence
from pathlib import Path

from labelsieve.data.pictures.listing import Listing, readable_name
from labelsieve.data.pictures.memory import Known
from labelsieve.data.pictures.origins import Files
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


def about_changed(listing: Listing, known: Known) -> tuple[str, ...]:
    """A sentence on the files that are not as they were when they were `known` to the run; nothing where there is none.

    By size and time alone, so it is no error: copied files have another time and the same content.
    """
    origin = listing.origin
    if not known or not isinstance(origin, Files) or origin.stamps is None:
        return ()
    now = [(size, time) for size, time in origin.stamps.tolist()]
    rows = [row for row, stamp in enumerate(now) if known.get(origin.full(row), stamp) != stamp]
    if not rows:
        return ()
    what = f"{len(rows):,} picture file{' was' if len(rows) == 1 else 's were'} written anew since the run began"
    first = readable_name(origin.path(rows[0]))
    return (f'{what}, the first is "{first}" of {listing.place}: it goes on with what is in them now, and may end otherwise',)
