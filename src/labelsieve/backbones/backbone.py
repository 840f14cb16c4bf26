"""A backbone: a pretrained network of timm without its classifier, ready to turn framed pictures into features."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as as_bytes
from torch import Tensor, nn

from labelsieve.backbones.hub import Say, own_weights
from labelsieve.backbones.weights import matching, read_weights
from labelsieve.data.pictures.framing import INTERPOLATIONS, MODES, Frame
from labelsieve.errors import ToolError, UsageError
from labelsieve.nets.zoo import PREFIX, body_of, check_model, timm_library

COUNTERS = "num_batches_tracked"  # BatchNorm counts its batches, and not every library keeps that


def by_timm(name: str, tensors: Mapping[str, Tensor], size: int | None = None) -> dict[str, Tensor] | None:
    """The tensors under the names of the network without classifier, if timm itself can read them whole; else None.

    timm knows the names that a network's authors used, and fits position embeddings to another picture size.
    """
    timm = timm_library()
    config = timm.get_pretrained_cfg(name)
    if config is None:
        return None
    ends = config.classifier if isinstance(config.classifier, str) else None
    last = tensors.get(f"{ends}.weight")
    settings: dict[str, Any] = {"num_classes": 0 if last is None else len(last)}
    if config.fixed_input_size and size is not None:
        settings["img_size"] = size
    told = {"state_dict": dict(tensors), "num_classes": settings["num_classes"], "custom_load": False, "label_offset": 0}
    try:
        with torch.random.fork_rng(devices=[]):
            # With as many classes as the file has, timm refuses a file that lacks anything.
            model = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=told, **settings)
        model.reset_classifier(0)
    except Exception:  # whatever a translation that expects other names runs into
        return None
    found: dict[str, Tensor] = model.state_dict()
    return found


def by_order(wanted: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """The tensors under the names of `wanted`, if the file has the same kinds and shapes in the same order; else None.

    After them there may be a classifier: one matrix, and its bias.
    """
    ours = [(name, value) for name, value in wanted.items() if not name.endswith(COUNTERS)]
    theirs = [(name, value) for name, value in tensors.items() if not name.endswith(COUNTERS)]
    rest = theirs[len(ours) :]
    if len(theirs) < len(ours) or len(rest) > 2 or (rest and rest[0][1].ndim != 2):
        return None
    for (name, value), (other, given) in zip(ours, theirs):
        if value.shape != given.shape or name.rpartition(".")[2] != other.rpartition(".")[2]:
            return None
    return {name: given for (name, _), (_, given) in zip(ours, theirs)}


LARGEST = 4096  # pixels of a side
RULES = 1  # to be raised whenever the same picture, network and frame would lead to other features


@dataclass(frozen=True)
class Sight:
    """How a network looks at pictures: framed, from 0 to 1, less `mean` over `std` (3,)."""

    frame: Frame
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def facts(self) -> dict[str, Any]:
        return {"frame": self.frame.facts(), "mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Sight":
        frame = Frame.of(facts["frame"])
        sides = (frame.height, frame.width, *frame.scaled)
        known = frame.mode in MODES and frame.interpolation in INTERPOLATIONS and len(frame.scaled) == 2 and len(frame.fill) == 3
        if not known or not all(0 < side <= LARGEST for side in sides):
            raise ToolError(f"a backbone that looks at {sides}, {frame.mode}, {frame.interpolation}, which is none that we wrote")
        return cls(frame, tuple(facts["mean"]), tuple(facts["std"]))


class Backbone(nn.Module):
    """`backbone(pixels)`: bytes (B, 3, H, W) as the frame makes them -> features (B, D), float32."""

    mean: Tensor
    std: Tensor

    def __init__(self, name: str, network: nn.Module, sight: Sight, notes: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.name, self.sight, self.notes = name, sight, notes
        self.width = _width(network, name, sight)
        self.network = network.eval().requires_grad_(False)
        self.register_buffer("mean", 255 * torch.tensor(sight.mean).view(1, 3, 1, 1))
        self.register_buffer("std", 255 * torch.tensor(sight.std).view(1, 3, 1, 1))
        self.sha256 = digest(network.state_dict())
        self.eval()

    def forward(self, pixels: Tensor) -> Tensor:
        features: Tensor = self.network((pixels.float() - self.mean) / self.std)
        return features.float()

    @property
    def key(self) -> str:
        """What features are kept under: weights that are the same, looking the same way, have the same."""
        words = (self.name, self.sha256, sorted(self.sight.facts().items(), key=str), RULES)
        return hashlib.sha256(repr(words).encode()).hexdigest()[:24]

    def facts(self) -> dict[str, Any]:
        """All that is needed to make it again from its weights."""
        return {"name": self.name, "sha256": self.sha256, **self.sight.facts()}

    def weights(self) -> bytes:
        """Its weights, as a safetensors file holds them."""
        return as_bytes({name: value.detach().cpu().contiguous() for name, value in self.network.state_dict().items()})


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Of names, shapes and values, whatever file they came in; BatchNorm's counters aside, which not every file has."""
    total = hashlib.sha256()
    for name in sorted(name for name in tensors if not name.endswith(COUNTERS)):
        value = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {value.dtype} {tuple(value.shape)}\0".encode())
        total.update(value.view(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b"")
    return total.hexdigest()


def sight_of(name: str, size: int | None = None, fit: str = "crop") -> Sight:
    """What timm says of how the network was made to look; another `size` of the pictures, or all of each ("squash")."""
    config = check_model(name).get_pretrained_cfg(name)
    if config is None:
        raise UsageError(
            f"timm has no settings of {name}, so that its pictures' size and scale are not known; choose another backbone"
        )
    height, width = config.input_size[1:] if size is None else (size, size)
    share, mode = (1.0, "squash") if fit == "squash" else (config.crop_pct or 0.875, config.crop_mode or "center")
    way = config.interpolation if config.interpolation in INTERPOLATIONS else "bicubic"
    mean, std = tuple(map(float, config.mean)), tuple(map(float, config.std))
    fill = tuple(round(255 * value) for value in mean)
    scaled = math.floor(height / share), math.floor(width / share)
    assert mode in MODES and len(mean) == len(std) == len(fill) == 3
    return Sight(Frame(height, width, scaled, mode, way, fill), mean, std)


def backbone_for(
    name: str,
    weights: Path,
    *,
    size: int | None = None,
    fit: str = "crop",
) -> Backbone:
    """timm's network `name` with the weights of a file, for pictures of another `size` than it was made for if you say so."""
    name = plain_name(name)
    check_model(name)
    sight = sight_of(name, size, fit)
    network, notes = with_weights(name, read_weights(weights, "--weights"), str(weights), size)
    return Backbone(name, network, sight, notes)


def plain_name(name: str) -> str:
    """As timm has it: people may write `timm:NAME`, as for --network."""
    return name.removeprefix(PREFIX)


def rebuilt(facts: Mapping[str, Any], tensors: dict[str, Tensor], place: str) -> Backbone:
    """The backbone of a run: what was written down of it, and its own weights, which lie at `place`."""
    sight = Sight.of(facts)
    with torch.device("meta"):  # takes no memory: what a stranger describes may be of any size
        wanted = body_of(facts["name"], sight.frame.height).state_dict()
    _, missing, misfits = matching(wanted, tensors)
    if not missing and not misfits:
        network = body_of(facts["name"], sight.frame.height)
        network.load_state_dict(tensors)
    if missing or misfits or digest(network.state_dict()) != facts["sha256"]:
        raise ToolError(f"{place}: these are not the weights the run started with; put back the file that came with the run")
    return Backbone(facts["name"], network, sight)


def with_weights(name: str, tensors: dict[str, Tensor], place: str, size: int | None) -> tuple[nn.Module, tuple[str, ...]]:
    """The network without a classifier, every weight of it from the file; and what should be said.

    Tried in turn: the names are timm's own; timm knows how to translate them; another library's names stand in the same order
    before the same shapes.
    """
    network = body_of(name, size)
    wanted = network.state_dict()
    found, missing, misfits = matching(wanted, tensors)
    notes: tuple[str, ...] = ()
    if missing or misfits:
        found = by_timm(name, tensors, size) or {}
    if not found:
        found = by_order(wanted, tensors) or {}
        notes = (f"weights: {place} has other names than timm for its {len(found)} tensors; all fit {name} by order and shape",)
    if not found:
        what = (
            f'{len(missing)} of its {len(wanted)} tensors are not in it, the first is "{missing[0]}"' if missing else misfits[0]
        )
        raise ToolError(
            f"{place}: these are not the weights of {name}: {what}; give the file that was made for this backbone, or name the "
            f"backbone that the file was made for"
        )
    network.load_state_dict({**wanted, **found})
    return network, notes


def zoo_tensors(name: str, offline: bool = False, say: Say = lambda text: None) -> dict[str, Tensor]:
    """timm's own weights of a network less its classifier's, for one that is to be trained further."""
    place = own_weights(name).fetched(say, offline)
    return dict(with_weights(name, read_weights(place), str(place), None)[0].state_dict())


@torch.no_grad()
def _width(network: nn.Module, name: str, sight: Sight) -> int:
    """How many features come out; a `ToolError` where no vector does, or one that is no number."""
    try:
        seen = network.eval()(torch.zeros(1, 3, sight.frame.height, sight.frame.width))
    except Exception as error:  # each of a thousand networks refuses a size in a way of its own
        said = " ".join(str(error).split())[:160]
        raise ToolError(
            f"{name} cannot look at pictures of {sight.frame.height} x {sight.frame.width} ({said}); leave --size out"
        ) from None
    if not isinstance(seen, Tensor) or seen.ndim != 2:
        raise ToolError(f"{name} gives no one vector a picture; choose another backbone")
    if not bool(torch.isfinite(seen).all()):
        raise ToolError(f"{name}: its features are not finite, so its weights are damaged; fetch them again")
    return seen.shape[1]
