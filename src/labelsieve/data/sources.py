"""Opens a source of rows, such as `digits` or `cifar10:PATH`, as a `Collection`.

To add one, write a loader that takes a path (or None) and calls `checked`; list it in `SOURCES` and `FORMS`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from labelsieve.data.arrays import load_arrays, read_arrays
from labelsieve.data.cifar import load_cifar10, load_cifar100
from labelsieve.data.draws import Draws, stratified_rows
from labelsieve.data.embeddings import load_embeddings
from labelsieve.data.fashion import load_fashion
from labelsieve.data.noisy_data import MEMORY, Collection, Held, Loaded, NoisyData, Truth, channel_statistics, checked
from labelsieve.data.pictures.decoding import Progress, Read, decoded
from labelsieve.data.pictures.opening import Check, Opened, Tell, load_pictures, load_web_set, open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import Layout, recognise
from labelsieve.data.pictures.websets import WEBSETS, web_set_at
from labelsieve.doors import reading
from labelsieve.errors import UsageError, suggest

SPLIT_STREAM, SPLIT_SEED = 1, 0
BRIGHTEST = 16
Loader = Callable[[Path | None], Collection]
FORMS = {
    "digits": "digits",
    "cifar10": "cifar10:PATH",
    "cifar100": "cifar100:PATH",
    "fashion-mnist": "fashion-mnist[:PATH]",
    "arrays": "arrays:FILE.npz",
    "embeddings": "embeddings:FILE",
    "pictures": "pictures:PATH",
    **{name: f"{name}:PATH" for name in WEBSETS},
}
OWN = ("pictures", "embeddings", *WEBSETS)  # read by `open_own`, with the user's choices
SUBSET_STREAM, SUBSET_SEED = 2, 0


def whole_path(place: Path | str) -> str:
    return str(Path(place).expanduser().absolute())


def whole_spec(spec: str) -> str:
    """`name:PATH` with its path made whole; a name alone stays as it is."""
    name, colon, path = spec.partition(":")
    return f"{name}:{whole_path(path)}" if colon and path else spec


def load_digits(path: Path | None) -> Collection:
    """The collection `digits`. It ships with scikit-learn, so `path` must be None."""
    if path is not None:
        raise UsageError(f'digits come with scikit-learn and take no path; write "digits", not "digits:{path}"')
    from sklearn.datasets import load_digits as bundled  # a second to import, and no other source needs it

    source = bundled()
    labels = source.target.astype(np.int64)
    pixels = np.rint(source.images * (255 / BRIGHTEST)).astype(np.uint8)
    held = np.zeros(len(labels), bool)
    held[stratified_rows(labels, round(len(labels) / 4), Draws(SPLIT_STREAM, SPLIT_SEED))] = True
    images, targets = torch.from_numpy(pixels)[:, None], torch.from_numpy(labels)
    rows, test_rows = torch.from_numpy(np.flatnonzero(~held)), torch.from_numpy(np.flatnonzero(held))
    ids = tuple(f"{row:04d}" for row in rows.tolist())
    names = tuple(str(digit) for digit in range(10))
    train = checked(NoisyData(images[rows], targets[rows], ids, names), "digits")
    mean, std = channel_statistics(train.images)
    test = Held(images[test_rows], targets[test_rows])
    return Collection("digits", train, Truth(train.labels.clone()), test, mean, std, mirror=False)


SOURCES: dict[str, Loader] = {
    "digits": load_digits,
    "cifar10": load_cifar10,
    "cifar100": load_cifar100,
    "fashion-mnist": load_fashion,
    "arrays": load_arrays,
    "embeddings": load_embeddings,
    "pictures": load_pictures,
    **{name: partial(load_web_set, name) for name in WEBSETS},
}


def source_at(text: str, options: PictureOptions | None = None) -> str:
    """What the user wrote as a spec with an absolute path: `digits` stays, a plain path is looked at.

    A known name wins over a file of the same name, for which one writes ./name. Without `options`, what a folder's tables
    hold cannot be told yet: it is left to who opens it.
    """
    name = text.partition(":")[0]
    if name in SOURCES:
        return whole_spec(text)
    place = Path(text).expanduser()
    if not place.exists():
        forms = ", ".join(FORMS.values())
        raise UsageError(
            f'"{text}" is neither a file or folder nor a known data set{suggest(name, SOURCES)}{_beside(place)}; give a folder '
            f"of class folders, a table, a saved data set or arrays, or one of {forms}"
        )
    if options is None and place.is_dir():
        web_set = web_set_at(place)
        return f"{'pictures' if web_set is None else web_set.name}:{whole_path(place)}"
    kind = recognise(place, options).kind
    return f"{kind if kind in ('arrays', 'embeddings', *WEBSETS) else 'pictures'}:{whole_path(place)}"


def _beside(place: Path) -> str:
    """The nearest name in the folder where a path stops existing."""
    while not place.parent.is_dir() and place.parent != place:
        place = place.parent
    try:
        near = suggest(place.name, sorted(entry.name for entry in place.parent.iterdir()))
    except OSError:
        return ""
    return near.replace("did you mean", f"in {place.parent} did you mean") if near else ""


def open_own(
    spec: str,
    options: PictureOptions,
    progress: Progress | None = None,
    tell: Tell | None = None,
    limit: int | None = None,
    check: Check | None = None,
    read: Read = decoded,
) -> Opened:
    """The user's own data, read as `options` say. Of pictures, a `limit` chooses training rows before any is opened."""
    name, _, path = spec.partition(":")
    if not path:
        raise UsageError(f'"{spec}" names no place; write {FORMS[name]}')
    place = Path(path).expanduser()
    layout = Layout(name, place, "as named") if name in WEBSETS else None
    choose = None if limit is None else partial(subset_rows, limit=limit)
    return open_pictures(place, options, progress, tell, layout, choose, check, read)


def open_source(spec: str, options: PictureOptions) -> Opened | Loaded:
    """The user's own data or a known set, read as `options` say."""
    is_own = spec.partition(":")[0] in OWN
    return open_own(spec, options) if is_own else load_data(spec, options.skip_unlabelled, options.white)


def open_data(spec: str, limit: int | None = None) -> Collection:
    """The collection that `spec` names; with `limit`, a fixed choice, by class, of so many training rows.

    The test set stays whole, and mean and standard deviation stay those of all rows.
    """
    collection = load_data(spec).collection
    return collection if limit is None else limited(collection, limit)


def load_data(spec: str, skip_unlabelled: bool = False, white: int | None = None) -> Loaded:
    """What `spec` names, and what should be said of it. Only files of arrays can lack labels; others have one for each row."""
    name, colon, path = spec.partition(":")
    if spec == MEMORY:
        raise UsageError(
            "this run's data were in a program's memory, not in a file; save them with `ids` as in issues.csv and name that "
            "file with --data, or continue in Python: the same fit with the same run_dir"
        )
    if name not in SOURCES:
        raise UsageError(f'unknown data "{name}"{suggest(name, SOURCES)}; the forms are {", ".join(FORMS.values())}')
    if colon and not path:
        raise UsageError(f'"{spec}" has nothing after the colon; write {FORMS[name]}')
    place = Path(path).expanduser() if path else None
    with reading(place or name, "write or fetch the data again"):
        return read_arrays(place, skip_unlabelled, white) if name == "arrays" else Loaded(SOURCES[name](place))


def subset_rows(labels: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """A fixed choice, by class, of `limit` rows with these labels (N,), ascending; at most all."""
    if limit >= len(labels):
        return np.arange(len(labels))
    present = len(np.unique(labels))
    if limit < present:
        raise UsageError(f"a limit of {limit} cannot hold {present} classes; give one for each")
    return stratified_rows(labels, limit, Draws(SUBSET_STREAM, SUBSET_SEED))


def limited(collection: Collection, limit: int) -> Collection:
    """The collection with `limit` of its training rows, in order and with their ids; at most all."""
    if limit >= len(collection.train):
        return collection
    labels = collection.train.labels.numpy()
    if limit < len(collection.train.classes):
        raise UsageError(f"a limit of {limit} cannot hold {len(collection.train.classes)} classes; give one for each")
    rows = torch.from_numpy(subset_rows(labels, limit))
    truth = None if collection.truth is None else Truth(collection.truth.labels[rows])
    paths = None if collection.paths is None else tuple(collection.paths[row] for row in rows.tolist())
    return replace(collection, train=collection.train.rows(rows), truth=truth, paths=paths)


def tested_on(collection: Collection, limit: int) -> Collection:
    """The collection with `limit` of its test pictures, a fixed choice by class; without test pictures, as it is."""
    return collection if collection.test is None else replace(collection, test=some_held(collection.test, limit))


def some_held(held: Held, limit: int) -> Held:
    """`limit` of the pictures, always the same ones of the same set."""
    if limit >= len(held.labels):
        return held
    present = len(held.labels.unique())
    if limit < present:
        raise UsageError(f"a limit of {limit} cannot hold {present} classes of test pictures; give one for each")
    rows = torch.from_numpy(stratified_rows(held.labels.numpy(), limit, Draws(SUBSET_STREAM, SUBSET_SEED)))
    return held.rows(rows)
