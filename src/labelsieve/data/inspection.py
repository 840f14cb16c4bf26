"""Says what a path holds and what training on it would do.

Every picture is opened, decoded and hashed, in parallel; nothing is written. Torch is only loaded for arrays and vectors.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.doubts import doubts
from labelsieve.data.pictures.decoding import Plan, Progress, plan, surveyed
from labelsieve.data.pictures.listing import SPLITS, TRAIN, LeftOut, Listing
from labelsieve.data.pictures.looks import LEAST, near_copies, of_arrays, of_texts, poor, thumbs
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.presence import present
from labelsieve.data.pictures.recognise import Layout, list_pictures, recognise
from labelsieve.texts import byte_count, quoted

if TYPE_CHECKING:
    from labelsieve.data.noisy_data import Collection

LISTED = 10
NAMED = 3  # pictures of each kind that stands out


@dataclass(frozen=True)
class Duplicates:
    """Rows whose files have the same content: their ids, and the label and split of each."""

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    splits: tuple[str, ...]


@dataclass(frozen=True)
class Inspection:
    """What was found. Counts are of readable pictures (or rows); sizes are (min, median, max) in pixels."""

    layout: Layout
    counts: Mapping[str, Mapping[str, int]]  # {split: {class: count}}
    shape: tuple[int, ...]  # one sample as it would be trained on
    widths: tuple[int, int, int] | None = None
    heights: tuple[int, int, int] | None = None
    formats: Mapping[str, int] = field(default_factory=dict)
    modes: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)
    empty_classes: tuple[str, ...] = ()
    same_label: tuple[Duplicates, ...] = ()
    different_labels: tuple[Duplicates, ...] = ()
    near_different: tuple[Duplicates, ...] = ()  # the same picture, saved or resized in another way, with different labels
    near_leaked: tuple[Duplicates, ...] = ()  # the same, with one label, in the training split and in another one
    poor: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # {blank, blurred, ...: ids of the pictures}
    plan: Plan | None = None
    features: str | None = None  # filled in where training is on features: of what network, and why
    network: str | None = None  # filled in by who knows the networks
    notes: tuple[str, ...] = ()

    @property
    def training(self) -> Mapping[str, int]:
        """{class: count} of the training split."""
        return self.counts[SPLITS[TRAIN]]

    @property
    def samples(self) -> int:
        return sum(self.training.values())

    @property
    def smallest(self) -> tuple[str, int]:
        """The class with the fewest training samples, and how many; classes without any only where there is no other."""
        return min(self.training.items(), key=lambda item: item[1] or float("inf"))

    @property
    def imbalance(self) -> float:
        """The largest class's count over the smallest one's; infinite where no class has samples."""
        low = self.smallest[1]
        return max(self.training.values()) / low if low else float("inf")

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(warnings(self))

    def lines(self) -> list[str]:
        """The same in words, for a terminal."""
        return lines(self)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        found = asdict(self)
        found["layout"] = {"kind": self.layout.kind, "path": str(self.layout.path), "why": self.layout.why}
        if self.plan is not None:
            found["plan"]["cache_bytes"] = self.plan.bytes
        imbalance = None if self.imbalance == float("inf") else self.imbalance
        return found | {
            "samples": self.samples,
            "smallest": self.smallest,
            "imbalance": imbalance,
            "warnings": list(self.warnings),
        }


def known_source(text: str, options: PictureOptions) -> "Path | str":
    """A path, or the name of a data set: `digits`, `cifar10:PATH`."""
    from labelsieve.data.pictures.websets import WEBSETS
    from labelsieve.data.sources import OWN, source_at  # needs torch

    source = source_at(text, options)
    name, _, place = source.partition(":")
    return Path(place) if name in (*OWN, "arrays") and name not in WEBSETS else source


def inspection(path: Path | str, options: PictureOptions | None = None, progress: Progress | None = None) -> Inspection:
    """Look at everything at `path`, or in a named data set."""
    options = options or PictureOptions()
    if isinstance(path, str):
        from labelsieve.data.sources import open_data

        name, _, place = path.partition(":")
        return of_collection(Layout(name, Path(place or name), "a known data set"), open_data(path))
    layout = recognise(path, options)
    return _pictures(layout, options, progress) if layout.has_pictures else _arrays(layout, options)


def _pictures(layout: Layout, options: PictureOptions, progress: Progress | None) -> Inspection:
    listed = list_pictures(layout, options)
    listing = present(listed)
    records = surveyed(listing, options, verify=True, progress=progress)
    broken = {row: record["reason"] for row, record in enumerate(records) if "reason" in record}
    good = [record for record in records if "reason" not in record]
    readable = listing.without(broken)
    labels = [readable.classes[code] for code in readable.labels.tolist()]
    splits = [SPLITS[split] for split in readable.splits.tolist()]
    hashes = [record["hash"] for record in good]
    same, different = duplicates(hashes, readable.ids, labels, splits)
    looks = of_texts(record.pop("look") for record in good)
    near, leaked = near_groups(thumbs(looks), hashes, readable.ids, labels, splits)
    planned = plan(records, options)
    return Inspection(
        layout=layout,
        counts=_counts(readable),
        shape=(planned.channels, planned.size, planned.size),
        widths=_spread([record["width"] for record in good]),
        heights=_spread([record["height"] for record in good]),
        formats=dict(Counter(record["format"] for record in good).most_common()),
        modes=dict(Counter(record["mode"] for record in good).most_common()),
        left_out=readable.left_out,
        ignored=listing.ignored,
        empty_classes=listing.empty_classes,
        same_label=same,
        different_labels=different,
        near_different=near,
        near_leaked=leaked,
        poor=poor_pictures(looks, readable.ids, [(record["width"], record["height"]) for record in good]),
        plan=planned,
        notes=(*listing.notes, *planned.notes),
    )


def duplicates(
    contents: Iterable[Hashable], ids: Sequence[str], labels: Sequence[str], splits: Sequence[str]
) -> tuple[tuple[Duplicates, ...], tuple[Duplicates, ...]]:
    """Groups of rows with the same content: those that agree on the label, and those that do not."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row, content in enumerate(contents):
        groups[content].append(row)
    found = [_group(rows, ids, labels, splits) for rows in groups.values() if len(rows) > 1]
    same = tuple(group for group in found if len(set(group.labels)) == 1)
    return same, tuple(group for group in found if len(set(group.labels)) > 1)


def near_groups(
    thumbs: NDArray[np.uint8], contents: Sequence[Hashable], ids: Sequence[str], labels: Sequence[str], splits: Sequence[str]
) -> tuple[tuple[Duplicates, ...], tuple[Duplicates, ...]]:
    """Groups of rows that look the same: those that differ in label, and those in the training split and in another one.

    Of rows with the same content, label and split, the first.
    """
    different, leaked = [], []
    for rows in near_copies(thumbs):
        first = {(contents[row], labels[row], splits[row]): row for row in reversed(rows)}
        if len({content for content, _, _ in first}) == 1:  # `duplicates` has told of it
            continue
        group = _group(sorted(first.values()), ids, labels, splits)
        if len(set(group.labels)) > 1:
            different.append(group)
        elif SPLITS[TRAIN] in group.splits and len(set(group.splits)) > 1:
            leaked.append(group)
    return tuple(different), tuple(leaked)


ODD = 3.0  # times the usual shape
TINY = 4.0  # times smaller than usual


def poor_pictures(
    looks: NDArray[np.uint8], ids: Sequence[str], sizes: Sequence[tuple[int, int]] = ()
) -> dict[str, tuple[str, ...]]:
    """{what is wrong: ids}; by `sizes` (width, height) also those of an odd shape and tiny ones."""
    kinds = poor(looks).tolist()
    if len(sizes) >= LEAST:
        wide, high = np.array(sizes, float).T
        shape, side = np.log(wide / high), np.minimum(wide, high)
        odd = np.abs(shape - np.median(shape)) > np.log(ODD)
        tiny = side * TINY < np.median(side)
        kinds = [kind or ("tiny" if small else "odd shape" if strange else "") for kind, strange, small in zip(kinds, odd, tiny)]
    return {kind: tuple(name for name, one in zip(ids, kinds) if one == kind) for kind in sorted({*kinds} - {""})}


def _group(rows: Sequence[int], ids: Sequence[str], labels: Sequence[str], splits: Sequence[str]) -> Duplicates:
    return Duplicates(*(tuple(column[row] for row in rows) for column in (ids, labels, splits)))


def _counts(listing: Listing) -> dict[str, dict[str, int]]:
    counts = {}
    for number, split in enumerate(SPLITS):
        labels = listing.labels[listing.splits == number]
        if len(labels) or number == TRAIN:
            found = np.bincount(labels, minlength=len(listing.classes)).tolist()
            counts[split] = dict(zip(listing.classes, found))
    return counts


def _spread(values: list[int]) -> tuple[int, int, int] | None:
    return (min(values), int(np.median(values)), max(values)) if values else None


def _arrays(layout: Layout, options: PictureOptions) -> Inspection:
    from labelsieve.data.arrays import read_arrays  # these two need torch
    from labelsieve.data.embeddings import read_embeddings

    pictures = layout.kind == "arrays"
    read = read_arrays(layout.path, options.skip_unlabelled, options.white) if pictures else read_embeddings(layout.path, options)
    return replace(of_collection(layout, read.collection), notes=read.notes)


def of_collection(layout: Layout, found: "Collection") -> Inspection:
    """What is known of data that are arrays already."""
    splits = {"train": found.train.labels} | ({} if found.test is None else {"test": found.test.labels})
    counts = {}
    for split, codes in splits.items():
        totals = np.bincount(codes.numpy(), minlength=len(found.train.classes)).tolist()
        counts[split] = dict(zip(found.train.classes, totals))
    images = found.train.images.numpy()
    contents = [hashlib.sha256(row.tobytes()).digest() for row in images]
    labels = [found.train.classes[code] for code in found.train.labels.tolist()]
    columns = found.train.ids, labels, ["train"] * len(labels)
    same, different = duplicates(contents, *columns)
    shape = tuple(images.shape[1:])
    if found.train.are_vectors:
        return Inspection(layout, counts, shape, same_label=same, different_labels=different)
    looks = of_arrays(images)
    near, _ = near_groups(thumbs(looks), contents, *columns)
    stand_out = poor_pictures(looks, found.train.ids)
    return Inspection(layout, counts, shape, same_label=same, different_labels=different, near_different=near, poor=stand_out)


def warnings(found: Inspection) -> Iterator[str]:
    """What makes the outcome doubtful, and what to do about it."""
    yield from doubts(found.training)
    if found.different_labels:
        count = len(found.different_labels)
        occur = f"{_what(found, count)} {'occurs' if count == 1 else 'occur'}"
        yield f"{count:,} {occur} more than once with different labels: at least one label of each is wrong"
    if found.near_different:
        count = len(found.near_different)
        occur = "picture occurs" if count == 1 else "pictures occur"
        yield f"{count:,} {occur} again, resized or saved in another format, with different labels: one of them may be wrong"
    leaked = sum("train" in splits and len(splits) > 1 for splits in _splits(found)) + len(found.near_leaked)
    if leaked:
        are = "picture is" if leaked == 1 else "pictures are"
        yield f"{leaked:,} {are} in the training split and in another one, too: accuracy there will look too good"
    if found.empty_classes:
        listed = ", ".join(quoted(name) for name in found.empty_classes[:LISTED])
        hold = "class folder holds" if len(found.empty_classes) == 1 else "class folders hold"
        yield f"{len(found.empty_classes)} {hold} no picture: {listed}{_more(found.empty_classes)}"


def _splits(found: Inspection) -> Iterator[set[str]]:
    """Where the members of each group of exact duplicates are."""
    return (set(group.splits) for group in (*found.same_label, *found.different_labels))


def lines(found: Inspection) -> list[str]:
    said = [f"{found.layout.path}: {found.layout.kind} ({found.layout.why})"]
    for split, counts in found.counts.items():
        said.append(f"{split}: {sum(counts.values()):,} samples in {sum(1 for n in counts.values() if n)} classes")
    said += _classes(found.training)
    name, low = found.smallest
    said.append(f"smallest class: {quoted(name)} with {low:,}; largest over smallest: {found.imbalance:.1f}")
    if found.widths is not None and found.heights is not None:
        for what, (low, middle, high) in (("width", found.widths), ("height", found.heights)):
            said.append(f"{what}: {low} to {high} pixels, median {middle}")
        said.append(f"formats: {_tally(found.formats)}; colour modes: {_tally(found.modes)}")
    said += _left_out(found)
    said += _duplicates(found)
    said += _poor(found)
    said += _training(found)
    said += [f"note: {note}" for note in found.notes]
    said += [f"warning: {warning}" for warning in found.warnings]
    return said


def _classes(counts: Mapping[str, int]) -> list[str]:
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    if len(ranked) <= 2 * LISTED:
        return [f"  {quoted(name)}: {count:,}" for name, count in ranked]
    hidden = len(ranked) - 2 * LISTED
    return [*_classes(dict(ranked[:LISTED])), f"  ... {hidden} more ...", *_classes(dict(ranked[-LISTED:]))]


def _tally(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _left_out(found: Inspection) -> list[str]:
    said = []
    if found.left_out:
        pictures = "picture" if len(found.left_out) == 1 else "pictures"
        said.append(f"left out: {len(found.left_out):,} {pictures}")
        said += [f"  {quoted(row.path)}: {row.reason}" for row in found.left_out[:LISTED]]
        said += [f"  ...{_more(found.left_out)}"] if len(found.left_out) > LISTED else []
    if found.ignored:
        said.append(f"passed over: {_tally(found.ignored)}")
    return said


def _duplicates(found: Inspection) -> list[str]:
    said = []
    for what, groups in (("the same label", found.same_label), ("different labels", found.different_labels)):
        if groups:
            said.append(f"exact duplicates with {what}: {len(groups):,} {_what(found, len(groups))}")
    said += _groups(found.different_labels)
    if found.near_different:
        said.append(
            f"nearly the same, with different labels: {len(found.near_different):,} {_what(found, len(found.near_different))}"
        )
    said += _groups(found.near_different)
    if found.near_leaked:
        said.append(f"nearly the same, in the training split and in another one: {len(found.near_leaked):,}")
    return said + _groups(found.near_leaked)


def _poor(found: Inspection) -> list[str]:
    """Pictures that stand out in their set; what to do about them is for a person to say."""
    said = []
    for kind, ids in found.poor.items():
        more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
        said.append(f"{kind}: {len(ids):,} {_what(found, len(ids))}: {', '.join(map(quoted, ids[:NAMED]))}{more}")
    return said


def _groups(groups: Sequence[Duplicates]) -> list[str]:
    said = [f"  {_members(group)}" for group in groups[:LISTED]]
    return said + ([f"  ...{_more(groups)}"] if len(groups) > LISTED else [])


def _what(found: Inspection, count: int) -> str:
    return ("vector" if len(found.shape) == 1 else "picture") + ("" if count == 1 else "s")


def _members(group: Duplicates) -> str:
    shown = [f"{quoted(name)} as {quoted(label)}" for name, label in zip(group.ids[:4], group.labels)]
    return "; ".join(shown) + (f"; and {len(group.ids) - 4} more" if len(group.ids) > 4 else "")


def _training(found: Inspection) -> list[str]:
    shape = " x ".join(str(side) for side in found.shape)
    if found.features is not None:
        said = found.features
    elif found.plan is None:
        said = f"training would use {shape} " + ("numbers per sample" if len(found.shape) == 1 else "pixels per sample")
    else:
        how = "shorter side resized, middle kept" if found.plan.fit == "crop" else "both sides resized"
        said = f"training would use {shape} pixels per picture ({how}); the cache takes {byte_count(found.plan.bytes)}"
    return [said] + ([f"network: {found.network}"] if found.network else [])


def _more(items: Sequence[object]) -> str:
    return f" and {len(items) - LISTED} more" if len(items) > LISTED else ""
