"""Predictions for new pictures or vectors: a model and files go in; for each its likeliest classes, or why it has none."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from labelsieve.data.embeddings import new_vectors
from labelsieve.data.pictures.listing import readable_name
from labelsieve.data.pictures.survey import Plan
from labelsieve.data.pictures.unlabelled import Chunk, Unlabelled, in_chunks
from labelsieve.errors import ToolError
from labelsieve.runs.config import Config
from labelsieve.runs.elsewhere import suited_to
from labelsieve.runs.model import Model
from labelsieve.runs.picture_choices import picture_options

VECTOR_FILES = (".npz", ".npy", ".parquet")
STRETCH = 65_536  # vectors whose answers are written together


@dataclass(frozen=True)
class Predicted:
    """A picture by its path or a vector by its id: (class, probability), best first; none where there is an `error`."""

    path: str
    best: tuple[tuple[str, float], ...] = ()
    error: str | None = None


def predictions(model: Model, found: Unlabelled, top: int, batch: int = 256) -> Iterator[list[Predicted]]:
    """Lists of predictions in the order of the files; each list is a stretch that was decoded together."""
    channels, size, _ = model.shape
    for chunk in in_chunks(found, Plan(size, channels, model.fit, len(found), model.white)):
        yield list(_predicted(model, chunk, top, batch))


@dataclass(frozen=True)
class NewVectors:
    """Vectors (N, D) to look at, by their ids (N,)."""

    ids: Sequence[str]
    values: Tensor

    def __len__(self) -> int:
        return len(self.ids)


def find_vectors(model: Model, config: Config, paths: Sequence[Path]) -> NewVectors:
    """The vectors of files; of several files, each id begins with its file's name."""
    ids: list[str] = []
    values: list[Tensor] = []
    for path in paths:
        path = path.expanduser()
        if not path.is_file() or path.suffix.lower() not in VECTOR_FILES:
            what = "there is no such file" if not path.exists() else "it is no file of vectors"
            raise ToolError(
                f"{path}: {what}; this model reads vectors of {model.shape[0]} numbers: give {', '.join(VECTOR_FILES)} files"
            )
        chosen = suited_to(path, config.pictures, config.data.source.partition(":")[2])
        names, found = new_vectors(path, picture_options(chosen))
        if found.shape[1] != model.shape[0]:
            raise ToolError(
                f"{path}: vectors of {found.shape[1]} numbers, and this model reads {model.shape[0]}; "
                f"make them as those it was trained on were made"
            )
        ids += names if len(paths) == 1 else [f"{path}:{name}" for name in names]
        values.append(found)
    if not ids:
        raise ToolError(f"{paths[0]}: no vector is there; give one a row")
    return NewVectors(ids, torch.cat(values))


def vector_predictions(model: Model, found: NewVectors, top: int, batch: int = 256) -> Iterator[list[Predicted]]:
    """The same for vectors, a stretch at a time."""
    for first in range(0, len(found), STRETCH):
        chances, places = model.probabilities(found.values[first : first + STRETCH], batch).cpu().topk(top, dim=1)
        best = zip(found.ids[first : first + STRETCH], chances.tolist(), places.tolist())
        yield [Predicted(name, tuple((model.classes[k], share) for k, share in zip(ks, shares))) for name, shares, ks in best]


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
    """path (of vectors: id), label, probability, label_2, probability_2, ..., error."""

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
    """{"path" (of vectors: "id"): ..., "predictions": [{"label": ..., "probability": ...}, ...], "error": null or text}."""

    def __init__(self, top: int, name: str = "path") -> None:
        self.top, self.name = top, name

    def header(self) -> str:
        return ""

    def line(self, one: Predicted) -> str:
        found = [{"label": name, "probability": round(chance, 6)} for name, chance in one.best]
        return json.dumps({self.name: one.path, "predictions": found, "error": one.error}, ensure_ascii=False) + "\n"


FORMATS: dict[str, type[Lines]] = {"csv": CsvLines, "jsonl": JsonLines}
