"""A trained model, read from a run folder: it looks at new pictures, and its accuracy is measured on labelled ones."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelsieve import nets, run_files
from labelsieve.backbones.backbone import Backbone, rebuilt
from labelsieve.backbones.embedding import Embedder, placed
from labelsieve.config.elsewhere import for_data, is_trained_on
from labelsieve.config.resolve import check_heeded
from labelsieve.config.schema import Config, override
from labelsieve.data.augment.weak import middle
from labelsieve.data.noisy_data import Collection, Held
from labelsieve.data.pictures.decode import WHITEST
from labelsieve.data.pictures.decoding import Plan, Progress, Read, decoded
from labelsieve.data.pictures.held import Found, held_rows, labelled_pictures
from labelsieve.data.pictures.opening import Second, second_test
from labelsieve.data.pictures.options import picture_options
from labelsieve.data.sources import OWN, SOURCES, load_data, some_held, source_at
from labelsieve.doors import Damage, reading, short
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError, UsageError, command
from labelsieve.methods.net import scale, torchs_own
from labelsieve.methods.parts import losses
from labelsieve.methods.parts.diagnostics import NAMES, accuracy, accuracy_interval, summed
from labelsieve.methods.parts.prototypes import Projector, scaled
from labelsieve.methods.parts.sgd import part
from labelsieve.methods.parts.streams import seeded
from labelsieve.nets import own
from labelsieve.run_files import is_there
from labelsieve.runs.checkpoint import read_tensors
from labelsieve.runs.features import cache_of
from labelsieve.runs.findings import things_of
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import measuring_pictures

AGAIN = "resume or repeat the run"
WIDEST = 4096  # pixels
BLOCK = 16  # pictures that a backbone looks at together


@dataclass(frozen=True)
class Outlook:
    """One network's view of pictures (N): logits (N, K), and the prototypes' scores (N, K) where it has prototypes."""

    logits: Tensor
    prototypes: Tensor | None


@dataclass(frozen=True)
class Expert:
    """One network with its prototypes, ready to look; in eval mode."""

    network: nn.Module
    projector: Projector | None
    prototypes: Tensor | None
    cosine: float


class Model:
    """Both networks of a run, with the classes and the normalisation they were trained with."""

    def __init__(
        self, experts: list[Expert], facts: dict[str, Any], device: torch.device, backbone: Backbone | None = None
    ) -> None:
        self.experts, self.place = experts, "the model"
        self.backbone = backbone  # turns framed pictures into what the networks read, where they learnt from features
        self.classes: tuple[str, ...] = tuple(facts["classes"])
        self.shape: tuple[int, ...] = tuple(facts["shape"])
        self.fit: str = facts.get("fit", "crop")  # how pictures are brought to that shape
        self.white: int = facts.get("white") or WHITEST  # what became 255 in 16-bit grey
        self.crop: int | None = facts.get("crop")  # the middle of that side is looked at; none: all
        self.device = device
        self.mean, self.std = (scale(facts[name], len(self.shape), device) for name in ("mean", "std"))

    @torch.no_grad()
    def look(self, images: Tensor, batch: int = 512) -> list[Outlook]:
        """What each network makes of pictures, bytes (N, C, H, W), or of vectors (N, D)."""
        if self.backbone is not None and images.ndim == 4:
            images = torch.cat([self.backbone(some.to(self.device)) for some in images.split(BLOCK)])
        found: list[list[tuple[Tensor, Tensor | None]]] = [[] for _ in self.experts]
        for some in images.split(batch):
            pixels = (self.seen(some.to(self.device)).float() - self.mean) / self.std
            for parts, expert in zip(found, self.experts):
                logits, features = expert.network(pixels)
                scores = None
                if expert.projector is not None and expert.prototypes is not None:
                    prototypes = scaled(expert.prototypes, expert.cosine)
                    scores = losses.similarity(expert.projector(features), prototypes)
                parts.append((logits, scores))
        said = [_joined(parts) for parts in found]
        if not all(bool(each.isfinite().all()) for one in said for each in (one.logits, one.prototypes) if each is not None):
            raise ToolError(f"{self.place}: it answers with numbers that are not finite, so it or the data is damaged; {AGAIN}")
        return said

    def seen(self, images: Tensor) -> Tensor:
        """What the networks look at: pictures of `shape`, or the middle of them."""
        return images if self.crop is None else middle(images, self.crop)

    def probabilities(self, images: Tensor, batch: int = 512) -> Tensor:
        """What both networks say together: (N, K), of which the largest is the class that `accuracies` counts as theirs."""
        return together([seen.logits for seen in self.look(images, batch)])

    def mean_shares(self, images: Tensor, batch: int = 512) -> Tensor:
        """The mean of each network's own softmax, which suggestions about training labels go by: (N, K)."""
        return torch.stack([seen.logits.softmax(1) for seen in self.look(images, batch)]).mean(0)


def together(logits: Sequence[Tensor]) -> Tensor:
    """Shares (N, K) by networks' logits (N, K): a softmax of their mean, whose order is that of their sum."""
    return torch.stack(list(logits)).mean(0).softmax(1)


def _joined(parts: list[tuple[Tensor, Tensor | None]]) -> Outlook:
    scores = [score for _, score in parts if score is not None]
    return Outlook(torch.cat([logits for logits, _ in parts]), torch.cat(scores) if scores else None)


def load_model(path: Path | str, device: torch.device | str = "cpu") -> Model:
    """The model in a run folder, or a `ToolError` that says what is missing."""
    path, device = Path(path), torch.device(device)
    folder = RunFolder.open(path)
    for file in (folder.model, folder.model_facts):
        if not is_there(file):
            raise ToolError(
                f"{file}: missing; the run has not come to a stop yet, or was half deleted: {command('resume', path)}"
            )
    facts = run_files.facts(folder.model_facts, AGAIN)
    with reading(folder.model, AGAIN):
        tensors = read_tensors(folder.model)
        try:
            model = built(facts, tensors, device)
        except ToolError as error:
            raise type(error)(f"{folder.model}: {error}") from None
    model.place = str(folder.model)
    if "backbone" in facts:
        with reading(folder.backbone, AGAIN):
            made = rebuilt(facts["backbone"], read_tensors(folder.backbone), str(folder.backbone))
        model.backbone = placed(made, device)
    return model


def built(facts: dict[str, Any], tensors: dict[str, Tensor], device: torch.device) -> Model:
    """The model that `model_facts` and `model_tensors` describe."""
    shape = facts["shape"]
    if len(shape) not in (1, 3) or min(shape) < 1 or max(shape[1:], default=1) > WIDEST:
        raise Damage(f'"shape" is {short(shape)}; write [dimensions] or [channels, height, width]')
    for name in ("mean", "std"):
        if len(facts[name]) not in (1, shape[0]):
            raise Damage(f'"{name}" has {len(facts[name])} numbers for {shape[0]} channels')
    if not all(0 < value < math.inf for value in facts["std"]) or not all(map(math.isfinite, facts["mean"])):
        raise Damage('"mean" must be finite, and "std" above 0')
    crop, sides = facts.get("crop"), shape[1:]
    if facts["networks"] < 1:
        raise Damage(f'"networks" is {facts["networks"]}, and one is the least')
    if crop is not None and (len(sides) != 2 or not 0 < crop <= min(sides)):
        raise Damage(f'"crop" is {crop} for samples of shape {tuple(shape)}')
    tensors = {name: value.to(device) for name, value in tensors.items()}
    experts = [_expert(facts, part(tensors, str(number)), device) for number in range(facts["networks"])]
    return Model(experts, facts, device)


def seen_shape(shape: Sequence[int], crop: int | None) -> tuple[int, ...]:
    """What the networks see of a sample of `shape`: all, or a square of side `crop`."""
    return tuple(shape) if crop is None else (shape[0], crop, crop)


def _expert(facts: dict[str, Any], tensors: dict[str, Tensor], device: torch.device) -> Expert:
    shape = seen_shape(facts["shape"], facts.get("crop"))
    name, values = facts["network"], part(tensors, "network")

    def made() -> nn.Module:
        return nets.build(name, shape[0], len(facts["classes"]), 0, shape)

    with torchs_own:
        if name not in own.REGISTERED:
            with torch.device("meta"):  # takes no memory: what a stranger describes may be of any size
                wanted = _kinds(made().state_dict())
            if wanted != _kinds(values):
                raise Damage(f'its tensors are not those of "{name}" for {len(facts["classes"])} classes of shape {short(shape)}')
        network = made().to(device).eval()
    network.load_state_dict(values)
    prototypes = tensors.get("judge.prototypes")
    if prototypes is None:
        return Expert(network, None, None, 0.0)
    layers = part(tensors, "judge.projector")
    weights = [value for name, value in layers.items() if name.endswith("weight")]
    features = weights[0].shape[1]
    if any(tuple(value.shape) != (features, features) for value in weights[:-1]):
        raise Damage("its projector's hidden layers are not as wide as what they read")
    projector = Projector(features, weights[-1].shape[0], len(weights), facts["cosine"], seeded(0)).to(device)
    projector.load_state_dict(layers)
    return Expert(network, projector.eval(), prototypes, facts["cosine"])


def _kinds(tensors: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, bool]]:
    return {name: (value.shape, value.is_floating_point()) for name, value in tensors.items()}


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
