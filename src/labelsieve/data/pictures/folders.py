"""Lists a folder with one folder per class, with or without train/val/test above."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from labelsieve.data.pictures.labels import name_labels, spelt_as
from labelsieve.data.pictures.listing import SPLIT_NAMES, SPLITS, TRAIN, Listing, arranged, readable_name
from labelsieve.data.pictures.options import FLAGS, PictureOptions
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.presence import known_below, with_gone
from labelsieve.data.pictures.walking import (
    OUT,
    count_files,
    hidden_pictures,
    holds_picture,
    left_out,
    no_pictures,
    run_folders,
    visible_folders,
    walk,
)
from labelsieve.errors import ToolError, suggest
from labelsieve.texts import quoted


def split_folders(path: Path) -> dict[str, int]:
    """{folder name: split} where `path` has a training folder of class folders; else empty.

    A folder named "train" beside folders of other names that hold pictures is a class like them.
    """
    names = visible_folders(path)
    found = {name: SPLIT_NAMES[name.lower()] for name in names if name.lower() in SPLIT_NAMES}
    training = [name for name, split in found.items() if split == TRAIN]
    if not training or not visible_folders(path / training[0]):
        return {}
    others = [name for name in names if name not in found]
    if any(holds_picture(path / name) for name in others):
        return {}
    return found


def read_folders(path: Path, options: PictureOptions) -> Listing:
    """One row a picture below each class folder, however deep; its id is its path from `path`."""
    splits = split_folders(path)
    found = _Gathered(path, options, [*_unused(options), *_beside_splits(path, splits)])
    before = known_below(path, options.known, 2 if splits else 1)
    found.look_beside("")
    for folder, split in sorted(splits.items()) if splits else [("", TRAIN)]:
        found.gather(folder, split, before)
    if not found.paths:
        raise _nothing(path, found.ignored)
    if not options.outside and found.ignored[OUT]:
        found.notes.append(left_out(found.ignored))
    found.notes += _about_deep(found.paths, 1 if splits else 0)
    return arranged(found.listing())


class _Gathered:
    """The pictures below class folders as they are found: paths, labels and splits (N,), and what should be told."""

    def __init__(self, path: Path, options: PictureOptions, notes: list[str]) -> None:
        self.path, self.options, self.notes = path, options, notes
        self.ignored: Counter[str] = Counter()
        self.paths: list[str] = []
        self.labels: list[str] = []
        self.splits: list[int] = []
        self.empty: list[str] = []

    def look_beside(self, folder: str) -> None:
        """What lies beside class folders and is none."""
        count_files(self.path / folder, self.ignored)
        self.notes += _about_runs(self.path / folder)

    def gather(self, folder: str, split: int, before: Mapping[str, Sequence[str]]) -> None:
        """The class folders of a split's folder, or of the path itself (""); `before` are files that a run knew, by folder."""
        top, start = self.path / folder, f"{folder}/" if folder else ""
        if folder:
            self.look_beside(folder)
        self.notes += _about_hidden(top, start)
        emptied = {key.removeprefix(start) for key in before if key.startswith(start) and not os.path.lexists(self.path / key)}
        for name in sorted({*visible_folders(top), *emptied}):
            there = [] if name in emptied else list(walk(top / name, self.path, self.ignored, self.options.outside))
            found = with_gone(there, before.get(f"{start}{name}", ()), self.path)
            if not found:
                self.empty.append(readable_name(f"{start}{name}"))
            self.paths += found
            self.labels += [readable_name(name)] * len(found)
            self.splits += [split] * len(found)
        if folder and not visible_folders(top):
            self.notes.append(f'the folder "{folder}" ({SPLITS[split]}) has no class folders: its files are ignored')

    def listing(self) -> Listing:
        named = name_labels(self.labels, str(self.path), _in_order(self.labels, self.path, self.options.classes))
        return Listing(
            self.path,
            Files(self.path, self.paths, self.options.outside),
            [readable_name(name) for name in self.paths],
            named.codes,
            named.classes,
            np.array(self.splits, np.int8),
            tuple(self.notes),
            dict(self.ignored),
            tuple(self.empty),
        )


def _beside_splits(path: Path, splits: Mapping[str, int]) -> list[str]:
    """Folders beside those of splits."""
    others = [name for name in visible_folders(path) if name not in splits] if splits else []
    return [f'the folder "{name}" is neither train, val nor test and holds no pictures: ignored' for name in others]


def _about_deep(paths: Sequence[str], place: int) -> list[str]:
    """Pictures in folders below their class folder, whose name stands at `place` of a path."""
    deep = [name for name in paths if name.count("/") > place + 1]
    if not deep:
        return []
    label = readable_name(deep[0].split("/")[place])
    return [
        f"{len(deep):,} pictures lie in folders below their class folder, and have its label: "
        f"{quoted(readable_name(deep[0]))} is of {quoted(label)}"
    ]


def _in_order(labels: list[str], path: Path, classes: Sequence[str] | None) -> Sequence[str] | None:
    """The classes given, or an error that names the folder which is none of them."""
    strange = [] if classes is None else [name for name in dict.fromkeys(labels) if spelt_as(name, classes) not in classes]
    if strange and classes is not None:
        raise ToolError(
            f"{path}: the folder {quoted(strange[0])} is not one of {len(classes)} classes{suggest(strange[0], classes)}; "
            f"rename it, or correct --classes"
        )
    return classes


def _unused(options: PictureOptions) -> list[str]:
    """Choices for tables, which have no meaning here."""
    said = [FLAGS[name] for name in ("image_column", "label_column", "id_column", "encoding") if getattr(options, name)]
    return [f"{', '.join(said)}: only for tables, not used for class folders"] if said else []


def _nothing(path: Path, ignored: Counter[str]) -> ToolError:
    if ignored[OUT]:
        return ToolError(
            f"{path}: its class folders are links that lead out of it ({ignored[OUT]}), and are not followed unless you say so: "
            f"{FLAGS['outside']}"
        )
    return ToolError(f"{path}: no class folder holds a picture; {no_pictures(path)}")


def _about_hidden(path: Path, start: str) -> list[str]:
    """Of what lies where classes do: a count of hidden things alone would not tell that a class is missing."""
    return [
        f"the folder {quoted(readable_name(start + name))} is hidden because its name begins with a dot, so it is no class: "
        f"{count:,} {'picture' if count == 1 else 'pictures'} in it passed over; rename it if it is one"
        for name, count in hidden_pictures(path).items()
    ]


def _about_runs(path: Path) -> list[str]:
    return [f'the folder "{name}" holds a run, not a class: ignored' for name in run_folders(path)]
