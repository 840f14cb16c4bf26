"""Clothing1M, WebVision and ILSVRC12's validation set in their official layouts, with a few tiny pictures each."""

from pathlib import Path

import numpy as np
from PIL import Image

from .made import save

# Where a bright stripe lies tells the class; the lists' order is not the classes' order.
SIDE = 24


def striped(label: int, seed: int, side: int = SIDE) -> Image.Image:
    """A picture, wider than high, whose bright stripe lies where its class says."""
    pixels = np.random.default_rng(seed).integers(0, 70, (side, side + 8, 3), dtype=np.uint8)
    pixels[4 * (label % 5) : 4 * (label % 5) + 4] += 150
    return Image.fromarray(pixels)


def write_lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def clothing1m(root: Path, train: int = 48, held: int = 9, classes: int = 3, wrong: float = 0.2) -> Path:
    """annotations/ and images/, every fifth noisy label wrong; keys as in the official lists: images/7/12/name.jpg."""
    noisy, clean, keys = [], [], {"noisy_train": [], "clean_val": [], "clean_test": []}  # type: ignore[var-annotated]
    step = round(1 / wrong) if wrong else train + 1
    for part, (split, count) in enumerate((("noisy_train", train), ("clean_val", held), ("clean_test", held))):
        for k in range(count):
            label, key = k % classes, f"images/{part}/{k % 3}/{split}{k},{k}.jpg"
            save(striped(label, 1000 * part + k), root / key, quality=95)
            keys[split].append(key)
            is_wrong = split == "noisy_train" and k % step == 0
            (noisy if split == "noisy_train" else clean).append(f"{key} {(label + is_wrong) % classes}")
    for split, names in keys.items():
        write_lines(root / "annotations" / f"{split}_key_list.txt", names[::-1])
    write_lines(root / "annotations" / "noisy_label_kv.txt", [*noisy, "images/9/9/unlisted.jpg 13"])
    write_lines(root / "annotations" / "clean_label_kv.txt", clean)
    return root


def webvision(root: Path, train: int = 48, held: int = 9, classes: int = 3, names: bool = True) -> Path:
    """info/, google/ and val_images_256/; the lists also name classes beyond the first 50, whose pictures are not there."""
    listed, val = ["google/q0777/far.jpg 777"], ["val999999.jpg 50"]
    for k in range(train):
        label = k % classes
        key = f"google/q{label:04d}/a b{k}.jpg" if k == 5 else f"google/q{label:04d}/{k}.jpg"
        save(striped(label, k), root / key, quality=95)
        listed.append(f"{key} {label}")
    for k in range(held):
        save(striped(k % classes, 5000 + k), root / "val_images_256" / f"val{k:06d}.jpg", quality=95)
        val.append(f"val{k:06d}.jpg {k % classes}")
    write_lines(root / "info" / "train_filelist_google.txt", listed)
    write_lines(root / "info" / "val_filelist.txt", val)
    if names:
        write_lines(root / "info" / "synsets.txt", [f"{wnid(k)} thing {k}, other name" for k in range(1000)])
    return root


def wnid(number: int) -> str:
    return f"n{1440764 + number:08d}"


def imagenet_folders(root: Path, classes: int = 3, each: int = 3, folders: int = 6) -> Path:
    """A folder a synset; classes that WebVision's part does not have are there too."""
    for label in range(folders):
        for k in range(each):
            name = f"ILSVRC2012_val_{label * each + k:08d}.JPEG"
            save(striped(label, 9000 + label * each + k), root / wnid(label) / name, format="JPEG")
    return root


def imagenet_flat(root: Path, labels_in: str = "val.txt", classes: int = 3, each: int = 3) -> Path:
    """All pictures in one folder, with val.txt or LOC_val_solution.csv."""
    lines = ["ImageId,PredictionString"] if labels_in.endswith("csv") else ["ILSVRC2012_val_00099999.JPEG 999"]
    for k in range(classes * each):
        label, name = k % classes, f"ILSVRC2012_val_{k:08d}"
        save(striped(label, 9000 + k), root / f"{name}.JPEG", format="JPEG")
        lines.append(f"{name},{wnid(label)} 85 1 499 272" if labels_in.endswith("csv") else f"{name}.JPEG {label}")
    write_lines(root / labels_in, lines)
    return root
