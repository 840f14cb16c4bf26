"""Predicts new pictures or vectors: for each the likeliest classes, or why it has none."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch

from labelsieve.data.pictures.listing import readable_name
from labelsieve.data.pictures.unlabelled import Chunk
from labelsieve.predict.model import Model


@dataclass(frozen=True)
class Predicted:
    """A picture by its path, or a sample by its id: (class, probability), best first; none where there is an `error`."""

    path: str
    best: tuple[tuple[str, float], ...] = ()
    error: str | None = None


def predictions(model: Model, chunks: Iterable[Chunk], top: int, batch: int = 256) -> Iterator[list[Predicted]]:
    """Lists of predictions in the order of the samples; each list is a chunk that was read together."""
    for chunk in chunks:
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

    def __init__(self, top: int, name: str = "path") -> None: ...

    def header(self) -> str: ...

    def line(self, one: Predicted) -> str: ...


class CsvLines:
    """path (or id), label, probability, label_2, probability_2, ..., error."""

    def __init__(self, top: int, name: str = "path") -> None:
        self.top, self.name = top, name

    def header(self) -> str:
        names = [name for k in range(self.top) for name in _columns(k)]
        return self._row([self.name, *names, "error"])

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
    """{"path" (or "id"): ..., "predictions": [{"label": ..., "probability": ...}, ...], "error": null or text}."""

    def __init__(self, top: int, name: str = "path") -> None:
        self.top, self.name = top, name

    def header(self) -> str:
        return ""

    def line(self, one: Predicted) -> str:
        found = [{"label": name, "probability": round(chance, 6)} for name, chance in one.best]
        return json.dumps({self.name: one.path, "predictions": found, "error": one.error}, ensure_ascii=False) + "\n"


FORMATS: dict[str, type[Lines]] = {"csv": CsvLines, "jsonl": JsonLines}
