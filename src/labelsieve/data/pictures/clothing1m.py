"""Lists Clothing1M's official folder: noisy training, clean validation and clean test pictures.

Read are annotations/ (labels as `images/... 7`, one list of keys a split) and the pictures of those keys below images/.
"""

from pathlib import Path

import numpy as np

from labelsieve.data.pictures.listing import TEST, TRAIN, VAL, Listing
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.textlists import keys_in, labelled_keys
from labelsieve.errors import ToolError

CLASSES = (
    "T-Shirt",
    "Shirt",
    "Knitwear",
    "Chiffon",
    "Sweater",
    "Hoodie",
    "Windbreaker",
    "Jacket",
    "Downcoat",
    "Suit",
    "Shawl",
    "Dress",
    "Vest",
    "Underwear",
)
MEAN, STD = (0.6959, 0.6537, 0.6371), (0.3113, 0.3192, 0.3214)
NOISY, CLEAN = "annotations/noisy_label_kv.txt", "annotations/clean_label_kv.txt"
KEYS = {
    TRAIN: ("annotations/noisy_train_key_list.txt", NOISY),
    VAL: ("annotations/clean_val_key_list.txt", CLEAN),
    TEST: ("annotations/clean_test_key_list.txt", CLEAN),
}
NEEDED = (NOISY, CLEAN, *(keys for keys, _ in KEYS.values()), "images")


def looks_like(path: Path) -> bool:
    return (path / NOISY).is_file() or (path / KEYS[TRAIN][0]).is_file()


def read(path: Path, options: PictureOptions) -> Listing:
    """Rows train, val, test; ids are the keys, such as images/0/12/a.jpg."""
    labels = {file: labelled_keys(path / file, len(CLASSES)) for file in (NOISY, CLEAN)}
    ids: list[str] = []
    codes: list[int] = []
    splits: list[int] = []
    for split, (file, labelled) in KEYS.items():
        keys, known = keys_in(path / file), labels[labelled]
        unknown = [key for key in keys if key not in known]
        if unknown:
            raise ToolError(
                f"{path / file}: {len(unknown):,} of {len(keys):,} keys have no label in {labelled}, "
                f'the first is "{unknown[0]}"; the annotations do not belong together: unpack them again'
            )
        ids += keys
        codes += [known[key] for key in keys]
        splits += [split] * len(keys)
    return Listing(path, Files(path, ids, options.outside), ids, np.array(codes, np.int64), CLASSES, np.array(splits, np.int8))
