"""Predicts new pictures or vectors: finds them, and gives for each the likeliest classes, or why it has none."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from labelsieve.backbones.embedding import Embedder
from labelsieve.config.elsewhere import for_data, suited_to
from labelsieve.config.schema import Config, override
from labelsieve.data.arrays import new_pictures
from labelsieve.data.embeddings import new_vectors
from labelsieve.data.pictures.decoding import Plan, Read, decoded
from labelsieve.data.pictures.listing import readable_name
from labelsieve.data.pictures.options import picture_options
from labelsieve.data.pictures.recognise import recognise
from labelsieve.data.pictures.unlabelled import Chunk, Unlabelled, find_pictures, in_chunks, is_set, unlabelled_set
from labelsieve.doors import is_folder
from labelsieve.errors import ToolError, UsageError
from labelsieve.predict.model import Model

VECTOR_FILES = (".npz", ".npy", ".parquet")
READ = ("image_column", "id_column", "split_column", "root", "outside", "encoding", "white")  # of the settings of pictures
STRETCH = 65_536  # vectors whose answers are written together
PIXELS = 2**28  # of arrays, the same


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


@dataclass(frozen=True)
class NewSamples:
    """So many `things`, pictures or vectors, by path or id (`key`); `chunks` can be gone through once.

    `ignored` counts what was passed over; `notes` should be said; `named` are files that were asked for one by one.
    """

    things: str
    key: str
    count: int
    chunks: Iterator[Chunk]
    ignored: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()


def find_samples(model: Model, config: Config, paths: Sequence[Path], said: Mapping[str, Any]) -> NewSamples:
    """What lies at the paths, of the kind that the model reads; `said` are settings of pictures, in place of the run's own."""
    idle = [key for key in said if key.removeprefix("pictures.") not in READ]
    if idle:
        raise UsageError(
            f"--set {idle[0]}: pictures are brought to what the model was trained on, and labels are not read; "
            f"`predict` takes pictures.{', '.join(READ)}"
        )
    paths = [path.expanduser() for path in paths]
    takes_vectors = len(model.shape) == 1 and model.backbone is None
    return (_vectors if takes_vectors else _pictures)(model, config, paths, said)


def _pictures(model: Model, config: Config, paths: Sequence[Path], said: Mapping[str, Any]) -> NewSamples:
    """Picture files first, by their paths; then data sets, whose rows go by the ids that `train` gives them."""
    sets = dict.fromkeys(path for path in paths if is_set(path))
    plain = [path for path in paths if path not in sets]
    heeded = {"pictures.outside"} if any(map(is_folder, plain)) else set()  # folders have links, and no columns
    idle = [key for key in said if key not in heeded]
    if idle and not sets:
        raise UsageError(f"{', '.join(idle)}: this is about tables and other data sets; none of the paths leads to one")
    found: list[Unlabelled | InMemory] = [find_pictures(plain, override(config, said).pictures.outside)] if plain else []
    for path in sets:
        one = _set(model, for_data(config, path, said) if path.exists() else config, path)
        found.append(one if len(paths) == 1 else replace(one, names=[f"{path}:{name}" for name in one.names]))
    count = sum(map(len, found))
    if not count:
        raise ToolError(f"{paths[0]}: it has no rows; give pictures to look at")
    embedder, read = _embedder(model), cast(Read, decoded)
    if embedder is None:
        plan = Plan(model.shape[1], model.shape[0], model.fit, count, model.white)
    else:
        plan, read = Plan(embedder.backbone.sight.frame.height, 3, model.fit, count, model.white), embedder.passing
    chunks = (in_chunks(some, plan, read=read) if isinstance(some, Unlabelled) else some.chunks() for some in found)
    listed = [some for some in found if isinstance(some, Unlabelled)]
    ignored = sum((some.ignored for some in listed), Counter[str]())
    notes = tuple(note for some in listed for note in some.notes)
    named = frozenset(readable_name(str(path)) for path in plain if not is_folder(path))
    return NewSamples("pictures", "id" if sets else "path", count, chain.from_iterable(chunks), ignored, notes, named)


def _embedder(model: Model) -> Embedder | None:
    """What brings pictures to what the model reads, where that is not their pixels. Nothing of it is kept."""
    return None if model.backbone is None else Embedder(model.backbone, model.device, Path())


@dataclass(frozen=True)
class InMemory:
    """Samples (N, ...) that are in memory, by their names (N,)."""

    names: Sequence[str]
    values: Tensor
    stretch: int = STRETCH

    def __len__(self) -> int:
        return len(self.names)

    def chunks(self) -> Iterator[Chunk]:
        for first in range(0, len(self), self.stretch):
            some = slice(first, first + self.stretch)
            yield Chunk(self.names[some], self.values[some].numpy())


def _set(model: Model, config: Config, path: Path) -> Unlabelled | InMemory:
    options = picture_options(config.pictures)
    layout = recognise(path, options)
    if layout.kind == "embeddings":
        raise UsageError(f"{path}: {layout.why}, and this run's model looks at pictures; give pictures as `train` reads them")
    if layout.kind != "arrays":
        return unlabelled_set(layout.kind, layout.path, options)
    names, pictures = new_pictures(path, options.white)
    if (embedder := _embedder(model)) is not None:
        with TemporaryDirectory(prefix="labelsieve-") as folder:
            return InMemory(names, replace(embedder, cache=Path(folder)).of_arrays(pictures, str(path)))
    if tuple(pictures.shape[1:]) != model.shape:
        raise ToolError(
            f"{path}: one picture is {tuple(pictures.shape[1:])}, and this model reads {model.shape}; bring them to that shape, "
            f"or write them as picture files, which are brought to it"
        )
    return InMemory(names, pictures, max(64, PIXELS // pictures[0].numel()) if len(pictures) else STRETCH)


def _vectors(model: Model, config: Config, paths: Sequence[Path], said: Mapping[str, Any]) -> NewSamples:
    """The vectors of files; of several files, each id begins with its file's name."""
    ids: list[str] = []
    values: list[Tensor] = []
    home = config.data.source.partition(":")[2]
    for path in paths:
        if not path.is_file() or path.suffix.lower() not in VECTOR_FILES:
            what = "there is no such file" if not path.exists() else "it is no file of vectors"
            raise ToolError(
                f"{path}: {what}; this model reads vectors of {model.shape[0]} numbers: give {', '.join(VECTOR_FILES)} files"
            )
        chosen = override(replace(config, pictures=suited_to(path, config.pictures, home)), said)
        names, found = new_vectors(path, picture_options(chosen.pictures))
        if found.shape[1] != model.shape[0]:
            raise ToolError(
                f"{path}: vectors of {found.shape[1]} numbers, and this model reads {model.shape[0]}; "
                f"make them as those it was trained on were made"
            )
        ids += names if len(paths) == 1 else [f"{path}:{name}" for name in names]
        values.append(found)
    if not ids:
        raise ToolError(f"{paths[0]}: no vector is there; give one per row")
    return NewSamples("vectors", "id", len(ids), InMemory(ids, torch.cat(values)).chunks())
