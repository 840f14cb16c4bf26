"""The corrected label of each row that a run judged: {id: label, or None for dropped}. Other rows keep theirs."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from labelsieve.data.pictures.listing import name_labels


@dataclass
class Corrections:
    """Final labels as class names.

    `given` are the labels that the run had, where they came from the source: one that was changed there since stays, unless it
    is to be another or a person has `decided` on it. `seen` tells afterwards which rows were met, `stayed` and `overruled`
    which of them had been changed.
    """

    labels: Mapping[str, str | None]
    given: Mapping[str, str] = field(default_factory=dict)
    decided: Set[str] = frozenset()
    seen: set[str] = field(default_factory=set)
    stayed: set[str] = field(default_factory=set)
    overruled: set[str] = field(default_factory=set)

    def of(self, name: str, label: str) -> str | None:
        """The label of sample `name`, which its source calls `label`; None where it is dropped."""
        self.seen.add(name)
        new, given = self.labels.get(name, label), self.given.get(name, label)
        if not label or label.strip() == given.strip() or label == new:
            return new
        stays = new == given and name not in self.decided
        (self.stayed if stays else self.overruled).add(name)
        return label if stays else new


def corrected_values(ids: Sequence[str], values: Sequence[Any], corrections: Corrections, place: str) -> list[Any]:
    """The label column with corrections in it, each label as its class was written first; DROPPED where a row goes."""
    named = name_labels(values, place)
    written = {named.classes[code]: values[row] for row, code in reversed(list(enumerate(named.codes.tolist()))) if code >= 0}
    text = all(isinstance(value, (str, bytes)) or value is None for value in values)
    found: list[Any] = []
    for name, value, code in zip(ids, values, named.codes.tolist()):
        old = named.classes[code] if code >= 0 else ""
        new = corrections.of(name, old)
        if new is None:
            found.append(DROPPED)
        elif new == old:
            found.append(value)
        else:
            found.append(written.get(new, new if text else _number(new)))
    return found


def _number(text: str) -> Any:
    """A class that no row of this table has is written as a number where the others are numbers."""
    return int(text) if text.lstrip("+-").isdigit() else text


class Dropped:
    """The mark of a row that goes."""


DROPPED = Dropped()


def kept(found: Iterable[Any]) -> list[int]:
    return [row for row, value in enumerate(found) if value is not DROPPED]
