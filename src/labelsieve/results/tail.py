"""The end of a run, by which it is judged: means over the last epochs of metrics.jsonl."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TAIL = 10  # epochs: what the literature averages


@dataclass(frozen=True)
class Tail:
    """The mean over so many epochs: ten, or as many as a short run has."""

    mean: float
    epochs: int


def fewer(epochs: int) -> str:
    """What to write behind a mean of fewer epochs than ten."""
    return "" if epochs >= TAIL else f" (of {epochs})"


def number(line: Mapping[str, Any], measure: str) -> float | None:
    """The measure, such as accuracy.both or clean_share, of one line; of the networks' own the mean. None: it lacks one."""
    found: Any = line
    for name in measure.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    each = found if isinstance(found, list) else [found]
    return None if not each or None in each else float(sum(each) / len(each))


def measured(lines: Iterable[Mapping[str, Any]], measure: str) -> list[float]:
    """The measure, line by line where it is there."""
    return [found for found in (number(line, measure) for line in lines) if found is not None]


def rankings(line: Mapping[str, Any]) -> dict[str, list[float]]:
    """How well each opinion of a line ranks wrong labels (AUC), network by network; the opinion that counts comes last."""
    found = {key: [one for one in values or () if one is not None] for key, values in line.items() if key.startswith("auc_")}
    return {key: values for key, values in found.items() if values}


def opinion(key: str) -> str:
    """Whose ranking that is, in words."""
    name = key.removeprefix("auc_")
    return {"loss": "mixture", "prototype": "prototypes"}.get(name, name)


def tail(lines: Sequence[Mapping[str, Any]], measure: str = "accuracy.both") -> Tail | None:
    """Of the last ten epochs. The warm-up is another training and is left out, unless there is nothing else."""
    later = measured([line for line in lines if line.get("phase") != "warm-up"], measure)
    last = (later or measured(lines, measure))[-TAIL:]
    return Tail(sum(last) / len(last), len(last)) if last else None
