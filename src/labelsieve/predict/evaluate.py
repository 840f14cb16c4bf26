"""Measures a finished model's accuracy on labelled pictures of any kind of data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from labelsieve.backbones.embedding import Embedder
from labelsieve.config.elsewhere import for_data, is_trained_on
from labelsieve.config.resolve import check_heeded
from labelsieve.config.schema import Config, override
from labelsieve.data.noisy_data import Collection, Held
from labelsieve.data.pictures.decoding import Plan, Progress, Read, decoded
from labelsieve.data.pictures.held import Found, held_rows, labelled_pictures
from labelsieve.data.pictures.opening import Second, second_test
from labelsieve.data.pictures.options import picture_options
from labelsieve.data.sources import OWN, SOURCES, load_data, some_held, source_at
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError, UsageError, command
from labelsieve.methods.parts.diagnostics import NAMES, accuracy, accuracy_interval, summed
from labelsieve.predict.model import Model, load_model
from labelsieve.runs.features import cache_of
from labelsieve.runs.findings import things_of
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import measuring_pictures

MANY = 20  # classes from which on the top 5 say something
WHOLE = "the whole test set"


def accuracies(logits: Sequence[Tensor], scores: Sequence[Tensor | None], labels: Tensor) -> dict[str, float]:
    """Percent right by each network, by all together (`both`: the sum of logits), and the same for prototypes that have learnt.

    Of many classes also how often the right one is among the five that are found likeliest.
    """
    result = {name: accuracy(each, labels) for name, each in zip(NAMES, logits)}
    result["both"] = accuracy(summed(logits), labels)
    if logits[0].shape[1] >= MANY:
        result["both_top5"] = accuracy(summed(logits), labels, top=5)
    learnt = [score for score in scores if score is not None]
    if len(learnt) == len(logits):
        result |= {f"prototypes_{name}": accuracy(each, labels) for name, each in zip(NAMES, learnt)}
        result["prototypes"] = accuracy(summed(learnt), labels)
    return result


def evaluate_model(
    path: Path,
    data: str | None,
    device: str,
    progress: Progress | None = None,
    said: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Percent right by each network, by both (with its 95 % interval), and by prototypes.

    On `data`: its test pictures, else its val pictures, else all of it; its classes go by name. Without data, on what the
    run itself was measured on; where `data.test_limit` made that a part of the test set, under `also` on the whole of it.
    `said` holds settings of pictures by dotted key, in place of the run's own.
    """
    config = RunFolder.open(path).read_config()
    if data is None and said:
        raise UsageError(f"{', '.join(said)}: this is about other data; name them: {command('evaluate', path, 'DATA')}")
    trained_on = config.data.source
    if data is not None:
        config = _for_data(config, data, said or {})
    else:
        _check_there(path, config)
    source = None if data is None else source_at(data, picture_options(config.pictures))
    model = load_model(path, choose_device(device))
    found = _own(path, config, model, progress) if source is None else _named(source, config, model, progress)
    second = _second(config, model, progress) if source is None else Second()
    also = {name: measured(model, held) for name, held in second.also.items()}
    if source is None and config.data.test_limit is not None:
        found, whole = _as_in_the_run(found, config), found.held
        also |= {WHOLE: measured(model, whole)} if len(whole.labels) > len(found.held.labels) else {}
    accuracy = measured(model, found.held)
    return {
        "data": source or config.pictures.val or config.data.source,
        "split": found.split,
        "pictures": len(found.held.labels),
        "left_out": len(found.left_out),
        "notes": list(found.notes),
        "trained_on": found.split == "all" and source is not None and _same_rows(source, trained_on),
        "accuracy": accuracy,
        "interval": accuracy_interval(round(accuracy["both"] / 100 * len(found.held.labels)), len(found.held.labels)),
        "also": also,
        "also_left_out": len(second.left_out),
    }


def _as_in_the_run(found: Found, config: Config) -> Found:
    """The part of the test set that the run's own figures are of, and that said."""
    assert config.data.test_limit is not None
    held, whole = some_held(found.held, config.data.test_limit), len(found.held.labels)
    if len(held.labels) == whole:
        return found
    told = f"these are the {len(held.labels):,} of {whole:,} test {things_of(config.data.source)} that the run was measured on "
    return replace(found, held=held, notes=(*found.notes, f"{told}(data.test_limit)"))


def _check_there(path: Path, config: Config) -> None:
    place = config.pictures.val or config.data.source.partition(":")[2]
    if place and not Path(place).expanduser().exists():
        raise ToolError(
            f"{place}: what the run was measured on is no longer there; name labelled data: {command('evaluate', path, 'DATA')}"
        )


def _same_rows(one: str, other: str) -> bool:
    """Whether `one` names the data that `other` does, or their training split, be it through a link."""
    (name, _, path), (second, _, place) = one.partition(":"), other.partition(":")
    return name == second and is_trained_on(Path(path), place)


def _for_data(config: Config, data: str, said: Mapping[str, Any]) -> Config:
    """The run's choices where they suit the data, and what was said of these."""
    name, _, place = data.partition(":")
    path = Path(place if name in SOURCES else data).expanduser()
    is_file = (name not in SOURCES or name in (*OWN, "arrays")) and path.exists()
    config = for_data(config, path, said) if is_file else override(config, said)
    check_heeded(source_at(data, picture_options(config.pictures)), said)
    return config


def measured(model: Model, held: Held, batch: int = 512) -> dict[str, float]:
    """Percent right on held pictures, as `accuracies` names them."""
    seen = model.look(held.images, batch)
    logits, scores = [outlook.logits for outlook in seen], [outlook.prototypes for outlook in seen]
    return accuracies(logits, scores, held.labels.to(logits[0].device))


def _second(config: Config, model: Model, progress: Progress | None) -> Second:
    """The second test set of a run on WebVision, where it is."""
    name, _, place = config.data.source.partition(":")
    if name != "webvision":
        return Second()
    read, _ = _ways(config, model)
    plan = Plan(model.shape[-1], model.shape[0] if read is decoded else 3, model.fit, 0)
    return second_test(Path(place), picture_options(config.pictures), plan, model.classes, progress, read)


def _ways(config: Config, model: Model) -> tuple[Read, Callable[[Collection], Collection]]:
    """How files and arrays become what the model reads: pixels as they are decoded, or its backbone's features."""
    if model.backbone is None:
        return decoded, lambda found: found
    embedder = Embedder(model.backbone, model.device, cache_of(config), by_content=config.pictures.by_content)
    return embedder.of_listing, embedder.of_collection


def _named(source: str, config: Config, model: Model, progress: Progress | None) -> Found:
    name, _, place = source.partition(":")
    read, arrays = _ways(config, model)
    options = picture_options(config.pictures)
    if name in OWN:
        return labelled_pictures(Path(place), options, model.shape, model.classes, progress, read, arrays)
    found = arrays(load_data(source, config.pictures.skip_unlabelled, config.pictures.white).collection)
    return held_rows(found, model.shape, model.classes, source)


def _own(path: Path, config: Config, model: Model, progress: Progress | None) -> Found:
    if config.pictures.val is not None:
        return measuring_pictures(config, model.shape, model.classes, progress)
    found = _named(config.data.source, config, model, progress)
    if found.split == "all":
        raise ToolError(
            f"{config.data.source}: it has no test pictures; name data that have some: {command('evaluate', path, 'DATA')}"
        )
    return found
