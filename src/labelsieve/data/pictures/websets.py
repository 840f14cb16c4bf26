"""The large web sets by name: Clothing1M, and WebVision with ILSVRC12's validation pictures as a second test set.

Each is read from its official folder: text lists with one picture per line, and the pictures that they name.
"""

import csv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelsieve import doors
from labelsieve.data.pictures.folders import visible_folders, walk
from labelsieve.data.pictures.listing import SPLITS, TEST, TRAIN, VAL, LeftOut, Listing
from labelsieve.data.pictures.options import PictureOptions, named
from labelsieve.data.pictures.origins import Files
from labelsieve.errors import ToolError

SIDE = 256  # pixels that are kept of a picture unless you choose a size; views are cut from them
MISSING_SHARE = 0.01  # of the listed pictures: a few dead ones are left out, more are a folder half unpacked


@dataclass(frozen=True)
class WebSet:
    """`lists` are files that tell the set; `needed` are the other files and folders without which it cannot be read."""

    name: str
    title: str
    lists: tuple[str, ...]
    needed: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    read: Callable[[Path, PictureOptions], Listing]

    def missing(self, path: Path) -> list[str]:
        return [name for name in self.needed if not (path / name).exists()]

    def listing(self, path: Path, options: PictureOptions) -> Listing:
        """The pictures that its lists name, there or not."""
        missing = self.missing(path)
        if missing:
            raise ToolError(
                f"{path}: {', '.join(missing)} missing; {self.title} is only partly there: unpack the official files into it, "
                f"or give the folder that has {', '.join(self.needed)}"
            )
        return self.read(path, options)


def web_set_at(path: Path) -> WebSet | None:
    """The set whose lists lie at `path`."""
    return next((each for each in WEBSETS.values() if any((path / name).is_file() for name in each.lists)), None)


def nearly_whole(listed: Listing, there: Listing, incomplete: bool) -> Listing:
    """What is there, or a `ToolError` where too many of the listed pictures are not."""
    gone = there.left_out
    if len(gone) <= MISSING_SHARE * len(listed) or incomplete:
        return there
    shown = "; ".join(_missing_by_split(listed, gone))
    raise ToolError(
        f"{listed.place}: {len(gone):,} of {len(listed):,} listed pictures are missing ({shown}); it is only partly unpacked: "
        f"unpack the rest, or go on without them with {named('incomplete')}"
    )


def _missing_by_split(listed: Listing, gone: Sequence[LeftOut]) -> list[str]:
    """`train: 3 of 10, the first is "images/0/a.jpg"`, for each split that misses some."""
    split = dict(zip(listed.ids, listed.splits.tolist()))
    said = []
    for number, name in enumerate(SPLITS):
        there = [row for row in gone if split.get(row.id) == number]
        if there:
            total = int(np.sum(listed.splits == number))
            said.append(f'{name}: {len(there):,} of {total:,}, the first is "{there[0].path}"')
    return said


def _listing(path: Path, parts: Mapping[int, Mapping[str, int]], classes: Sequence[str], options: PictureOptions) -> Listing:
    """Rows of {split: {key: class}}; the keys are the ids, and paths from the folder."""
    ids = [key for rows in parts.values() for key in rows]
    labels = np.array([label for rows in parts.values() for label in rows.values()], np.int64)
    splits = np.repeat(np.array(list(parts), np.int8), [len(rows) for rows in parts.values()])
    return Listing(path, Files(path, ids, options.outside), ids, labels, tuple(classes), splits)


# Their text lists: a key, or a key and a class number, per line.


def lines_of(path: Path) -> list[str]:
    """The lines that hold something, without their ends."""
    if not path.exists():
        raise ToolError(f"{path}: missing; unpack the official files there, or give the folder that has them")
    with doors.reading(path, "unpack it again"):
        found = [line.rstrip("\r\n") for line in doors.lines(path, follow=True) if line.strip()]
    if not found:
        raise ToolError(f"{path}: it is empty; unpack it again")
    return found


def labelled_keys(path: Path, classes: int) -> dict[str, int]:
    """`key number` on each line, in order; numbers must be in 0..classes-1."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines_of(path), 1):
        key, label = (*line.rsplit(maxsplit=1), "")[:2]
        if not label.isdecimal():
            raise ToolError(f'{path}, line {number}: "{line[:80]}" is not a path and a class number; unpack the file again')
        if int(label) >= classes:
            raise ToolError(f"{path}, line {number}: class {label} is outside 0..{classes - 1}; is it the right file?")
        found[_inside(key.strip(), path, number)] = int(label)
    return found


def _inside(key: str, path: Path, number: int) -> str:
    """The key, or a `ToolError` where it leads out of the data's folder."""
    if key[:1] == "/" or ".." in key.split("/"):
        raise ToolError(f'{path}, line {number}: "{doors.short(key)}" leads out of the data\'s folder; no official list does')
    return key


# Clothing1M: annotations/ has the labels and one list of keys per split.

CLOTHES = (
    *("T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker"),
    *("Jacket", "Downcoat", "Suit", "Shawl", "Dress", "Vest", "Underwear"),
)
NOISY, CLEAN = "annotations/noisy_label_kv.txt", "annotations/clean_label_kv.txt"
KEYS = {
    TRAIN: ("annotations/noisy_train_key_list.txt", NOISY),
    VAL: ("annotations/clean_val_key_list.txt", CLEAN),
    TEST: ("annotations/clean_test_key_list.txt", CLEAN),
}


def _clothing1m(path: Path, options: PictureOptions) -> Listing:
    """Noisy training, clean validation and clean test pictures; ids are the keys, such as images/0/12/a.jpg."""
    labels = {file: labelled_keys(path / file, len(CLOTHES)) for file in (NOISY, CLEAN)}
    parts = {}
    for split, (file, labelled) in KEYS.items():
        keys = [_inside(line.strip(), path / file, number) for number, line in enumerate(lines_of(path / file), 1)]
        unknown = [key for key in keys if key not in labels[labelled]]
        if unknown:
            raise ToolError(
                f"{path / file}: {len(unknown):,} of {len(keys):,} keys have no label in {labelled}, "
                f'the first is "{unknown[0]}"; the annotations do not belong together: unpack them again'
            )
        parts[split] = {key: labels[labelled][key] for key in keys}
    return _listing(path, parts, CLOTHES, options)


# WebVision 1.0: the first 50 classes, pictures from Google for training and the official validation pictures as test set.

CLASSES, FIRST = 1000, 50
TRAIN_LIST, VAL_LIST, SYNSETS = "info/train_filelist_google.txt", "info/val_filelist.txt", "info/synsets.txt"
VAL_FOLDER = "val_images_256"


def _webvision(path: Path, options: PictureOptions) -> Listing:
    """Rows train (google/...), test (val_images_256/...); ids are the paths from the folder."""
    train = {key: label for key, label in labelled_keys(path / TRAIN_LIST, CLASSES).items() if label < FIRST}
    val = {f"{VAL_FOLDER}/{key}": label for key, label in labelled_keys(path / VAL_LIST, CLASSES).items() if label < FIRST}
    return _listing(path, {TRAIN: train, TEST: val}, _class_names(path), options)


def _synsets(path: Path) -> list[tuple[str, str]]:
    """(n01440764, "tench") of the first classes, in order; nothing where info/synsets.txt is not there."""
    file = path / SYNSETS
    if not file.is_file():
        return []
    pairs = [line.strip().partition(" ") for line in lines_of(file)[:FIRST]]
    return [(wnid, names.partition(",")[0].strip() or wnid) for wnid, _, names in pairs]


def _class_names(path: Path) -> tuple[str, ...]:
    """The first synonym of each class, with the synset's number where two share it; else numbers."""
    known = _synsets(path)
    if len(known) < FIRST:
        return tuple(f"class {k}" for k in range(FIRST))
    often = Counter(name for _, name in known)
    return tuple(name if often[name] == 1 else f"{name} ({wnid})" for wnid, name in known)


# ILSVRC12's validation pictures of WebVision's classes: a folder for each of the 1000 classes, named by synset; or all
# pictures in one folder with val.txt (`NAME NUMBER`, numbers by sorted synset) or LOC_val_solution.csv (`NAME,SYNSET ...`).

PLACES = ("ilsvrc12", "imagenet/val", "imagenet", "ILSVRC2012_img_val")  # looked for beside WebVision's own folders
NUMBERED, NAMED = "val.txt", "LOC_val_solution.csv"


def second_test_at(root: Path, given: Path | None) -> Path | None:
    """Where the second test set is: as given, else in one of the usual folders below WebVision's; None where there is none."""
    if given is not None:
        if not given.is_dir():
            raise ToolError(f"{given}: no such folder of ILSVRC12's validation pictures; check --second-test")
        return given
    return next((root / name for name in PLACES if (root / name).is_dir()), None)


def list_second_test(path: Path, root: Path, options: PictureOptions) -> Listing:
    """ILSVRC12's pictures at `path` of the classes of WebVision at `root`, in WebVision's numbers, as test rows."""
    classes, wnids = _class_names(root), [wnid for wnid, _ in _synsets(root)]
    folders = [name for name in visible_folders(path) if name[:1] == "n" and name[1:].isdecimal()]
    found = _by_folder(path, folders, classes, wnids) if folders else _flat(path, classes, wnids)
    if not found:
        raise ToolError(f"{path}: no picture of the {len(classes)} classes; is it ILSVRC12's validation set?")
    return _listing(path, {TEST: dict(sorted(found.items()))}, classes, options)


def _by_folder(path: Path, folders: Sequence[str], classes: Sequence[str], wnids: Sequence[str]) -> dict[str, int]:
    """Both sets number the sorted synsets, so without names the whole thousand tell."""
    if not wnids and len(folders) not in (CLASSES, len(classes)):
        raise ToolError(
            f"{path}: {len(folders)} class folders, and WebVision's info/synsets.txt is missing, so which is which cannot be "
            f"told; add info/synsets.txt, or all {CLASSES} folders"
        )
    numbers = {wnid: k for k, wnid in enumerate(wnids or sorted(folders)[: len(classes)])}
    return {name: numbers[folder] for folder in folders if folder in numbers for name in walk(path / folder, path, Counter())}


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
                found[_inside(f"{row[0]}.JPEG", file, number)] = numbers[wnid]
    return found


WEBSETS = {
    "clothing1m": WebSet(
        "clothing1m",
        "Clothing1M",
        (NOISY, KEYS[TRAIN][0]),
        (NOISY, CLEAN, *(keys for keys, _ in KEYS.values()), "images"),
        (0.6959, 0.6537, 0.6371),
        (0.3113, 0.3192, 0.3214),
        _clothing1m,
    ),
    "webvision": WebSet(
        "webvision",
        "WebVision 1.0",
        (TRAIN_LIST, VAL_LIST),
        (TRAIN_LIST, VAL_LIST, "google", VAL_FOLDER),
        (0.485, 0.456, 0.406),
        (0.229, 0.224, 0.225),
        _webvision,
    ),
}
