"""What becomes of the rows that a run judged: {id: label, or None for dropped}. Rows it did not judge stay as they are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labelsieve.data.pictures.labels import name_labels


@dataclass(frozen=True)
class Corrections:
    """Final labels as class names."""

    labels: Mapping[str, str | None]

    def of(self, name: str, label: str) -> str | None:
        """The label of sample `name`, which its source calls `label`; None where it is dropped."""
        return self.labels.get(name, label)


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
