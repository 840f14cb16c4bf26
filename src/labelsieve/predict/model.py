"""Loads a finished model: networks ready to classify, from `model.safetensors` and `model.json`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelsieve import nets, run_files
from labelsieve.backbones.backbone import Backbone, rebuilt
from labelsieve.backbones.embedding import placed
from labelsieve.data.augment.weak import middle
from labelsieve.data.pictures.decode import WHITEST
from labelsieve.doors import Damage, reading, short
from labelsieve.errors import ToolError, command
from labelsieve.methods.net import scale, torchs_own
from labelsieve.methods.parts import losses
from labelsieve.methods.parts.prototypes import Projector, scaled
from labelsieve.methods.parts.sgd import part
from labelsieve.methods.parts.streams import seeded
from labelsieve.nets.own import REGISTERED
from labelsieve.run_files import is_there
from labelsieve.runs.checkpoint import read_tensors
from labelsieve.runs.folder import RunFolder

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
        self.experts = experts
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
        return [_joined(parts) for parts in found]

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
        with reading(folder.model, AGAIN):
            model = built(facts, tensors, device)
    except ToolError as error:
        raise type(error)(f"{folder.model}: {error}") from None
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
        if name not in REGISTERED:
            with torch.device("meta"):  # takes no memory: what a stranger describes may be of any size
                wanted = {key: value.shape for key, value in made().state_dict().items()}
            if wanted != {key: value.shape for key, value in values.items()}:
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
