"""Predictions for new pictures: a model and files go in; for each picture its likeliest classes, or why it has none."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch

from labelsieve.data.pictures.listing import readable_name
from labelsieve.data.pictures.survey import Plan
from labelsieve.data.pictures.unlabelled import Chunk, Unlabelled, in_chunks
from labelsieve.errors import ToolError
from labelsieve.runs.model import Model


@dataclass(frozen=True)
class Predicted:
    """One picture: (class, probability) of the likeliest classes, best first; none where there is an `error`."""

    path: str
    best: tuple[tuple[str, float], ...] = ()
    error: str | None = None


def predictions(model: Model, found: Unlabelled, top: int, batch: int = 256) -> Iterator[list[Predicted]]:
    """Lists of predictions in the order of the files; each list is a stretch that was decoded together."""
    if len(model.shape) != 3:
        raise ToolError(f"this model reads vectors of {model.shape[0]} numbers, not pictures; use it from Python")
    channels, size, _ = model.shape
    for chunk in in_chunks(found, Plan(size, channels, model.fit, len(found))):
        yield list(_predicted(model, chunk, top, batch))


def _predicted(model: Model, chunk: Chunk, top: int, batch: int) -> Iterator[Predicted]:
    best: Iterator[tuple[list[float], list[int]]] = iter(())
    if len(chunk.pixels):
        chances, places = model.probabilities(torch.from_numpy(chunk.pixels), batch).cpu().topk(top, dim=1)
        best = zip(chances.tolist(), places.tolist())
    for row, name in enumerate(chunk.names):
        if row in chunk.errors:
            yield Predicted(readable_name(name), error=chunk.errors[row])
            continue
        shares, classes = next(best)
        yield Predicted(readable_name(name), tuple((model.classes[k], share) for k, share in zip(classes, shares)))


class Lines(Protocol):
    """A file's form."""

    def __init__(self, top: int) -> None: ...

    def header(self) -> str: ...

    def line(self, one: Predicted) -> str: ...


class CsvLines:
    """path, label, probability, label_2, probability_2, ..., error."""

    def __init__(self, top: int) -> None:
        self.top = top

    def header(self) -> str:
        names = [name for k in range(self.top) for name in _columns(k)]
        return self._row(["path", *names, "error"])

    def line(self, one: Predicted) -> str:
        cells = [cell for name, chance in one.best for cell in (name, f"{chance:.6f}")]
        return self._row([one.path, *cells, *[""] * (2 * self.top - len(cells)), one.error or ""])

    def _row(self, cells: list[str]) -> str:
        text = io.StringIO()
        # A lone carriage return is not quoted by itself, and no reader takes it back.
        awkward = any("\r" in cell for cell in cells)
        csv.writer(text, quoting=csv.QUOTE_ALL if awkward else csv.QUOTE_MINIMAL, lineterminator="\n").writerow(cells)
        return text.getvalue()


def _columns(place: int) -> tuple[str, str]:
    return ("label", "probability") if place == 0 else (f"label_{place + 1}", f"probability_{place + 1}")


class JsonLines:
    """{"path": ..., "predictions": [{"label": ..., "probability": ...}, ...], "error": null or text}."""

    def __init__(self, top: int) -> None:
        self.top = top

    def header(self) -> str:
        return ""

    def line(self, one: Predicted) -> str:
        found = [{"label": name, "probability": round(chance, 6)} for name, chance in one.best]
        return json.dumps({"path": one.path, "predictions": found, "error": one.error}, ensure_ascii=False) + "\n"


FORMATS: dict[str, type[Lines]] = {"csv": CsvLines, "jsonl": JsonLines}
