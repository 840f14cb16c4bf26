"""Turns the options chosen for one table into those that suit another table. Needs no torch."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelsieve import doors
from labelsieve.config.schema import Config, override
from labelsieve.data.pictures.listing import SPLIT_NAMES, TRAIN
from labelsieve.data.pictures.manifest import metadata_files
from labelsieve.data.pictures.options import PictureOptions, PictureSettings, named, picture_options
from labelsieve.data.pictures.presence import Known
from labelsieve.data.pictures.recognise import recognise
from labelsieve.data.pictures.stored import LARGEST, shard_files
from labelsieve.data.pictures.tables import SUFFIXES, columns_for, open_table, read_cells
from labelsieve.errors import ToolError

COLUMNS = ("image_column", "label_column", "id_column", "split_column")


def suited_to(path: Path, chosen: PictureSettings, home: str) -> PictureSettings:
    """What was `chosen` for the data at `home`, for those at `path`: a column that is not there is found by usual names again.

    A file of labels belongs to one file of vectors only.
    """
    path = path.expanduser()
    if is_same(path, home):
        return chosen
    chosen = replace(chosen, labels_file=None)
    given = {name: getattr(chosen, name) for name in COLUMNS if getattr(chosen, name)}
    there = set(columns_at(path, picture_options(chosen))) if given else set()
    absent: dict[str, Any] = {name: None for name, column in given.items() if column not in there}
    return replace(chosen, **absent)


def for_data(config: Config, path: Path, said: Mapping[str, Any]) -> Config:
    """A run's choices where they suit the data at `path`, and what was `said` of these, by dotted key."""
    home = config.data.source.partition(":")[2]
    config = override(replace(config, pictures=suited_to(path, config.pictures, home)), said)
    return config if "pictures.root" in said else replace(config, pictures=rooted_for(path, config.pictures, home))


def rooted_for(path: Path, chosen: PictureSettings, home: str, known: Known | None = None) -> PictureSettings:
    """The choices with the root that suits the table at `path`: its own folder comes first.

    What was chosen for the data at `home` counts where only that leads to pictures. Files that a run knows count as there.
    """
    options = picture_options(chosen)
    if options.root is None or is_same(path, home):
        return chosen
    layout = recognise(path, options)
    if layout.kind != "manifest":
        return chosen
    table, own = open_table(layout.path, options.encoding), layout.path.parent
    values = read_cells(table, columns_for(table.columns, options, layout.path, ["image"]))["image"]
    if leads_to_files(values, own, options.outside, known):
        return replace(chosen, root=None)
    if not values or leads_to_files(values, options.root, options.outside, known):  # an empty table is refused by who reads it
        return chosen
    raise ToolError(
        f'{layout.path}: none of its {len(values)} pictures is there; the first is "{values[0]}", looked for below {own}, where '
        f"the table lies, and below {options.root}, the {named('root')}. Write its paths from one of these"
    )


def leads_to_files(paths: Iterable[Any], root: Path, outside: bool, known: Known | None = None) -> bool:
    """Whether any of the paths, from `root`, is a file or was a `known` one; below it, unless it may be `outside`."""
    top = os.path.abspath(root)  # noqa: PTH100 - text is enough to choose; links are looked at when pictures are read
    for path in paths:
        words = (path, path.strip()) if isinstance(path, str) else ()
        places = [os.path.normpath(os.path.join(top, word)) for word in words]  # noqa: PTH118
        inside = [place for place in places if outside or place.startswith(top.rstrip(os.sep) + os.sep)]
        if any(os.path.isfile(place) or place in (known or ()) for place in inside):  # noqa: PTH113
            return True
    return False


def is_same(path: Path, home: str) -> bool:
    return os.path.realpath(path.expanduser()) == os.path.realpath(Path(home).expanduser())


def is_trained_on(path: Path, home: str) -> bool:
    """Whether `path` is the data at `home` themselves, or their training split: the folder of it, or a Parquet file named so."""
    place, top = (Path(os.path.realpath(Path(each).expanduser())) for each in (path, home))
    if not home or place == top or not place.is_relative_to(top):
        return bool(home) and place == top
    *folders, last = (part.lower() for part in place.relative_to(top).parts)
    words = [*folders, *re.split(r"[-_. ]+", last)] if place.is_file() else [*folders, last][:1]
    return next((SPLIT_NAMES[word] for word in words if word in SPLIT_NAMES), None) == TRAIN


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
    if layout.kind == "parquet pictures":
        return _of(shard_files(layout.path)[:1], options)
    return ()


def _of(files: Iterable[Path], options: PictureOptions) -> list[str]:
    tables = [file for file in files if file.suffix.lower() in SUFFIXES]
    return [name for file in tables for name in open_table(file, options.encoding).columns]


def _saved(path: Path) -> list[str]:
    """What is wrong with the files is said where they are read."""
    found: list[str] = []
    for file in sorted(path.glob("**/dataset_info.json")):
        try:
            found += doors.read_json(file, LARGEST, follow=True)["features"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return found
