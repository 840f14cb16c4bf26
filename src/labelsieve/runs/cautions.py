"""When a run's answers should not be trusted: what it found and wrote about itself go in, sentences come out, gravest first."""

import numpy as np

from labelsieve.runs.findings import Findings, Record

FEW, FEW_OF_A_CLASS = 500, 20
WIDE = 0.2  # an interval of so many points
MOST = 0.75  # of the labels
NEAR_CHANCE = 1.5  # times what guessing gets right
RECENT = 3  # epochs in which a collapse still matters
NAMED = 5
BAD = "swallows the rest"  # of a collapsed partition; that all labels count as clean is none to fear


def cautions(found: Findings, record: Record) -> list[str]:
    """None where there is nothing to warn of."""
    checks = (_collapsed, _near_chance, _unfinished, _mostly_wrong, _wide, _few, _small_classes)
    return [said for check in checks if (said := check(found, record))]


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


def _mostly_wrong(found: Findings, record: Record) -> str:
    if found.share.share <= MOST:
        return ""
    return "Most labels look wrong. Are they of these pictures, and is the label column the right one?"


def _wide(found: Findings, record: Record) -> str:
    share = found.share
    if share.high - share.low <= WIDE:
        return ""
    return (
        f"The share of wrong labels is uncertain ({100 * share.low:.0f} to {100 * share.high:.0f} %): the networks and their "
        f"prototypes contradict each other. Check by eye before anything is corrected."
    )


def _few(found: Findings, record: Record) -> str:
    count = len(found.score)
    return f"Only {count:,} labels: networks learn little from so few, and scores are rough." if count < FEW else ""


def _small_classes(found: Findings, record: Record) -> str:
    counts = np.bincount(found.given, minlength=len(found.classes))
    small = [k for k in np.argsort(counts, kind="stable").tolist() if counts[k] < FEW_OF_A_CLASS]
    if not small:
        return ""
    names = ", ".join(f'"{found.classes[k]}" ({counts[k]})' for k in small[:NAMED])
    more = f" and {len(small) - NAMED:,} more" if len(small) > NAMED else ""
    return f"Under {FEW_OF_A_CLASS} samples of {names}{more}: what is said of them rests on little. Check them all by eye."
