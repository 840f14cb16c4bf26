"""Lists a table of paths and labels. Ids come from a column, else they are the paths."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.pictures import columns as usual
from labelsieve.data.pictures.columns import needed, optional
from labelsieve.data.pictures.labels import MISSING, Labels, name_labels
from labelsieve.data.pictures.listing import SPLIT_NAMES, SPLITS, TRAIN, Listing, arranged, leaves_root, readable_name
from labelsieve.data.pictures.options import PictureOptions, named
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.paths import as_files_are_named, is_web_address
from labelsieve.data.pictures.tables import Table, open_table
from labelsieve.doors import short
from labelsieve.errors import ToolError, suggest


def read_manifest(path: Path, options: PictureOptions) -> Listing:
    """The rows of the table at `path`; its picture paths start from `options.root` or the table's own folder."""
    table = open_table(path, options.encoding)
    image = needed(table.columns, options.image_column, usual.IMAGE, "image_column", path)
    label = needed(table.columns, options.label_column, usual.LABEL, "label_column", path)
    names = [image, label]
    extra = {
        "id": optional(table.columns, options.id_column, usual.ID, "id_column", path),
        "split": optional(table.columns, options.split_column, usual.SPLIT, "split_column", path),
    }
    names += [name for name in extra.values() if name is not None]
    read = dict(zip(names, _columns(table, names, path)))
    files, notes = _files(read[image], path, options)
    labels = name_labels(read[label], str(path), options.classes)
    ids = files.paths if extra["id"] is None else ids_of(read[extra["id"]], path)
    check_unique(ids, path, "path" if extra["id"] is None else "id")
    splits = np.zeros(len(files), np.int8)
    if extra["split"] is not None:
        splits = splits_of(read[extra["split"]], path, options.measuring)
    listing = Listing(
        path,
        files,
        ids,
        labels.codes,
        labels.classes,
        splits,
        (*labels.notes, *notes),
        refuse_leaving=True,
    )
    return arranged(labelled(listing, labels, options.skip_unlabelled))


@dataclass(frozen=True)
class NamedFiles:
    """Pictures of a table by their ids (N,), and what should be said of their paths."""

    files: Files
    ids: Sequence[str]
    notes: tuple[str, ...]


def unlabelled_manifest(path: Path, options: PictureOptions) -> NamedFiles:
    """Every row of the table at `path`, of which only the pictures' column is needed; ids are those of `read_manifest`."""
    table = open_table(path, options.encoding)
    image = needed(table.columns, options.image_column, usual.IMAGE, "image_column", path)
    wanted = optional(table.columns, options.id_column, usual.ID, "id_column", path)
    read = _columns(table, [image] if wanted is None else [image, wanted], path)
    files, notes = _files(read[0], path, options)
    return NamedFiles(files, files.paths if wanted is None else ids_of(read[1], path), notes)


def _files(values: Sequence[Any], path: Path, options: PictureOptions) -> tuple[Files, tuple[str, ...]]:
    """The pictures of a table's column of paths, and what should be said of these."""
    root = options.root or path.parent
    names, notes = as_files_are_named(values, root)
    return Files(root, picture_paths(names, root, options.outside, path), options.outside), tuple(notes)


def _columns(table: Table, names: list[str], path: Path) -> list[list[Any]]:
    read = table.read(names)
    if not read[0]:
        raise ToolError(f"{path}: it has a header and no rows; add a row for each picture")
    return read


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
