"""Opens a path as a `Collection` with decoded pictures, and says what was left out and why."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from labelsieve.data.arrays import read_arrays
from labelsieve.data.embeddings import read_embeddings
from labelsieve.data.noisy_data import Collection, Held, NoisyData, channel_statistics, checked, vector_statistics
from labelsieve.data.pictures.cache import default_cache_dir
from labelsieve.data.pictures.decoding import Plan, Progress, Read, Taken, bounded, decoded, planned
from labelsieve.data.pictures.listing import SPLITS, TEST, TRAIN, VAL, LeftOut, Listing, readable_name, trained_classes
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.presence import about_changed, about_gone, present, remember, unreadable
from labelsieve.data.pictures.recognise import Layout, list_pictures, recognise
from labelsieve.data.pictures.websets import SIDE, WEBSETS, WebSet, list_second_test, nearly_whole, second_test_at
from labelsieve.errors import ToolError, UsageError

Choose = Callable[[NDArray[np.int64]], NDArray[np.int64]]  # labels (N,) of training rows -> those of them to use, ascending
Check = Callable[[Sequence[str]], None]  # classes that are trained on
Tell = Callable[[Plan, Path, int], None]  # how pictures will be decoded, the cache's folder, how many are listed


@dataclass(frozen=True)
class Opened:
    """What `open_pictures` gives.

    `collection.test` is the test split, or the val split where there is no test split; `val` is the val split.
    `paths` (N,) says where each training row's picture lies, from `root`; empty for arrays and vectors. `undrawn` are ids of
    training rows that were not chosen, `measured` those of other splits: {split: ids}. `memory` says which files were there.
    """

    collection: Collection
    layout: Layout
    val: Held | None = None
    paths: tuple[str, ...] = ()
    root: Path | None = None
    left_out: tuple[LeftOut, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    plan: Plan | None = None
    cache: Path | None = None
    undrawn: tuple[str, ...] = ()
    measured: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    memory: Path | None = None


def load_pictures(path: Path | None) -> Collection:
    """`open_pictures` with every choice left as it is."""
    if path is None:
        raise UsageError('pictures needs a place: write "pictures:PATH", a folder of class folders or a table')
    return open_pictures(path).collection


def load_web_set(name: str, path: Path | None) -> Collection:
    """The same for a web set."""
    if path is None:
        raise UsageError(f'{name} needs a place: write "{name}:PATH", the folder with its official files')
    return open_pictures(path, layout=Layout(name, path, "as named")).collection


def open_pictures(
    path: Path,
    options: PictureOptions | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
    layout: Layout | None = None,
    choose: Choose | None = None,
    check: Check | None = None,
    read: Read = decoded,
) -> Opened:
    """Recognise what lies at `path`, unless its `layout` is known, and make it ready. Pictures are decoded once, into the cache.

    `read` is how: into pixels, or into a backbone's features.

    `progress` is called with what is being done ("looking", "decoding"), how many are done and how many there are;
    `tell` once before the decoding, with the plan and where the cache is. `choose` draws the training rows before any
    picture is opened, and `check` may object to their classes then.
    """
    options = options or PictureOptions()
    layout = layout or recognise(path, options)
    if not layout.has_pictures:
        return _ready_made(layout, options)
    everything, listing = _listed(layout, options)
    listing, undrawn = drawn(listing, choose)
    if check is not None:
        check(trained_classes(listing.labels, listing.splits, listing.classes, listing.place)[1])
    measured = {SPLITS[split]: ids_in(listing, split) for split in (VAL, TEST)}
    cache = (options.cache_dir or default_cache_dir()).expanduser()
    plan, place = _planned(listing, layout.kind in WEBSETS, options, cache, progress)
    if tell is not None:
        tell(plan, place, len(listing))
    taken = read(listing, plan, place, options.workers, progress)
    memory = None if everything.gone else remember(everything.origin, cache)  # now: a million rows take seconds
    listing = _readable(listing.without(taken.reasons), options.strict)
    collection, val, notes = _collected(listing, taken, options.mirror, WEBSETS.get(layout.kind))
    if layout.kind == "webvision":
        second = second_test(layout.path, options, plan, collection.train.classes, progress, read)
        collection, notes = replace(collection, also=second.also), (*notes, *second.notes)
        listing = replace(listing, left_out=(*listing.left_out, *second.left_out))
    paths = tuple(listing.origin.path(row) for row in np.flatnonzero(listing.splits == TRAIN).tolist())
    return Opened(
        replace(collection, paths=tuple(map(readable_name, paths)), white=plan.white if plan.depths else None),
        layout,
        val,
        paths,
        getattr(listing.origin, "root", listing.place),
        listing.left_out,
        listing.ignored,
        (*listing.notes, *notes, *plan.notes, *about_gone(listing, place), *about_changed(listing, options.known)),
        plan,
        place,
        undrawn,
        measured,
        memory,
    )


def _ready_made(layout: Layout, options: PictureOptions) -> Opened:
    """Arrays and vectors: nothing has to be decoded."""
    if layout.kind == "arrays":
        found = read_arrays(layout.path, options.skip_unlabelled, options.white)
    else:
        found = read_embeddings(layout.path, options)
    return Opened(found.collection, layout, found.val, notes=found.notes)


def _listed(layout: Layout, options: PictureOptions) -> tuple[Listing, Listing]:
    """The rows that are there; and these again less what a web set leaves out, or an error where it lacks too much."""
    listed = list_pictures(layout, options)
    there = present(listed, options.strict, options.known)
    return there, nearly_whole(listed, there, options.incomplete) if layout.kind in WEBSETS else there


def _planned(
    listing: Listing, is_web_set: bool, options: PictureOptions, cache: Path, progress: Progress | None
) -> tuple[Plan, Path]:
    """How the pictures are decoded, and the folder of the cache in which they are then."""
    digest = listing.origin.digest(options.by_content)
    plan = web_plan(options, len(listing)) if is_web_set else planned(listing, options, digest, cache, progress)
    return plan, cache / plan.key(digest)


def _readable(listing: Listing, strict: bool) -> Listing:
    """The listing, unless `strict` and something is left out, or nothing to train on is left."""
    if (strict and listing.left_out) or not (listing.splits == TRAIN).any():
        raise unreadable(listing.place, listing.left_out)
    return listing


def drawn(listing: Listing, choose: Choose | None) -> tuple[Listing, tuple[str, ...]]:
    """The listing with the chosen training rows and all others, and the ids of those that were not chosen."""
    trained = np.flatnonzero(listing.splits == TRAIN)
    chosen = trained if choose is None else trained[choose(listing.labels[trained])]
    if len(chosen) == len(trained):
        return listing, ()
    keep = listing.splits != TRAIN
    keep[chosen] = True
    undrawn = tuple(listing.ids[row] for row in np.flatnonzero(~keep).tolist())
    return listing.take(np.flatnonzero(keep).astype(np.int64)), undrawn


def ids_in(listing: Listing, split: int) -> tuple[str, ...]:
    return tuple(listing.ids[row] for row in np.flatnonzero(listing.splits == split).tolist())


def web_plan(options: PictureOptions, count: int) -> Plan:
    """Photographs of one size: no header has to be read first, of a million of them."""
    return Plan(options.size or bounded(SIDE, options), 3, options.fit, count)


@dataclass(frozen=True)
class Second:
    """Further test sets by name, and the pictures of these that cannot be read."""

    also: Mapping[str, Held] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        count = len(self.left_out)
        return (f"{count:,} pictures of the second test set ({', '.join(self.also)}) cannot be read: left out",) if count else ()


def second_test(
    root: Path,
    options: PictureOptions,
    plan: Plan,
    classes: tuple[str, ...],
    progress: Progress | None,
    read: Read = decoded,
) -> Second:
    """ILSVRC12's validation pictures of the same classes, where they are."""
    place = second_test_at(root, options.second_test)
    if place is None:
        return Second()
    listing = present(list_second_test(place, root, options), options.strict)
    listing = listing.take(np.flatnonzero(np.isin(np.array(listing.classes)[listing.labels], classes)).astype(np.int64))
    if not len(listing):
        raise ToolError(f"{place}: no picture of the classes that are trained on; is it ILSVRC12's validation set?")
    plan = replace(plan, count=len(listing))
    cache = (options.cache_dir or default_cache_dir()).expanduser() / plan.key(listing.origin.digest(options.by_content))
    taken = read(listing, plan, cache, options.workers, progress)
    number = {name: k for k, name in enumerate(classes)}
    listing = listing.without(taken.reasons)
    if listing.left_out and (options.strict or not len(listing)):
        raise unreadable(place, listing.left_out)
    labels = [number[listing.classes[code]] for code in listing.labels.tolist()]
    return Second({"ilsvrc12": Held(torch.from_numpy(taken.values), torch.tensor(labels))}, listing.left_out)


def _collected(
    listing: Listing, taken: Taken, mirror: bool, web_set: WebSet | None = None
) -> tuple[Collection, Held | None, tuple[str, ...]]:
    """Splits as stretches of the mapped pixels; classes that no training picture has are left out."""
    codes, classes, notes = trained_classes(listing.labels, listing.splits, listing.classes, listing.place)
    images, labels = torch.from_numpy(taken.values), torch.from_numpy(codes)
    looks = None if taken.looks is None else torch.from_numpy(taken.looks)
    ends = np.searchsorted(listing.splits, [TRAIN, VAL, TEST, TEST + 1])
    held: dict[int, Held | None] = {}
    for split in (VAL, TEST):
        span = slice(int(ends[split]), int(ends[split + 1]))
        kept = Held(images[span], labels[span], tuple(listing.ids[span]), None if looks is None else looks[span])
        known = torch.nonzero(kept.labels >= 0).flatten()
        kept = kept if len(known) == len(kept.labels) else kept.rows(known)
        held[split] = kept if len(kept.labels) else None
    some = None if looks is None else looks[: ends[1]]
    train = NoisyData(images[: ends[1]], labels[: ends[1]], tuple(listing.ids[: ends[1]]), classes, some)
    if train.are_vectors:
        mean, std = vector_statistics(train.images)
    else:
        mean, std = channel_statistics(train.images) if web_set is None else (web_set.mean, web_set.std)
    test = held[TEST] or held[VAL]
    data = checked(train, str(listing.place))
    name = "pictures" if web_set is None else web_set.name
    return Collection(name, data, None, test, mean, std, mirror=mirror), held[VAL], notes
