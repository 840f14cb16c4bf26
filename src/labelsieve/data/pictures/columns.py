"""Which column holds what: the table's column names and the user's choices go in, one name or None comes out."""

from collections.abc import Sequence
from pathlib import Path

from labelsieve.data.pictures.options import named
from labelsieve.errors import ToolError, UsageError, suggest

IMAGE = (
    "path",
    "file",
    "filename",
    "file_name",
    "filepath",
    "file_path",
    "image",
    "image_path",
    "img",
    "img_path",
)
LABEL = ("label", "class", "category", "target", "y", "given_label", "labels", "class_name", "label_name")
ID = ("id", "image_id", "sample_id", "img_id", "uuid", "guid", "key")
SPLIT = ("split", "subset", "partition")


def needed(columns: Sequence[str], given: str | None, usual: Sequence[str], option: str, place: Path) -> str:
    """The given column, else the only usual one; a `UsageError` where there is none or more than one."""
    found = optional(columns, given, usual, option, place)
    if found is None:
        listed = ", ".join(f'"{name}"' for name in columns) or "none"
        raise UsageError(f"{place}: no usual column name; name one with {named(option)}. The columns are {listed}")
    return found


def optional(columns: Sequence[str], given: str | None, usual: Sequence[str], option: str, place: Path) -> str | None:
    """The same, but None where there is none; "" asks for none."""
    if given == "":
        return None
    if given is not None:
        if given not in columns:
            raise UsageError(
                f'{place}: there is no column "{given}"{suggest(given, columns)}; the columns are {", ".join(columns)}'
            )
        found = [given]
    else:
        found = [name for name in columns if name.strip().lower() in usual]
    if len(found) > 1:
        listed = " and ".join(f'"{name}"' for name in found)
        raise UsageError(f"{place}: the columns {listed} would both do; choose one with {named(option)}")
    if found and list(columns).count(found[0]) > 1:
        raise ToolError(f'{place}: two columns are named "{found[0]}"; rename one')
    return found[0] if found else None
