"""Lists Parquet files that hold pictures, one or a folder of them as the Hugging Face Hub has them.

A file's split is in its name or its folder's (data/train-00000-of-00002.parquet); class names are in its schema.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelsieve.data.pictures import columns as usual
from labelsieve.data.pictures.arrow import parquet_file, pyarrow_for
from labelsieve.data.pictures.columns import optional
from labelsieve.data.pictures.listing import SPLIT_NAMES, SPLITS, TRAIN, Listing
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.passed_over import is_hidden
from labelsieve.data.pictures.saved import misspelt, not_used
from labelsieve.data.pictures.stored import Features, Part, StoredRows, label_column, stored_cells, stored_listing
from labelsieve.data.pictures.walking import visible_folders
from labelsieve.errors import ToolError

SUFFIX = ".parquet"
DEPTH = 3  # folders below the one given: data/, default/train/
NUMBERED = re.compile(r"[-_.]?\d+(?:-of-\d+)?(?:-[0-9a-f]{8,})?$")  # train-00000-of-00001, and a hash as older ones have


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


def features_of(file: Path) -> Features:
    """{column: what `datasets` says of it}, from the schema; without such words, the kind alone tells pictures."""
    schema = parquet_file(file).schema_arrow
    try:
        said = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError, RecursionError):
        said = {}
    found: dict[str, Any] = {name: said.get(name) if isinstance(said, dict) else None for name in schema.names}
    if not any(isinstance(what, dict) and what.get("_type") == "Image" for what in found.values()):
        pictured = _picture_columns(file)
        named = [name for name in pictured if name.lower() in usual.IMAGE]
        found |= {name: {"_type": "Image"} for name in named or pictured}
    return found


def shard_files(path: Path) -> list[Path]:
    """The Parquet files with pictures in a folder and in those below it, in order; a damaged one is taken for one of them."""
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


@dataclass(frozen=True)
class Shards:
    """The files of a data set by split, the features of their columns, the column of splits ("": none), and notes."""

    path: Path
    parts: Sequence[Part]
    features: Features
    column: str
    notes: Sequence[str]


def read_shards(path: Path, options: PictureOptions) -> Listing:
    """One row for each row of the files; its id is an id column's value, else "split/row", counted over a split's files."""
    found = open_shards(path, options)
    return stored_listing(path, found.parts, found.features, options, found.notes, found.column)


def open_shards(path: Path, options: PictureOptions) -> Shards:
    """What the schemas and names of the files at `path` say; a `ToolError` where they contradict each other."""
    files = [path] if path.is_file() else shard_files(path)
    features = features_of(files[0])
    parts, notes = ([Part("", TRAIN, files)], []) if path.is_file() else _parts(path, files, options.measuring)
    label = label_column(features, options, path)
    for file in (file for part in parts for file in part.files):
        if features_of(file).get(label) != features[label]:
            raise ToolError(f'{file}: its schema says other classes of "{label}" than {files[0]}; write the data set again')
    column = None
    if not parts[0].name:
        column = optional(list(features), options.split_column, usual.SPLIT, "split_column", path)
    return Shards(path, parts, features, column or "", notes)


def unlabelled_shards(path: Path, options: PictureOptions) -> StoredRows:
    """Every row of the files at `path`, whatever their splits are called; ids are those of `read_shards`."""
    files = [path] if path.is_file() else shard_files(path)
    words = {} if path.is_file() else _by_split(path, files)
    parts = [Part(word, SPLIT_NAMES.get(word, TRAIN), some) for word, some in words.items()]
    known = any(word in SPLIT_NAMES for word in words)
    return stored_cells(path, parts if known else [Part("", TRAIN, files)], features_of(files[0]), options)


def _by_split(path: Path, files: list[Path]) -> dict[str, list[Path]]:
    """{split as it is called: its files}; one data set at a time."""
    _check_one_set(path, files)
    words: dict[str, list[Path]] = {}
    for file in files:
        words.setdefault(_split_word(file, path), []).append(file)
    return words


def _parts(path: Path, files: list[Path], measuring: bool) -> tuple[list[Part], list[str]]:
    """Files by split, in the order train, val, test; and what should be said. Without any split, all are trained on."""
    words = _by_split(path, files)
    known = {word: SPLIT_NAMES[word] for word in words if word in SPLIT_NAMES}
    if not known:
        return [Part("", TRAIN, files)], []
    others = [word for word in words if word not in known]
    for word in others:
        near = misspelt(word)
        if near or TRAIN not in known.values():
            raise ToolError(f'{words[word][0]}: its split "{word}" is not known{near}; name files after {", ".join(SPLITS)}')
    if TRAIN not in known.values() and not measuring:
        raise ToolError(f"{path}: no file is of the training split; give one of the files instead, such as {files[0]}")
    ordered = sorted(known, key=lambda word: known[word])
    return [Part(word, known[word], words[word]) for word in ordered], [not_used(word) for word in others]


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
