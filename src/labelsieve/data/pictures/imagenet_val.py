"""Lists ILSVRC12's validation pictures of WebVision's classes, as test rows.

Three forms: a folder for each of the 1000 classes, named by synset (n01440764/); or all pictures in one folder with val.txt
(`NAME NUMBER`, numbers by sorted synset) or LOC_val_solution.csv (`NAME,SYNSET ...`) there or beside it.
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from labelsieve.data.pictures.listing import TEST, Listing
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.textlists import inside, labelled_keys
from labelsieve.data.pictures.walking import visible_folders, walk
from labelsieve.errors import ToolError

CLASSES = 1000
PLACES = ("ilsvrc12", "imagenet/val", "imagenet", "ILSVRC2012_img_val")  # looked for beside WebVision's own folders
NUMBERED, NAMED = "val.txt", "LOC_val_solution.csv"


def place_of(root: Path, given: Path | None) -> Path | None:
    """Where the pictures are: as given, else in one of the usual folders below WebVision's; None where there are none."""
    if given is not None:
        if not given.is_dir():
            raise ToolError(f"{given}: no such folder of ILSVRC12's validation pictures; check --second-test")
        return given
    return next((root / name for name in PLACES if (root / name).is_dir()), None)


def read(path: Path, classes: Sequence[str], wnids: Sequence[str], options: PictureOptions) -> Listing:
    """The pictures of `classes`, in WebVision's numbers; `wnids` are their synsets, or nothing where they are not known."""
    folders = [name for name in visible_folders(path) if name[:1] == "n" and name[1:].isdecimal()]
    found = _by_folder(path, folders, classes, wnids) if folders else _flat(path, classes, wnids)
    ids = sorted(found)
    if not ids:
        raise ToolError(f"{path}: no picture of the {len(classes)} classes; is it ILSVRC12's validation set?")
    labels, splits = np.array([found[name] for name in ids], np.int64), np.full(len(ids), TEST, np.int8)
    return Listing(path, Files(path, ids, options.outside), ids, labels, tuple(classes), splits)


def _by_folder(path: Path, folders: Sequence[str], classes: Sequence[str], wnids: Sequence[str]) -> dict[str, int]:
    numbers = _numbers(sorted(folders), classes, wnids, path)
    return {name: numbers[folder] for folder in folders if folder in numbers for name in walk(path / folder, path, Counter())}


def _numbers(folders: Sequence[str], classes: Sequence[str], wnids: Sequence[str], path: Path) -> dict[str, int]:
    """{synset: WebVision's number}. Both sets number the sorted synsets, so without names the whole thousand tell."""
    if wnids:
        return {wnid: k for k, wnid in enumerate(wnids)}
    if len(folders) not in (CLASSES, len(classes)):
        raise ToolError(
            f"{path}: {len(folders)} class folders, and WebVision's info/synsets.txt is missing, so which is which cannot be "
            f"told; add info/synsets.txt, or all {CLASSES} folders"
        )
    return {wnid: k for k, wnid in enumerate(folders[: len(classes)])}


def _flat(path: Path, classes: Sequence[str], wnids: Sequence[str]) -> dict[str, int]:
    for folder in (path, path.parent):
        if (folder / NUMBERED).is_file():
            labelled = labelled_keys(folder / NUMBERED, CLASSES)
            return {name: label for name, label in labelled.items() if label < len(classes)}
        if (folder / NAMED).is_file() and wnids:
            return _solutions(folder / NAMED, {wnid: k for k, wnid in enumerate(wnids)})
    needs = f"{NUMBERED}, or {NAMED} together with WebVision's info/synsets.txt,"
    raise ToolError(f"{path}: neither class folders (n01440764, ...) nor {needs} is there; add one of them")


def _solutions(file: Path, numbers: Mapping[str, int]) -> dict[str, int]:
    found = {}
    with file.open(encoding="utf-8", newline="") as stream:
        for number, row in enumerate(csv.reader(stream), 1):
            wnid = row[1].split()[0] if len(row) > 1 and row[1].strip() else ""
            if wnid in numbers:
                found[inside(f"{row[0]}.JPEG", file, number)] = numbers[wnid]
    return found
