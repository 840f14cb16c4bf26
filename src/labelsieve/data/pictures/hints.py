"""Says how to fix a table that leads to no pictures: what to write in it, or which option to add."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from labelsieve.data.pictures import columns as usual
from labelsieve.data.pictures.decode import SUFFIXES
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.tables import open_table
from labelsieve.errors import ToolError

NOT_TRAINED = ("sample_submission", "samplesubmission", "test")  # so begin the names of tables to fill in or to measure on
MOST = 20  # folders that are looked into, and tables that are named
FIRST = (".png", ".jpg", ".jpeg")


def is_trained_on(table: Path) -> bool:
    """Whether a table may be meant for training, by its name."""
    return not table.stem.lower().startswith(NOT_TRAINED)


def found_at(root: Path, name: str, folders: Sequence[str] = ()) -> tuple[str, str] | None:
    """The folder below `root` ("" for itself) and the ending with which `name` is a file; None where it is none."""
    known = (*FIRST, *sorted(SUFFIXES - set(FIRST)))
    for folder in ("", *folders[:MOST]):
        for ending in ("", *known, *(ending.upper() for ending in known)):
            if name and os.path.isfile(os.path.join(root, folder, name + ending)):  # noqa: PTH113, PTH118 - any text may come
                return folder, ending
    return None


def about_tables(path: Path, tables: Sequence[Path], folders: Sequence[str], options: PictureOptions) -> str | None:
    """What the tables in the folder `path` hold, and how one can be used with the pictures in `folders`; None without tables."""
    columns = {}
    for file in tables[:MOST]:
        try:
            columns[file] = open_table(file, options.encoding).columns
        except ToolError:
            continue
    for file in filter(is_trained_on, columns):
        said = _usable(path, file, columns[file], folders, options)
        if said is not None:
            return said
    if not columns:
        return None
    listed = "; ".join(f"{file.name} has the columns {', '.join(names)}" for file, names in columns.items())
    first = next(filter(is_trained_on, columns), None)
    if first is None:
        return f"{listed}, and by its name is not for training; to train on a table all the same, give it instead of its folder"
    words = f"labelsieve train {shlex.quote(str(first))} --image-column COLUMN --label-column COLUMN"
    return f"{listed}; if one names pictures and labels, say so: {words} --root FOLDER"


def _usable(path: Path, file: Path, names: Sequence[str], folders: Sequence[str], options: PictureOptions) -> str | None:
    """For a table with labels: which column names pictures, all but for an ending or a folder."""
    if options.label_column not in names and not any(name.lower() in usual.LABEL for name in names):
        return None
    for name in names:
        try:
            values = open_table(file, options.encoding).read([name])[0]
        except ToolError:
            return None
        first = str(values[0]) if values else ""
        place = found_at(path, first, folders)
        if place is None:
            continue
        folder, ending = place
        command = f"labelsieve train {shlex.join([str(file), '--image-column', name, '--root', str(path / folder)])} --out RUN"
        if not ending:
            return f'{file.name} names pictures in the column "{name}": {command}'
        there = (Path(folder) / f"{first}{ending}").as_posix()
        return (
            f'{file.name} names pictures in the column "{name}" without their ending: "{first}" is {there}; add the ending '
            f"{ending} to the column {name}, then: {command}"
        )
    return None
