"""Opens an .npz of pictures, bytes or floats in any axis order, as a `Collection` of uint8 (N, C, H, W).

Keys: `images` and `labels`; optional `true_labels`, `classes`, `ids`, `test_images`, `test_labels`, `val_images`, `val_labels`,
`mirror`. The names that Keras, MedMNIST and others give them are in `npz`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.data.noisy_data import (
    Collection,
    Held,
    Loaded,
    NoisyData,
    Truth,
    channel_statistics,
    checked,
    checked_held,
    checked_truth,
)
from labelsieve.data.npz import (
    Array,
    held_keys,
    ids_by_key,
    keys_by_role,
    misshapen,
    nothing_found,
    plain_labels,
    read_npz,
    sample_keys,
    words,
)
from labelsieve.data.pictures.decode import WHITEST, about_white, common_white, counted, narrowing, white_for
from labelsieve.data.pictures.listing import MISSING, TEST, TRAIN, VAL, name_labels, trained_classes
from labelsieve.data.pictures.options import named
from labelsieve.errors import ToolError, UsageError, suggest

CHANNELS = (1, 3, 4)
WHITE = 1.001  # rounding takes what is 0..1 a little beyond 1, resizing some hundredths


def channels_first(pixels: Array, place: str) -> Array:
    """(N, H, W), (N, H, W, C) or (N, C, H, W) to (N, C, H, W).

    The rule for four axes: 1, 3 or 4 in the last place are the channels, else 1, 3 or 4 in the second. Where
    both would do (pictures 3 or 4 pixels wide), the last place wins.
    """
    if pixels.ndim not in (3, 4) or 0 in pixels.shape[1:]:
        raise ToolError(f"{place}: the shape is {pixels.shape}; pictures must be (N, H, W), (N, H, W, C) or (N, C, H, W)")
    if pixels.ndim == 3:
        return pixels[:, None]
    if pixels.shape[3] in CHANNELS:
        return np.moveaxis(pixels, 3, 1)
    if pixels.shape[1] in CHANNELS:
        return pixels
    raise ToolError(
        f"{place}: the shape {pixels.shape} has 1, 3 or 4 channels neither in the last nor in the "
        f"second place; store pictures as (N, H, W, C) or (N, C, H, W)"
    )


def brightest(pixels: Array, place: str) -> float:
    """The largest value, or a `ToolError` for values that are not numbers, not finite or negative."""
    if pixels.dtype.kind not in "uif":
        raise ToolError(f"{place}: the values are {pixels.dtype}; store pictures as uint8 or as floats")
    if pixels.size == 0:
        return 0.0
    if pixels.dtype.kind == "f":
        _raise_at(~np.isfinite(pixels), "has a value that is NaN or infinite; remove or fix the picture", place)
    _raise_at(pixels < 0, "has a negative value; store pictures as 0..255 or as floats in 0..1", place)
    return float(pixels.max())


def white_of(top: float, place: str) -> float:
    """What is white in floats whose largest value is `top`: 1 or 255. A little over 1 is neither: all would be nearly black."""
    if WHITE < top < 2:
        raise ToolError(f"{place}: the largest value is {top:g}, where 0..1 and 0..255 are possible; clip pictures to 0..1")
    return 1.0 if top <= WHITE else 255.0


def is_wide(pixels: Array) -> bool:
    """Whether these are whole numbers of 16 bits."""
    return pixels.dtype.kind in "ui" and pixels.dtype.itemsize == 2


def as_bytes(pixels: Array, top: float, place: str, white: int | None = None) -> Tensor:
    """uint8 (N, C, H, W). Whole numbers are 0..255; floats are 0..1 when `top` is at most 1, else 0..255.

    In numbers of 16 bits `white` becomes 255, as in picture files; unless it is given, `top` says what is white.
    """
    if is_wide(pixels):
        return torch.from_numpy(np.ascontiguousarray(narrowing(white or white_for(top))[pixels]))
    if top > 255:
        raise ToolError(f"{place}: the largest value is {top:g}; store pictures as 0..255, uint16 or floats in 0..1")
    if pixels.dtype.kind == "f":
        wide = pixels.astype(np.promote_types(pixels.dtype, np.float32))
        pixels = np.rint(wide * 255 if white_of(top, place) == 1 else wide)
    whole: NDArray[np.uint8] = np.ascontiguousarray(pixels, dtype=np.uint8)
    return torch.from_numpy(whole)


def _raise_at(bad: NDArray[np.bool_], what: str, place: str) -> None:
    rows = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
    if len(rows):
        raise ToolError(f"{place}: row {rows[0]} {what} ({len(rows)} such rows)")


REQUIRED = ("images", "labels")
OPTIONAL = ("true_labels", "classes", "ids", "test_images", "test_labels", "val_images", "val_labels", "mirror")
SPLITS = {"val": VAL, "test": TEST}


def without_label(labels: Array) -> NDArray[np.bool_]:
    """(N,) where labels (N,) say nothing."""
    if labels.dtype.kind in "US":
        return np.char.str_len(np.char.strip(labels)) == 0
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    return labels == MISSING if labels.dtype.kind == "i" else np.zeros(len(labels), bool)


def labelled_rows(arrays: Mapping[str, Array], found: Mapping[str, str], path: Path) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Rows keep the names that they have by their place in the file. A test set without any label is no test set."""
    left, notes = dict(arrays), []
    left.setdefault("ids", np.array([f"{row:05d}" for row in range(len(arrays[found["labels"]]))]))
    bare = _leave_out(left, found["labels"], (found["values"], "ids", "true_labels"))
    if bare and not len(left[found["labels"]]):
        raise ToolError(f"{path}: no row has a label; are these the right labels?")
    notes += [f"{bare:,} rows have no label: left out"] if bare else []
    for split in ("test", "val"):
        pair = held_keys(found, split, arrays, path)
        bare = 0 if pair is None else _leave_out(left, pair[1], (pair[0],))
        notes += [f"{bare:,} {split} rows have no label: left out"] if bare else []
        if pair is not None and bare and not len(left[pair[1]]):
            del left[pair[0]], left[pair[1]]
    return left, tuple(notes)


def _leave_out(arrays: dict[str, Array], labels: str, others: Sequence[str]) -> int:
    """Take the rows without a label out of the labels and of what goes with them; how many these are."""
    column = plain_labels(arrays, labels)
    bare = without_label(column) if column.ndim == 1 else np.zeros(0, bool)
    for key in (*others, labels):  # arrays of other lengths are refused by who reads them
        if bare.any() and key in arrays and arrays[key].ndim and len(arrays[key]) == len(bare):
            arrays[key] = arrays[key][~bare]
    return int(bare.sum())


def load_arrays(path: Path | None) -> Collection:
    """`read_arrays`, without its validation pictures."""
    return read_arrays(path).collection


def read_arrays(path: Path | None, skip_unlabelled: bool = False, white: int | None = None) -> Loaded:
    """What the .npz at `path` holds. Unless it says otherwise, pictures may be mirrored.

    Its test set is that of the test keys, else that of the val keys. Rows without a label are refused, or left out and told.
    `white` is the value that is white in 16-bit pictures; found out where it is not said.
    """
    if path is None:
        raise UsageError('arrays needs a file: write "arrays:FILE.npz", with the keys images and labels')
    if not path.is_file():
        raise ToolError(f"{path}: no such file; write it with numpy.savez(file, images=..., labels=...)")
    arrays = read_npz(path)
    found = _check_keys(arrays, path)
    notes: tuple[str, ...] = ()
    if skip_unlabelled:
        arrays, notes = labelled_rows(arrays, found, path)
        found = {role: key for role, key in found.items() if key in arrays}
    values = [key for role, key in found.items() if role.endswith("values")]
    pictures, white, depths = _pictures(arrays, values, path, white)
    notes = (*notes, *about_white(depths, white or WHITEST))
    place = f'{path}: "{found["labels"]}"'
    labels, classes, numbered = _classes(plain_labels(arrays, found["labels"]), arrays, place, path)
    true_labels = None
    if "true_labels" in arrays:
        true_labels = _labels(arrays["true_labels"], classes, numbered, f'{path}: "true_labels"')
    held = {}
    for split in ("test", "val"):
        if (pair := held_keys(found, split, arrays, path)) is not None:
            codes = _labels(plain_labels(arrays, pair[1]), classes, numbered, f'{path}: "{pair[1]}"')
            held[split] = Held(pictures[pair[0]], codes)
    rows = without_empty(Numbered(labels, true_labels, held, classes), path)
    ids = _ids(arrays, len(labels), path)
    train = checked(NoisyData(pictures[found["values"]], rows.labels, ids, rows.classes), str(path))
    truth = None if rows.truth is None else checked_truth(Truth(rows.truth), train, str(path))
    held = {split: checked_held(one, train, str(path)) for split, one in rows.held.items()}
    mean, std = channel_statistics(train.images)
    test = held.get("test") or held.get("val")
    collection = Collection("arrays", train, truth, test, mean, std, mirror=_mirror(arrays, path), white=white)
    return Loaded(collection, held.get("val"), (*notes, *rows.notes))


def new_pictures(path: Path, white: int | None = None) -> tuple[list[str], Tensor]:
    """Ids (N,) and pictures uint8 (N, C, H, W) of an .npz that needs no labels, of every split.

    Without ids, rows to train on are numbered as above; those of other splits are "val/00000" and "test/00000".
    """
    arrays = read_npz(path)
    keys = sample_keys(arrays, path)
    pictures = _pictures(arrays, list(keys.values()), path, white)[0]
    one = pictures[keys[""]].shape[1:]
    for key, some in pictures.items():
        if some.shape[1:] != one:
            raise ToolError(
                f'{path}: one picture of "{key}" is {tuple(some.shape[1:])}, of "{keys[""]}" {tuple(one)}; make them alike'
            )
    counts = {key: len(some) for key, some in pictures.items()}
    given = _ids(arrays, 0, path) if "ids" in arrays else None
    return ids_by_key(keys, counts, given, path), torch.cat(list(pictures.values()))


def _check_keys(arrays: dict[str, Array], path: Path) -> dict[str, str]:
    """Which key holds what; one that is like a known name is an error. Others, such as file names, are not used."""
    found = keys_by_role(arrays, path)
    if not found:
        raise nothing_found(arrays, path)
    known = (*REQUIRED, *OPTIONAL)
    for key in arrays:
        if key not in known and key not in found.values() and suggest(key, known):
            raise ToolError(f'{path}: unknown key "{key}"{suggest(key, known)}; the keys are {", ".join(known)}')
    for key, role in zip(REQUIRED, ("values", "labels")):
        if role not in found:
            raise ToolError(f'{path}: the key "{key}" is missing; {" and ".join(REQUIRED)} are needed')
    return found


def _pictures(
    arrays: dict[str, Array], keys: Sequence[str], path: Path, white: int | None
) -> tuple[dict[str, Tensor], int | None, tuple[int, ...]]:
    """The pictures under each key; floats of all are scaled alike, by the largest of their largest values; so are 16 bits.

    Also what is white in 16-bit pictures, None where there are none, and how many of these use how many bits.
    """
    shaped = {key: channels_first(arrays[key], f'{path}: "{key}"') for key in keys}
    tops = {key: brightest(shaped[key], f'{path}: "{key}"') for key in keys}
    float_top = max((tops[key] for key in keys if shaped[key].dtype.kind == "f"), default=0.0)
    wide = [shaped[key] for key in keys if is_wide(shaped[key])]
    depths = counted(top for some in wide for top in some.reshape(len(some), -1).max(1).tolist())
    white = (white or common_white(depths)) if wide else None
    ready = {}
    for key in keys:
        top = float_top if shaped[key].dtype.kind == "f" else tops[key]
        ready[key] = as_bytes(shaped[key], top, f'{path}: "{key}"', white)
    return ready, white, depths


def _classes(labels: Array, arrays: dict[str, Array], place: str, path: Path) -> tuple[Tensor, tuple[str, ...], bool]:
    """The training labels, the class names, and whether whole numbers are places among these rather than names.

    The classes are those given; else the labels' own, text in order of its letters, numbers in their order.
    """
    given = words(arrays["classes"], f'{path}: "classes"') if "classes" in arrays else None
    whole = labels.dtype.kind in "ui" and labels.ndim == 1 and labels.size > 0
    numbers = sorted(set(labels.tolist())) if whole else []
    if given is None and whole and numbers[0] < 0:
        raise ToolError(
            f"{place} run from {numbers[0]} to {numbers[-1]}, and a negative number often stands for no label; leave such "
            f"rows out ({named('skip_unlabelled')} does so where it is -1), number the classes from 0, or store labels as text"
        )
    if given is None:
        numbered = numbers == list(range(len(numbers)))
        own = name_labels(labels.tolist(), place).classes if labels.ndim == 1 else ()
        given = tuple(sorted(own)) if labels.dtype.kind in "US" else own
    else:  # by place as far as that can be; else the numbers may be the names
        numbered = not whole or numbers[-1] < len(given) or not set(map(str, numbers)) <= set(given)
    return _labels(labels, given, numbered, place), given, numbered


def _labels(labels: Array, classes: Sequence[str], numbered: bool, place: str) -> Tensor:
    """Places among the class names, by name or as they are: int64 (N,)."""
    if labels.ndim != 1:
        raise misshapen(labels, place)
    if numbered and labels.dtype.kind in "ui":
        return torch.from_numpy(labels.astype(np.int64))
    codes = name_labels(labels.tolist(), place, classes).codes
    missing = np.flatnonzero(codes == MISSING)
    if len(missing):
        raise ToolError(
            f"{place}: {len(missing)} rows have no label, the first is row {missing[0] + 1}; fill them in, or leave such rows "
            f"out with {named('skip_unlabelled')}"
        )
    return torch.from_numpy(codes)


def _ids(arrays: dict[str, Array], count: int, path: Path) -> tuple[str, ...]:
    if "ids" in arrays:
        return words(arrays["ids"], f'{path}: "ids"')
    return tuple(f"{row:05d}" for row in range(count))


def _mirror(arrays: dict[str, Array], path: Path) -> bool:
    if "mirror" not in arrays:
        return True
    value = arrays["mirror"]
    if value.size != 1 or value.reshape(-1)[0] not in (0, 1):
        raise ToolError(f'{path}: "mirror" must be one true or false value')
    return bool(value.reshape(-1)[0])


@dataclass(frozen=True)
class Numbered:
    """Labels (N,), true ones or None, and sets to measure on, all as numbers of `classes`; and what should be said."""

    labels: Tensor
    truth: Tensor | None
    held: Mapping[str, Held]  # of "test" and "val"
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()


def without_empty(found: Numbered, path: Path) -> Numbered:
    """Numbered anew, less the classes without a training row and the rows to measure on that are of these.

    Labels that number no class, and classes that only true labels have, are left to who checks the rows.
    """
    count = len(found.classes)
    parts = {TRAIN: found.labels} | {split: found.held[name].labels for name, split in SPLITS.items() if name in found.held}
    if any(len(codes) and not (int(codes.min()) >= 0 and int(codes.max()) < count) for codes in parts.values()):
        return found
    present = torch.bincount(found.labels, minlength=count) > 0
    if present.all() or (found.truth is not None and not present[found.truth.clamp(0, count - 1)].all()):
        return found
    splits = np.repeat(np.array(list(parts), np.int8), [len(codes) for codes in parts.values()])
    joined, classes, notes = trained_classes(torch.cat(list(parts.values())).numpy(), splits, found.classes, path)
    anew = torch.cumsum(present, 0) - 1
    held = {name: _known(one, torch.from_numpy(joined[splits == SPLITS[name]])) for name, one in found.held.items()}
    truth = None if found.truth is None else anew[found.truth]
    return Numbered(anew[found.labels], truth, {name: one for name, one in held.items() if len(one.labels)}, classes, notes)


def _known(held: Held, codes: Tensor) -> Held:
    """The rows that have a class, with their new numbers; one too few or too many is told by who checks the rows."""
    if len(held.images) != len(codes):
        return Held(held.images, codes)
    return Held(held.images[codes >= 0], codes[codes >= 0])
