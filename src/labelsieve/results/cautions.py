"""Says when not to rely on a run, and what to do about it: a short list, what matters most first.

One list for the terminal, the card, the report, estimate.json and Python.
"""

from collections.abc import Mapping

import numpy as np

from labelsieve.config.method_settings import all_warm_up
from labelsieve.data.doubts import doubts, formulas, single_samples
from labelsieve.issues.estimate import UNKNOWN_WORDS, Share
from labelsieve.runs.findings import Findings, Record
from labelsieve.texts import computed

MOST = 0.75  # of the labels
NEAR_CHANCE = 1.5  # times what guessing gets right
RECENT = 3  # epochs in which a collapse still matters
HANDFUL = 20  # samples
BAD = "swallows the rest"  # of a collapsed partition; that all labels count as clean is none to fear


def cautions(found: Findings, record: Record) -> list[str]:
    """None where there is nothing to warn of."""
    said = [words for check in (_collapsed, _near_chance, _unfinished, _plain) if (words := check(found, record))]
    counts = np.bincount(found.given, minlength=len(found.classes)).tolist()
    # Ids in class folders begin with their class, of which that is told already.
    ids = () if any(map(computed, found.classes)) else formulas(found.columns.get("id", ()), "id")
    return [*said, *_share(found.share), *data_cautions(dict(zip(found.classes, counts))), *map(_sentence, ids)]


def table_cautions(found: Share, counts: Mapping[str, int]) -> tuple[str, ...]:
    """Where there was no run: of an estimate and {class: samples}.

    Of a handful of samples, or of classes that have one each, the estimate says nothing at all.
    """
    late = _share(found) if sum(counts.values()) >= HANDFUL and not single_samples(counts) else []
    return (*late, *data_cautions(counts))


def data_cautions(counts: Mapping[str, int]) -> list[str]:
    """What is known before anything is trained: of {class: samples}."""
    return [_sentence(words) for words in doubts(counts)]


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
    return (
        f"Do not use this list: the networks are right on {record.accuracies[-1][1]:.1f} % of the test pictures, hardly more "
        f"than by guessing. See that labels and samples belong together, or train longer (--epochs N)."
    )


def _unfinished(found: Findings, record: Record) -> str:
    done, planned = record.epochs_done, record.epochs_planned
    return (
        f"Stopped after {done} of {planned} epochs, so scores still move: go on with `labelsieve resume`."
        if done < planned
        else ""
    )


def _plain(found: Findings, record: Record) -> str:
    return all_warm_up(record.config, record.decision.get("epochs"))


def _share(found: Share) -> list[str]:
    if not found.known:
        return [UNKNOWN_WORDS]
    if found.share > MOST:
        return ["Most labels look wrong: see that they belong to these samples, and that the label column is the right one."]
    return []
