"""An `Inspection` in words: the lines for a terminal, and what to be careful about."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from labelsieve.data.trust import doubts, quoted

if TYPE_CHECKING:
    from labelsieve.data.inspection import Duplicates, Inspection

LISTED = 10


def byte_count(count: int) -> str:
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} bytes"


def warnings(found: "Inspection") -> Iterator[str]:
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
    leaked = sum("train" in splits and len(splits) > 1 for splits in _splits(found))
    if leaked:
        are = "picture is" if leaked == 1 else "pictures are"
        yield f"{leaked:,} {are} in the training split and in another one, too: accuracy there will look too good"
    if found.empty_classes:
        listed = ", ".join(quoted(name) for name in found.empty_classes[:LISTED])
        hold = "class folder holds" if len(found.empty_classes) == 1 else "class folders hold"
        yield f"{len(found.empty_classes)} {hold} no picture: {listed}{_more(found.empty_classes)}"


def _splits(found: "Inspection") -> Iterator[set[str]]:
    """Where the members of each group of exact duplicates are."""
    return (set(group.splits) for group in (*found.same_label, *found.different_labels))


def lines(found: "Inspection") -> list[str]:
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


def _left_out(found: "Inspection") -> list[str]:
    said = []
    if found.left_out:
        pictures = "picture" if len(found.left_out) == 1 else "pictures"
        said.append(f"left out: {len(found.left_out):,} {pictures}")
        said += [f"  {quoted(row.path)}: {row.reason}" for row in found.left_out[:LISTED]]
        said += [f"  ...{_more(found.left_out)}"] if len(found.left_out) > LISTED else []
    if found.ignored:
        said.append(f"passed over: {_tally(found.ignored)}")
    return said


def _duplicates(found: "Inspection") -> list[str]:
    said = []
    for what, groups in (("the same label", found.same_label), ("different labels", found.different_labels)):
        if groups:
            said.append(f"exact duplicates with {what}: {len(groups):,} {_what(found, len(groups))}")
    said += _groups(found.different_labels)
    if found.near_different:
        said.append(
            f"nearly the same, with different labels: {len(found.near_different):,} {_what(found, len(found.near_different))}"
        )
    return said + _groups(found.near_different)


def _groups(groups: "Sequence[Duplicates]") -> list[str]:
    said = [f"  {_members(group)}" for group in groups[:LISTED]]
    return said + ([f"  ...{_more(groups)}"] if len(groups) > LISTED else [])


def _what(found: "Inspection", count: int) -> str:
    return ("vector" if len(found.shape) == 1 else "picture") + ("" if count == 1 else "s")


def _members(group: "Duplicates") -> str:
    shown = [f"{quoted(name)} as {quoted(label)}" for name, label in zip(group.ids[:4], group.labels)]
    return "; ".join(shown) + (f"; and {len(group.ids) - 4} more" if len(group.ids) > 4 else "")


def _training(found: "Inspection") -> list[str]:
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
