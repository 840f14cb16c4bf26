"""Lists tables of paths and labels: one table, or the metadata files of a Hugging Face imagefolder."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.pictures import tables as usual
from labelsieve.data.pictures.folders import holds_picture, visible_folders
from labelsieve.data.pictures.listing import (
    MISSING,
    SPLIT_NAMES,
    SPLITS,
    TRAIN,
    Labels,
    Listing,
    arranged,
    name_labels,
    readable_name,
)
from labelsieve.data.pictures.options import PictureOptions, named
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.paths import as_files_are_named, is_web_address, leaves_root
from labelsieve.data.pictures.tables import columns_for, open_table, read_cells
from labelsieve.doors import short
from labelsieve.errors import ToolError, suggest

NAMES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
COLUMN = "file_name"
COLUMNS = ("label_column", "id_column", "split_column")


def read_manifest(path: Path, options: PictureOptions) -> Listing:
    """The rows of the table at `path`; its picture paths start from `options.root` or the table's own folder."""
    read = _read(path, options, ("image", "label"), ("id", "split"))
    files, notes = _files(read["image"], path, options)
    labels = name_labels(read["label"], str(path), options.classes)
    ids = ids_of(read["id"], path) if "id" in read else files.paths
    check_unique(ids, path, "id" if "id" in read else "path")
    splits = splits_of(read["split"], path, options.measuring) if "split" in read else np.zeros(len(files), np.int8)
    notes = (*labels.notes, *notes)
    listing = Listing(path, files, ids, labels.codes, labels.classes, splits, notes, refuse_leaving=True)
    return arranged(labelled(listing, labels, options.skip_unlabelled))


@dataclass(frozen=True)
class NamedFiles:
    """Pictures of a table by their ids (N,), and what should be said of their paths."""

    files: Files
    ids: Sequence[str]
    notes: tuple[str, ...]


def unlabelled_manifest(path: Path, options: PictureOptions) -> NamedFiles:
    """Every row of the table at `path`, which needs no labels; ids are those of `read_manifest`."""
    read = _read(path, options, ("image",), ("id",))
    files, notes = _files(read["image"], path, options)
    return NamedFiles(files, ids_of(read["id"], path) if "id" in read else files.paths, notes)


def _read(path: Path, options: PictureOptions, needs: Sequence[str], may: Sequence[str]) -> dict[str, list[Any]]:
    table = open_table(path, options.encoding)
    read = read_cells(table, columns_for(table.columns, options, path, needs, may))
    if not read["image"]:
        raise ToolError(f"{path}: it has a header and no rows; add a row for each picture")
    return read


def _files(values: Sequence[Any], path: Path, options: PictureOptions) -> tuple[Files, tuple[str, ...]]:
    """The pictures of a table's column of paths, and what should be said of these."""
    root = options.root or path.parent
    names, notes = as_files_are_named(values, root)
    return Files(root, picture_paths(names, root, options.outside, path), options.outside), tuple(notes)


def labelled(listing: Listing, labels: Labels, skip: bool) -> Listing:
    """The rows that have a label. Training rows without one are refused, or left out and told where `skip` is set.

    Rows to measure on are only not used: test pictures are often published without labels.
    """
    bare, trained = labels.codes == MISSING, listing.splits == TRAIN
    missing = np.flatnonzero(bare & trained)
    if not bare.any():
        return listing
    if len(missing) and not skip:
        raise ToolError(
            f"{listing.place}: {len(missing)} of {len(listing)} rows have no label, the first is row "
            f"{missing[0] + 1}; fill them in, or leave such rows out with {named('skip_unlabelled')}"
        )
    if bare.all():
        raise ToolError(f"{listing.place}: no row has a label; is it the right label column?")
    kept = np.flatnonzero(~bare | trained).astype(np.int64)
    unused = {name: int((bare & (listing.splits == split)).sum()) for split, name in enumerate(SPLITS) if split != TRAIN}
    notes = (f"{count:,} {name} rows have no label: not used" for name, count in unused.items() if count)
    left = replace(listing.take(kept), notes=(*listing.notes, *notes))
    return left.without({int(row): "it has no label" for row in np.flatnonzero(bare[kept])})


def picture_paths(values: Sequence[Any], root: Path, outside: bool, place: Path) -> list[str]:
    """Paths from `root`, with "/"; those that leave it are refused, unless `outside`."""
    top = os.path.abspath(root)  # noqa: PTH100 - text is enough here; links are looked at later
    found: list[str] = []
    leaving: list[int] = []
    for row, value in enumerate(values):
        if not isinstance(value, str) or not value.strip():
            raise ToolError(_no_path(value, row, place))
        name = value
        if "://" in name and is_web_address(name):
            found.append(name)
            continue
        if name[0] == "/" or name[1:3] == ":\\" or "./" in name or "//" in name or name.endswith(".."):
            name = _normal(name, top)
            if (name[:3] in ("..", "../") or os.path.isabs(name)) and not outside:  # noqa: PTH117
                leaving.append(row)
        found.append(name)
    if leaving:
        raise leaves_root(place, values[leaving[0]], len(leaving))
    return found


def _normal(name: str, top: str) -> str:
    name = os.path.normpath(name)
    whole = os.path.normpath(os.path.join(top, name))  # noqa: PTH118 - text is enough
    if whole.startswith(top.rstrip(os.sep) + os.sep):  # also where it goes up and comes back
        name = os.path.relpath(whole, top)
    return name.replace(os.sep, "/")


def _no_path(value: Any, row: int, place: Path) -> str:
    if isinstance(value, (dict, bytes)):
        return (
            f"{place}: row {row + 1}: the picture column holds pictures rather than paths; "
            f"load it with the datasets library and save it with save_to_disk, which is read"
        )
    return f"{place}: row {row + 1} has no picture path; fill it in, or remove the row"


def ids_of(values: Sequence[Any], place: Path) -> list[str]:
    ids = []
    for row, value in enumerate(values):
        if value is None or value == "":
            raise ToolError(f'{place}: row {row + 1} has no id; fill it in, or set {named("id_column")} to "" to use the paths')
        word = value if isinstance(value, str) else str(value)
        ids.append(word if word.isascii() else readable_name(word))
    return ids


def check_unique(ids: Sequence[str], place: Path, what: str) -> None:
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if first.setdefault(name, row) != row:
            count = len(ids) - len(set(ids))
            raise ToolError(
                f'{place}: the {what} "{name}" is in row {first[name] + 1} and again in row {row + 1} '
                f"({count} rows too many); make each {what} unique, or name another {named('id_column')}"
            )


def splits_of(values: Sequence[Any], place: Path, measuring: bool = False) -> NDArray[np.int8]:
    """(N,) int8 from words such as train, valid and testing; some must be train, unless `measuring`."""
    known: dict[str, int] = {}
    words = [value if isinstance(value, str) else str(value) for value in values]  # Parquet may hold lists
    for row, value in enumerate(words):
        if value not in known:
            word = value.strip().lower()
            if word not in SPLIT_NAMES:
                raise ToolError(
                    f'{place}: row {row + 1}: split "{short(value)}" is not known{suggest(word, SPLIT_NAMES)}; '
                    f'write train, val or test, or set {named("split_column")} to "" to train on every row'
                )
            known[value] = SPLIT_NAMES[word]
    found = np.fromiter((known[value] for value in words), np.int8, len(values))
    if not measuring and not (found == TRAIN).any():
        raise ToolError(f'{place}: no row is in the training split; set {named("split_column")} to "" to train on every row')
    return found


def metadata_files(path: Path) -> dict[str, Path]:
    """{folder: metadata file}, where "" is the folder itself; empty where there is none."""
    top = _metadata(path)
    if top is not None:
        return {"": top}
    found = {name: _metadata(path / name) for name in visible_folders(path) if name.lower() in SPLIT_NAMES}
    files = {name: file for name, file in found.items() if file is not None}
    return files if any(SPLIT_NAMES[name.lower()] == TRAIN for name in files) else {}


def _metadata(folder: Path) -> Path | None:
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def naming_labels(files: dict[str, Path], options: PictureOptions) -> dict[str, Path]:
    """Those whose header names labels; none at all where what is to be trained on has none: they describe class folders."""
    named = {folder: file for folder, file in files.items() if _names_labels(file, options)}
    return named if all(folder in named for folder in files if _split(folder) == TRAIN) else {}


def labelled_files(path: Path, options: PictureOptions) -> tuple[dict[str, Path], tuple[str, ...]]:
    """{folder: metadata file} of what has labels, and the split folders that hold pictures and have none.

    Only what is trained on needs labels: test pictures are often published without.
    """
    files = metadata_files(path)
    kept = {
        folder: file
        for folder, file in files.items()
        if _split(folder) == TRAIN or _holds_labels(file, options_for(folder, file, path, options))
    }
    folders = [name for name in visible_folders(path) if name.lower() in SPLIT_NAMES] if "" not in files else []
    return kept, tuple(name for name in folders if name not in kept and holds_picture(path / name))


def _split(folder: str) -> int:
    return SPLIT_NAMES[folder.lower()] if folder else TRAIN


def options_for(folder: str, file: Path, path: Path, options: PictureOptions) -> PictureOptions:
    """The choices for one metadata file below `path`.

    A column named for what is trained on and absent from another split is found by usual names there: test pictures often
    have a column of right labels alone.
    """
    options = replace(options, image_column=options.image_column or COLUMN, root=path / folder)
    if _split(folder) == TRAIN:
        return options
    columns = open_table(file, options.encoding).columns
    absent: dict[str, Any] = {name: None for name in COLUMNS if getattr(options, name) not in (None, "", *columns)}
    return replace(options, **absent)


def _names_labels(file: Path, options: PictureOptions) -> bool:
    """Whether its header names pictures and labels."""
    columns = open_table(file, options.encoding).columns
    return COLUMN in columns and (options.label_column in columns or any(usual.plainly(name) in usual.LABEL for name in columns))


def _holds_labels(file: Path, options: PictureOptions) -> bool:
    """Whether there is a label in it, too."""
    if not _names_labels(file, options):
        return False
    table = open_table(file, options.encoding)
    read = read_cells(table, columns_for(table.columns, options, file, ["label"]))
    return bool((name_labels(read["label"], str(file)).codes != MISSING).any())


def read_imagefolder(path: Path, options: PictureOptions) -> Listing:
    """The rows of every metadata file with labels, in the split of its folder."""
    parts = []
    files, unlabelled = labelled_files(path, options)
    for folder, file in files.items():
        part = read_manifest(file, options_for(folder, file, path, options))
        if folder:
            splits = np.full(len(part), _split(folder), np.int8)
            part = replace(part, splits=splits)
        parts.append((folder, part))
    found = parts[0][1] if len(parts) == 1 and not parts[0][0] else merged(path, parts, options)
    return replace(found, notes=(*found.notes, *(f'the folder "{name}" has no labels: not used' for name in unlabelled)))


def merged(path: Path, parts: list[tuple[str, Listing]], options: PictureOptions) -> Listing:
    """One listing below `path`; classes are joined by name."""
    paths: list[str] = []
    ids: list[str] = []
    words: list[str] = []
    for folder, part in parts:
        assert isinstance(part.origin, Files)
        below = [name if name[:1] == "/" else f"{folder}/{name}" for name in part.origin.paths]
        ids += below if list(part.ids) == list(part.origin.paths) else part.ids
        paths += below
        words += [part.classes[code] for code in part.labels.tolist()]
    if not words:
        raise ToolError(f"{path}: its metadata files have no rows; add one for each picture")
    check_unique(ids, path, "id")
    labels = name_labels(words, str(path), options.classes)
    return arranged(
        Listing(
            path,
            Files(path, paths, options.outside),
            ids,
            labels.codes,
            labels.classes,
            np.concatenate([part.splits for _, part in parts]),
            tuple(dict.fromkeys(note for _, part in parts for note in part.notes)),
            left_out=tuple(row for _, part in parts for row in part.left_out),
            refuse_leaving=True,
        )
    )
