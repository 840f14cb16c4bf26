"""Opens labelled pictures to measure on, in the shape and with the classes of a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelsieve.data.arrays import read_arrays
from labelsieve.data.embeddings import measured_vectors
from labelsieve.data.noisy_data import Collection, Held
from labelsieve.data.pictures.cache import default_cache_dir
from labelsieve.data.pictures.decode import WHITEST
from labelsieve.data.pictures.decoding import Plan, Progress, Read, decoded
from labelsieve.data.pictures.listing import SPLITS, TEST, TRAIN, VAL, LeftOut, Listing, readable_name, spelt_as, untrained
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.presence import about_changed, about_gone, present, remember, unreadable
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.errors import ToolError, suggest
from labelsieve.texts import quoted


@dataclass(frozen=True)
class Found:
    """Pictures with labels in the model's numbers, what was left out, which split they are of, what should be said of them.

    `memory` says which files were there.
    """

    held: Held
    left_out: tuple[LeftOut, ...] = ()
    split: str = "all"
    notes: tuple[str, ...] = ()
    memory: Path | None = None


def labelled_pictures(
    path: Path,
    options: PictureOptions,
    shape: Sequence[int],
    classes: Sequence[str],
    progress: Progress | None = None,
    read: Read = decoded,
    arrays: Callable[[Collection], Collection] = lambda found: found,
) -> Found:
    """What lies at `path`, decoded to `shape`: its test split, else its val split, else all of it. Classes go by name.

    Rows of the training split need not be there; but where some are listed, only their classes are known, as in a run on the
    same data. `read` and `arrays` are how pictures become what the model reads, where that is not their pixels.
    """
    # Its own labels are matched with the model's below, where the message can say so.
    options = replace(options, measuring=True, classes=None)
    layout = recognise(path, options)
    if not layout.has_pictures:
        if layout.kind != "embeddings":
            seen = arrays(read_arrays(path, options.skip_unlabelled, options.white).collection)
            return held_rows(seen, shape, classes, str(path))
        found = measured_vectors(path, options)
        return _fitting(found.held, found.classes, found.split, shape, classes, str(path))
    if len(shape) != 3 and read is decoded:
        raise ToolError(f"{path}: pictures, and this model reads vectors of {shape[0]} numbers; give vectors")
    listed = list_pictures(layout, options)
    listing = present(listed, options.strict, options.known)
    cache = (options.cache_dir or default_cache_dir()).expanduser()
    everything, (listing, notes) = listing, _measured(listing, listed)
    labels = matched(listing.labels, listing.classes, classes, str(path))
    digest = listing.origin.digest(options.by_content)
    channels = shape[0] if len(shape) == 3 else 3
    plan = Plan(shape[-1], channels, options.fit, len(listing), options.white or WHITEST)
    place = cache / plan.key(digest)
    taken = read(listing, plan, place, options.workers, progress)
    memory = None if everything.gone else remember(everything.origin, cache)
    split = _split_name(listing)
    keep = [row for row in range(len(listing)) if row not in taken.reasons]
    listing = listing.without(taken.reasons)
    if listing.left_out and (options.strict or not keep):
        raise unreadable(listing.place, listing.left_out)
    looks = None if taken.looks is None else torch.from_numpy(taken.looks)
    held = Held(torch.from_numpy(taken.values), labels[keep], tuple(listing.ids), looks)
    said = *notes, *about_gone(listing, place), *about_changed(listing, options.known)
    return Found(held, listing.left_out, split, said, memory)


def check_measurable(path: Path, options: PictureOptions, classes: Sequence[str]) -> None:
    """A `ToolError` where pictures at `path` cannot be listed, or have labels that are none of `classes`. None is opened."""
    options = replace(options, measuring=True, classes=None)
    layout = recognise(path, options)
    if layout.kind == "embeddings":
        raise ToolError(f"{path}: vectors, and the model is trained on pictures; give pictures to measure on")
    if layout.kind == "arrays":
        arrays = read_arrays(path, options.skip_unlabelled, options.white).collection
        matched((arrays.test or arrays.train).labels.numpy(), arrays.train.classes, classes, str(path))
        return
    listed = list_pictures(layout, options)
    listing, _ = _measured(present(listed, options.strict, options.known), listed)
    matched(listing.labels, listing.classes, classes, str(path))


def held_rows(found: Collection, shape: Sequence[int], classes: Sequence[str], place: str) -> Found:
    """A collection's test set, or all of its rows where it has none, for a model of that shape and these classes."""
    held = found.test or Held(found.train.images, found.train.labels)
    return _fitting(held, found.train.classes, "all" if found.test is None else SPLITS[TEST], shape, classes, place)


def _fitting(held: Held, theirs: Sequence[str], split: str, shape: Sequence[int], classes: Sequence[str], place: str) -> Found:
    """Rows with labels that number `theirs`, for a model of that shape and these classes."""
    if tuple(held.images.shape[1:]) != tuple(shape):
        raise ToolError(
            f"{place}: one sample is {tuple(held.images.shape[1:])}, and this model reads {tuple(shape)}; "
            f"give data of the same kind"
        )
    labels = matched(held.labels.numpy(), theirs, classes, place)
    return Found(Held(held.images, labels), (), split)


def matched(labels: np.ndarray, theirs: Sequence[str], ours: Sequence[str], place: str) -> Tensor:
    """Labels (N,) in `theirs` as numbers in `ours`, by name; a class that occurs and is not ours is an error."""
    theirs = [spelt_as(name, ours) for name in theirs]
    present = {theirs[code] for code in np.unique(labels).tolist()}
    strange = [name for name in theirs if name in present and name not in set(ours)]
    if strange:
        more = f" ({len(strange)} such classes)" if len(strange) > 1 else ""
        raise ToolError(
            f"{place}: the class {quoted(strange[0])} is not one of the {len(ours)} that this model knows"
            f"{suggest(strange[0], ours)}{more}; it knows {_listed(ours)}: rename it, or leave it out"
        )
    number = {name: k for k, name in enumerate(ours)}
    table = np.array([number.get(name, -1) for name in theirs], np.int64)
    return torch.from_numpy(table[labels])


def _measured(listing: Listing, listed: Listing) -> tuple[Listing, list[str]]:
    """The test split, else the val split, else all of it; and what is passed over, in words.

    `listed` has the rows whose files are gone, too: a class is known where the training split names it.
    """
    trained = {listed.classes[code] for code in np.unique(listed.labels[listed.splits == TRAIN]).tolist()}
    known = np.array([not trained or spelt_as(name, trained) in trained for name in listing.classes])[listing.labels]
    for split in (TEST, VAL):
        there = listing.splits == split
        if (there & known).any():
            notes = untrained(int((there & ~known).sum()), split)
            taken = listing.take(np.flatnonzero(there & known).astype(np.int64))
            return replace(taken, left_out=_of_split(listing, listed, split)), notes
    return listing, []


def _of_split(listing: Listing, listed: Listing, split: int) -> tuple[LeftOut, ...]:
    """What is left out of that split: a training picture that cannot be read is no test picture less."""
    if not listing.left_out:
        return ()
    ids = {readable_name(listed.ids[row]) for row in np.flatnonzero(listed.splits == split).tolist()}
    return tuple(gone for gone in listing.left_out if gone.id in ids)


def _split_name(listing: Listing) -> str:
    first = int(listing.splits[0])
    return "all" if first == TRAIN else SPLITS[first]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
