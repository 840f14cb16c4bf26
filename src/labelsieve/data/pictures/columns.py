"""Finds which column of a table holds what, by the user's choices and usual names."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from labelsieve.data.pictures.decode import SUFFIXES
from labelsieve.data.pictures.options import PictureOptions, named
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
ROLES = {"image": IMAGE, "label": LABEL, "id": ID, "split": SPLIT}
MANY = 8  # columns: a table with more may hold one vector per row


def columns_for(
    columns: Sequence[str], options: PictureOptions, place: Path, needs: Iterable[str], may: Iterable[str] = ()
) -> dict[str, str]:
    """{role: column}: those a table must have, and those it may have, of "image", "label", "id" and "split"."""
    found = {role: needed(columns, getattr(options, f"{role}_column"), ROLES[role], f"{role}_column", place) for role in needs}
    for role in may:
        column = optional(columns, getattr(options, f"{role}_column"), ROLES[role], f"{role}_column", place)
        found |= {} if column is None else {role: column}
    return found


def needed(columns: Sequence[str], given: str | None, usual: Sequence[str], option: str, place: Path) -> str:
    """The given column, else the only usual one; a `UsageError` where there is none or more than one."""
    found = optional(columns, given, usual, option, place)
    if found is None:
        listed = ", ".join(f'"{name}"' for name in columns) or "none"
        raise UsageError(
            f"{place}: no usual column name; name one with {named(option)}. The columns are {listed}{_instead(columns, option)}"
        )
    return found


def _instead(columns: Sequence[str], option: str) -> str:
    """What may be wrong where no column has a usual name."""
    if any(Path(name).suffix.lower() in SUFFIXES for name in columns):
        return ". The first line looks like a row: put a line of names above it, such as path,label"
    if option == "image_column" and len(columns) > MANY:
        return (
            ". Vectors are read as lists in one column of a Parquet file, or as the array features of an .npz: not a column each"
        )
    return ""


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
        raise UsageError(
            f"{place}: the columns {listed} would {'both' if len(found) == 2 else 'all'} do; choose one with {named(option)}"
        )
    if found and list(columns).count(found[0]) > 1:
        raise ToolError(f'{place}: two columns are named "{found[0]}"; rename one')
    return found[0] if found else None
