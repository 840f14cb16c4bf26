"""Lists the first 50 classes of WebVision 1.0 in its official folder: Google's and the validation pictures.

Read are info/train_filelist_google.txt with google/, info/val_filelist.txt with val_images_256/, and the classes' names in
info/synsets.txt where it is there.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from labelsieve.data.pictures.listing import TEST, TRAIN, Listing
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.textlists import labelled_keys, lines_of

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLASSES, FIRST = 1000, 50
TRAIN_LIST, VAL_LIST, SYNSETS = "info/train_filelist_google.txt", "info/val_filelist.txt", "info/synsets.txt"
VAL_FOLDER = "val_images_256"
NEEDED = (TRAIN_LIST, VAL_LIST, "google", VAL_FOLDER)


def looks_like(path: Path) -> bool:
    return (path / TRAIN_LIST).is_file() or (path / VAL_LIST).is_file()


def read(path: Path, options: PictureOptions) -> Listing:
    """Rows train (google/...), test (val_images_256/...); ids are the paths from the folder."""
    train = {key: label for key, label in labelled_keys(path / TRAIN_LIST, CLASSES).items() if label < FIRST}
    val = {f"{VAL_FOLDER}/{key}": label for key, label in labelled_keys(path / VAL_LIST, CLASSES).items() if label < FIRST}
    ids = [*train, *val]
    labels = np.array([*train.values(), *val.values()], np.int64)
    splits = np.array([TRAIN] * len(train) + [TEST] * len(val), np.int8)
    return Listing(path, Files(path, ids, options.outside), ids, labels, class_names(path), splits)


def synsets(path: Path) -> tuple[tuple[str, str], ...]:
    """(n01440764, "tench") of the first classes, in order; nothing where info/synsets.txt is not there."""
    file = path / SYNSETS
    if not file.is_file():
        return ()
    pairs = [line.strip().partition(" ") for line in lines_of(file)[:FIRST]]
    return tuple((wnid, names.partition(",")[0].strip() or wnid) for wnid, _, names in pairs)


def class_names(path: Path) -> tuple[str, ...]:
    """The first synonym of each class, with the synset's number where two share it; else numbers."""
    known = synsets(path)
    if len(known) < FIRST:
        return tuple(f"class {k}" for k in range(FIRST))
    often = Counter(name for _, name in known)
    return tuple(name if often[name] == 1 else f"{name} ({wnid})" for wnid, name in known)
