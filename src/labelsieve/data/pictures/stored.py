"""Lists data sets whose pictures are stored in Arrow or Parquet files: saved by `datasets`, or as the Hugging Face Hub has them.

A folder written by save_to_disk says in its JSON files which Arrow files belong to which split. Of Parquet files, the split is in
the file's name or its folder's (data/train-00000-of-00002.parquet), and class names are in the schema. Needs only pyarrow.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve import doors
from labelsieve.data.pictures import tables as usual
from labelsieve.data.pictures.arrow import parquet_file, pyarrow_for, stored_columns
from labelsieve.data.pictures.folders import is_hidden, visible_folders
from labelsieve.data.pictures.listing import SPLIT_NAMES, SPLITS, TRAIN, Labels, Listing, arranged, name_labels, number_labels
from labelsieve.data.pictures.manifest import check_unique, ids_of, labelled, splits_of
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import ArrowRows
from labelsieve.data.pictures.tables import needed, optional
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.texts import quoted

Features = Mapping[str, Any]  # {column: what `datasets` says of it}
LARGEST = 2**26  # bytes of what describes a data set: with very many classes or files, a few million
SUFFIX = ".parquet"
DEPTH = 3  # folders below the one given: data/, default/train/
NUMBERED = re.compile(r"[-_.]?\d+(?:-of-\d+)?(?:-[0-9a-f]{8,})?$")  # train-00000-of-00001, and a hash as older ones have


@dataclass(frozen=True)
class Part:
    """The files of one split, in order. Its name stands before ids that are row numbers; "" where there is only one split."""

    name: str
    split: int
    files: Sequence[Path]


@dataclass(frozen=True)
class StoredSet:
    """A data set's files by split, the features of its columns, the column that names splits ("": none), and notes."""

    path: Path
    parts: Sequence[Part]
    features: Features
    column: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class StoredRows:
    """Where each picture lies, ids (N,), splits (N,) by the files' parts, and other columns' values: {column: (N,)}."""

    origin: ArrowRows
    ids: list[str]
    splits: NDArray[np.int8]
    cells: dict[str, list[Any]]


# The rows of any such set.


def read_stored(path: Path, options: PictureOptions) -> Listing:
    """Every row that has a label. Its id is an id column's value, else "split/row", counted over a split's files."""
    listing, labels = stored_rows(open_stored(path, options), options)
    return arranged(labelled(listing, labels, options.skip_unlabelled))


def open_stored(path: Path, options: PictureOptions) -> StoredSet:
    """What lies at `path`; its rows are not read yet."""
    return _saved(path, options) if is_saved(path) else _shards(path, options)


def unlabelled_stored(path: Path, options: PictureOptions) -> StoredRows:
    """Every row of every split, labelled or not; ids are those of `read_stored`."""
    if is_saved(path):
        names = _saved_splits(path) or [""]
        found = StoredSet(
            path, [Part(name, TRAIN, _saved_files(path / name)) for name in names], _saved_features(path / names[0])
        )
    else:
        files = parquet_files(path)
        words = _by_split(path, files)
        whole = not any(word in SPLIT_NAMES for word in words)
        parts = [Part("", TRAIN, files)] if whole else [Part(word, TRAIN, some) for word, some in words.items()]
        found = StoredSet(path, parts, _schema_features(files[0]))
    return _cells(found, options)


def stored_rows(found: StoredSet, options: PictureOptions) -> tuple[Listing, Labels]:
    """One row for each row of the files, in their order."""
    path, label = found.path, label_column(found, options)
    rows = _cells(found, options, [name for name in (label, found.column) if name])
    check_unique(rows.ids, path, "id")
    labels = _labels(rows.cells[label], found.features[label], options, path)
    splits = splits_of(rows.cells[found.column], path, options.measuring) if found.column else rows.splits
    return Listing(path, rows.origin, rows.ids, labels.codes, labels.classes, splits, (*labels.notes, *found.notes)), labels


def label_column(found: StoredSet, options: PictureOptions) -> str:
    return _column(found, "ClassLabel", usual.LABEL, "label_column", options.label_column)


def _column(found: StoredSet, kind: str, names: Sequence[str], option: str, given: str | None) -> str:
    """The only column of that kind: a feature's type says more than its name."""
    typed = [name.lower() for name, what in found.features.items() if isinstance(what, dict) and what.get("_type") == kind]
    return needed(list(found.features), given, typed or names, option, found.path)


def _cells(found: StoredSet, options: PictureOptions, columns: Sequence[str] = ()) -> StoredRows:
    """Where each row's picture is, its id, and its values in `columns`."""
    image = _column(found, "Image", usual.IMAGE, "image_column", options.image_column)
    wanted = optional(list(found.features), options.id_column, usual.ID, "id_column", found.path)
    ids: list[str] = []
    cells: dict[str, list[Any]] = {name: [] for name in columns}
    counts: list[int] = []
    for part in found.parts:
        first = len(counts)
        for file in part.files:
            table = stored_columns(file, [*columns, *([wanted] if wanted else [])], image)
            for name, values in cells.items():
                values += table.column(name).to_pylist()
            ids += ids_of(table.column(wanted).to_pylist(), file) if wanted else []
            counts.append(table.num_rows)
        if wanted is None:
            prefix = f"{part.name}/" if part.name else ""
            ids += [f"{prefix}{row:06d}" for row in range(sum(counts[first:]))]
    if not ids:
        raise ToolError(f"{found.path}: it has no rows; write the data set again")
    origin = ArrowRows(
        tuple(file for part in found.parts for file in part.files),
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate([np.arange(count, dtype=np.int64) for count in counts]),
        image,
        options.outside,
    )
    splits = [part.split for part in found.parts for _ in part.files]
    return StoredRows(origin, ids, np.repeat(np.array(splits, np.int8), counts), cells)


def _labels(values: list[Any], feature: Any, options: PictureOptions, path: Path) -> Labels:
    names = feature.get("names") if isinstance(feature, dict) else None
    if not names:
        return name_labels(values, str(path), options.classes)
    numbered = number_labels(values, [str(name) for name in names], str(path))
    if options.classes is None:
        return numbered
    if set(options.classes) != set(numbered.classes):
        strange = sorted(set(options.classes) ^ set(numbered.classes))[0]
        hint = suggest(strange, set(numbered.classes) - {strange})
        raise UsageError(f'{path}: its classes and the classes given differ in "{strange}"{hint}')
    order = np.array([*(options.classes.index(name) for name in numbered.classes), -1])
    return Labels(order[numbered.codes], options.classes)


def _known_splits(
    names: Iterable[str], path: Path, measuring: bool, place: Callable[[str], Path]
) -> tuple[dict[str, int], list[str]]:
    """{name: split} of the names that say train, val or test, and notes on the others. `place` is where a split of it lies.

    Unknown names beside a training split are passed over; SVHN has one called "extra". A misspelt one is an error.
    """
    known = {name: SPLIT_NAMES[name.lower()] for name in names if name.lower() in SPLIT_NAMES}
    others = [name for name in names if name not in known]
    for name in others:
        near = suggest(name, get_close_matches(name.lower(), SPLIT_NAMES, n=1, cutoff=0.7))
        if near or TRAIN not in known.values():
            raise ToolError(
                f'{path}: split "{name}" is not known{near}; call splits {", ".join(SPLITS)}, or give {place(name)} alone'
            )
    if TRAIN not in known.values() and not (measuring and known):
        raise ToolError(
            f"{path}: it has no training split; to train on one of the others, give it alone: {place(next(iter(known)))}"
        )
    return known, [f'the split "{name}" is neither train, val nor test: not used' for name in others]


# Folders that `datasets` wrote by save_to_disk.


def is_saved(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or ((path / "dataset_info.json").is_file() and (path / "state.json").is_file())


def _saved(path: Path, options: PictureOptions) -> StoredSet:
    names = _saved_splits(path)
    known, notes = _known_splits(names, path, options.measuring, lambda name: path / name) if names else ({"": TRAIN}, [])
    features = _saved_features(path / next(iter(known)))
    parts = [Part(name, split, _saved_files(path / name)) for name, split in known.items()]
    return StoredSet(path, parts, features, notes=notes)


def _saved_features(folder: Path) -> Features:
    return _json(folder / "dataset_info.json").get("features") or {}


def _saved_splits(path: Path) -> list[str]:
    """The names of its splits, each a folder; none where it is not divided."""
    if not (path / "dataset_dict.json").is_file():
        return []
    names = [str(name) for name in _json(path / "dataset_dict.json").get("splits") or []]
    for name in names:
        if not name or name == ".." or "/" in name:
            raise ToolError(f"{path}: dataset_dict.json names the split {quoted(name)}, which is no folder in it; save it again")
    if not names:
        raise ToolError(f"{path}: dataset_dict.json names no splits; save the data set again")
    return names


def _saved_files(folder: Path) -> list[Path]:
    state = _json(folder / "state.json")
    if state.get("_indices_data_files"):
        raise ToolError(f"{folder}: its rows are a selection; call flatten_indices() and save_to_disk again")
    files = [folder / str(entry["filename"]) for entry in state.get("_data_files") or []]
    for file in files:
        if file.parent != folder or not file.is_file():
            raise ToolError(f"{file}: no such file, though state.json names it; save the data set again")
    if not files:
        raise ToolError(f"{folder}: state.json names no data files; save the data set again")
    return files


def _json(path: Path) -> dict[str, Any]:
    with doors.reading(path, "save the data set again"):
        found = doors.read_json(path, LARGEST, follow=True)
    if not isinstance(found, dict):
        raise ToolError(f"{path}: it is not a JSON object; save the data set again")
    return found


# Parquet files with pictures in them: one, or a folder of them.


def parquet_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else shard_files(path)


def shard_files(path: Path) -> list[Path]:
    """The Parquet files with pictures in a folder and in those below it, in order; a damaged file counts as one of them."""
    return [file for file in _parquet_below(path, DEPTH) if _may_hold_pictures(file)]


def _parquet_below(folder: Path, depth: int) -> list[Path]:
    here = [file for file in folder.iterdir() if file.suffix.lower() == SUFFIX and not is_hidden(file.name) and file.is_file()]
    below = visible_folders(folder) if depth else []
    return [*sorted(here), *(file for name in below for file in _parquet_below(folder / name, depth - 1))]


def _may_hold_pictures(file: Path) -> bool:
    try:
        return holds_pictures(file)
    except ToolError:
        return True


def holds_pictures(file: Path) -> bool:
    """Whether some column of the Parquet file has pictures in it; its rows are not read."""
    return bool(_picture_columns(file))


def _picture_columns(file: Path) -> list[str]:
    schema, types = parquet_file(file).schema_arrow, pyarrow_for(file).types

    def are_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    def are_pictures(kind: Any) -> bool:
        return are_bytes(kind) or (types.is_struct(kind) and any(part.name == "bytes" and are_bytes(part.type) for part in kind))

    return [field.name for field in schema if are_pictures(field.type)]


def _schema_features(file: Path) -> Features:
    """{column: what `datasets` says of it}, from the schema; without such words, the kind alone tells pictures."""
    schema = parquet_file(file).schema_arrow
    try:
        said = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError, RecursionError):
        said = {}
    found: dict[str, Any] = {name: said.get(name) if isinstance(said, dict) else None for name in schema.names}
    if not any(isinstance(what, dict) and what.get("_type") == "Image" for what in found.values()):
        pictured = _picture_columns(file)
        named = [name for name in pictured if usual.plainly(name) in usual.IMAGE]
        found |= {name: {"_type": "Image"} for name in named or pictured}
    return found


def _shards(path: Path, options: PictureOptions) -> StoredSet:
    """What the schemas and names of the files at `path` say; a `ToolError` where they contradict each other."""
    files = parquet_files(path)
    words = _by_split(path, files)
    if any(word in SPLIT_NAMES for word in words):
        known, notes = _known_splits(words, path, options.measuring, lambda word: words[word][0])
        parts = [Part(word, known[word], words[word]) for word in sorted(known, key=known.__getitem__)]
    else:
        parts, notes = [Part("", TRAIN, files)], []
    features = _schema_features(files[0])
    column = None if parts[0].name else optional(list(features), options.split_column, usual.SPLIT, "split_column", path)
    found = StoredSet(path, parts, features, column or "", notes)
    label = label_column(found, options)
    for file in (file for part in parts for file in part.files):
        if _schema_features(file).get(label) != features[label]:
            raise ToolError(f'{file}: its schema says other classes of "{label}" than {files[0]}; write the data set again')
    return found


def _by_split(path: Path, files: list[Path]) -> dict[str, list[Path]]:
    """{split as it is called: its files}; nothing for a single file, whose name says nothing."""
    if path.is_file():
        return {}
    _check_one_set(path, files)
    words: dict[str, list[Path]] = {}
    for file in files:
        words.setdefault(_split_word(file, path), []).append(file)
    return words


def _split_word(file: Path, top: Path) -> str:
    """The split in a file's name or in a folder's above it; else its name less its number."""
    plain = NUMBERED.sub("", file.stem.lower())
    folders = [part.lower() for part in reversed(file.relative_to(top).parts[:-1])]
    for words in ([plain], re.split(r"[-_. ]+", plain), folders):
        found = {word for word in words if word in SPLIT_NAMES}
        if len(found) == 1:
            return found.pop()
    return plain or file.stem


def _check_one_set(path: Path, files: list[Path]) -> None:
    """Folders of several configurations hold other pictures each."""
    homes = {file.parent for file in files}
    sets = sorted({home.parent if home != path and home.name.lower() in SPLIT_NAMES else home for home in homes})
    if len(sets) > 1:
        listed = ", ".join(home.relative_to(path).as_posix() for home in sets)
        raise ToolError(f"{path}: its folders {listed} hold Parquet files, a data set each; give one of them: {sets[-1]}")
