"""Says when not to trust a run, in sentences, the gravest first, from what it found and wrote about itself.

One list for the terminal, the card, the report, estimate.json and Python.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from labelsieve.config.lengths import all_warm_up
from labelsieve.data.doubts import doubts, formulas, single_samples
from labelsieve.issues.estimate import UNKNOWN
from labelsieve.issues.rules import RELABEL
from labelsieve.runs.findings import Findings, Record
from labelsieve.texts import computed

WIDE = 0.2  # an interval of so many points
MOST = 0.75  # of the labels
NEAR_CHANCE = 1.5  # times what guessing gets right
RECENT = 3  # epochs in which a collapse still matters
HANDFUL = 20  # samples
LISTED = 20  # issues from which on their kind says something
BAD = "swallows the rest"  # of a collapsed partition; that all labels count as clean is none to fear


def cautions(found: Findings, record: Record) -> list[str]:
    """None where there is nothing to warn of."""
    said = [words for check in (_collapsed, _near_chance, _unfinished, _plain, _weak) if (words := check(found, record))]
    counts = np.bincount(found.given, minlength=len(found.classes)).tolist()
    late = _share(found.share.share, found.share.low, found.share.high)
    # The heads that judge vectors know as much before the first epoch as after the last.
    early = early_cautions(
        None if found.by_heads or _confirmed(found, record) else record.estimate, dict(zip(found.classes, counts))
    )
    # Ids in class folders begin with their class, of which that is told already.
    ids = () if any(map(computed, found.classes)) else formulas(found.columns.get("id", ()), "id")
    return [*said, *late, *early, *map(_sentence, ids)]


def table_cautions(share: float, low: float, high: float, counts: Mapping[str, int]) -> tuple[str, ...]:
    """Where there was no run: of an estimate and {class: samples}.

    Of a handful of samples, or of classes that have one each, the estimate says nothing at all.
    """
    late = _share(share, low, high) if sum(counts.values()) >= HANDFUL and not single_samples(counts) else ()
    return (*late, *early_cautions(None, counts))


def early_cautions(estimate: Mapping[str, float] | None, counts: Mapping[str, int]) -> list[str]:
    """What is known once the warm-up is over: of the estimate (share, low, high), if one was made, and {class: samples}."""
    poorly = "" if estimate is None else doubt(estimate["low"], estimate["high"])
    return [*([poorly] if poorly else []), *(_sentence(words) for words in doubts(counts))]


def doubt(low: float, high: float) -> str:
    """Of an estimate made after the warm-up; "" where its interval is narrow, and leaves room for right labels."""
    between = f"{100 * low:.0f} to {100 * high:.0f} %"
    more = "More samples or a longer warm-up help (--set training.warmup=N, in Python warmup=N)"
    if high - low > WIDE:
        return f"Do not trust the estimate after the warm-up ({between}): the networks hardly knew the classes by then. {more}."
    if low > MOST:  # networks that know nothing contradict labels as surely as those that know better
        lead = f"After the warm-up most labels looked wrong ({between})"
        return f"{lead}. Either they are, or the networks had learnt next to nothing. {more}."
    return ""


def _confirmed(found: Findings, record: Record) -> bool:
    """A finished run whose own estimate is narrow and inside the first one's interval: the first was rough, and right."""
    end, first = found.share, record.estimate
    done = record.epochs_done >= record.epochs_planned
    return bool(first and done and end.high - end.low <= WIDE and first["low"] <= end.share <= first["high"])


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "?", "!")) else ".")


def _collapsed(found: Findings, record: Record) -> str:
    notes = [note for line in record.metrics[-RECENT:] for note in line.get("notes", ()) if BAD in note]
    if not notes:
        return ""
    decided = record.decision.get("lambda_u", record.config.training.lambda_u)
    ways = "--set training.lambda_u=0, a longer warm-up" if decided else "a longer warm-up (--set training.warmup=N), more epochs"
    return f"Do not use this list: {notes[-1]}. Try {ways}, or a lower learning rate."


def _near_chance(found: Findings, record: Record) -> str:
    if not record.accuracies or record.accuracies[-1][1] >= NEAR_CHANCE * 100 / len(found.classes):
        return ""
    return f"The networks are right on {record.accuracies[-1][1]:.1f} % of the test pictures, hardly more than by guessing."


def _unfinished(found: Findings, record: Record) -> str:
    done, planned = record.epochs_done, record.epochs_planned
    return (
        f"Stopped after {done} of {planned} epochs: scores still move; go on with `labelsieve resume`." if done < planned else ""
    )


def _plain(found: Findings, record: Record) -> str:
    return all_warm_up(record.config, record.decision.get("epochs"))


def _weak(found: Findings, record: Record) -> str:
    """Where wrong labels are found out, most of them come with a correction; doubts without one are often of hard pictures."""
    listed = int(found.is_issue.sum())
    if listed < LISTED or 2 * found.issue_actions[RELABEL] >= listed:
        return ""
    unsure = listed - found.issue_actions[RELABEL]
    return (
        f"Fewer labels may be wrong than are listed: {unsure:,} of the {listed:,} issues come without a sure correction, and "
        f"networks doubt right labels of hard samples, too. Check by eye before you correct anything."
    )


def _share(share: float, low: float, high: float) -> Iterator[str]:
    if share > MOST:
        yield "Most labels look wrong. Do they belong to these samples, and is the label column the right one?"
    if high - low > UNKNOWN:
        yield (
            "How many labels are wrong cannot be known here: too little is known of these classes. The list is ranked all the "
            "same. Check by eye before you correct anything, and see that labels and samples belong together."
        )
    elif high - low > WIDE:
        yield (
            f"The share of wrong labels is uncertain ({100 * low:.0f} to {100 * high:.0f} %): the ways to estimate it "
            f"contradict each other. Check by eye before you correct anything."
        )
