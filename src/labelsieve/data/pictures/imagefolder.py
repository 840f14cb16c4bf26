"""Lists Hugging Face's imagefolder with metadata: a metadata file beside the pictures.

The file may lie in the folder itself or in its train, val and test folders, each with a file_name column.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.data.pictures import columns as usual
from labelsieve.data.pictures.columns import needed
from labelsieve.data.pictures.labels import MISSING, name_labels
from labelsieve.data.pictures.listing import SPLIT_NAMES, TRAIN, Listing, arranged
from labelsieve.data.pictures.manifest import check_unique, read_manifest
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.tables import open_table
from labelsieve.data.pictures.walking import holds_picture, visible_folders
from labelsieve.errors import ToolError

NAMES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
COLUMN = "file_name"
COLUMNS = ("label_column", "id_column", "split_column")


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
    return COLUMN in columns and (options.label_column in columns or any(name.lower() in usual.LABEL for name in columns))


def _holds_labels(file: Path, options: PictureOptions) -> bool:
    """Whether there is a label in it, too."""
    if not _names_labels(file, options):
        return False
    table = open_table(file, options.encoding)
    label = needed(table.columns, options.label_column, usual.LABEL, "label_column", file)
    return bool((name_labels(table.read([label])[0], str(file)).codes != MISSING).any())


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
