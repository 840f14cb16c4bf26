"""Choices made for one table go in, with the path of another; the choices that suit that one come out. Needs no torch."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelsieve.data.pictures.imagefolder import metadata_files
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import recognise
from labelsieve.data.pictures.tables import SUFFIXES, open_table
from labelsieve.runs.config import PicturesConfig
from labelsieve.runs.picture_choices import picture_options

COLUMNS = ("image_column", "label_column", "id_column", "split_column")


def suited_to(path: Path, chosen: PicturesConfig, home: str) -> PicturesConfig:
    """What was `chosen` for the data at `home`, for those at `path`: a column that is not there is found by usual names again.

    A file of labels belongs to one file of vectors only.
    """
    path = path.expanduser()
    if os.path.realpath(path) == os.path.realpath(Path(home).expanduser()):
        return chosen
    chosen = replace(chosen, labels_file=None)
    given = {name: getattr(chosen, name) for name in COLUMNS if getattr(chosen, name)}
    there = set(columns_at(path, picture_options(chosen))) if given else set()
    absent: dict[str, Any] = {name: None for name, column in given.items() if column not in there}
    return replace(chosen, **absent)


def columns_at(path: Path, options: PictureOptions) -> Sequence[str]:
    """The column names of the table at `path`, or of those inside of it; none where there is no table."""
    if path.is_file():
        return _of((path,), options)
    layout = recognise(path, options)
    if layout.kind == "manifest":
        return _of((layout.path,), options)
    if layout.kind == "imagefolder":
        return _of(metadata_files(layout.path).values(), options)
    if layout.kind == "saved dataset":
        return _saved(layout.path)
    return ()


def _of(files: Iterable[Path], options: PictureOptions) -> list[str]:
    tables = [file for file in files if file.suffix.lower() in SUFFIXES]
    return [name for file in tables for name in open_table(file, options.encoding).columns]


def _saved(path: Path) -> list[str]:
    """What is wrong with the files is said where they are read."""
    found: list[str] = []
    for file in sorted(path.glob("**/dataset_info.json")):
        try:
            found += json.loads(file.read_text("utf-8"))["features"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found
