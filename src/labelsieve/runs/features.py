"""How a run looks at pictures: through a pretrained network or from the pixels, decided if you don't say; and its backbone."""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelsieve.backbones.backbone import Backbone, backbone_for, plain_name
from labelsieve.backbones.embedding import Embedder, Tell, placed
from labelsieve.backbones.hub import Say, own_weights
from labelsieve.backbones.pictures import ArrayPictures, FilePictures, Pictures
from labelsieve.config.schema import Config, override
from labelsieve.data.pictures.cache import default_cache_dir
from labelsieve.data.pictures.decode import GREY_MODES, WHITEST
from labelsieve.data.pictures.framing import Frame
from labelsieve.data.pictures.listing import TRAIN
from labelsieve.data.pictures.options import picture_options
from labelsieve.data.pictures.pool import survey
from labelsieve.data.pictures.presence import present
from labelsieve.data.pictures.recognise import Layout, list_pictures, recognise
from labelsieve.data.pictures.websets import WEBSETS
from labelsieve.data.sources import OWN, open_source
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.nets.zoo import check_model
from labelsieve.runs import atomic
from labelsieve.runs.folder import RunFolder

FROZEN = "frozen"  # two small heads are trained on a backbone's features


@dataclass(frozen=True)
class Shown:
    """How the work of a backbone is shown: `say` what is downloaded, `tell` what is about to be embedded. None: not at all.

    `by` may put another embedder in the place of the usual one: of a part of the pictures, or of parts that are there.
    """

    say: Say | None = None
    tell: Tell | None = None
    by: Callable[[Embedder], Embedder] | None = None


def is_frozen(config: Config) -> bool:
    return config.features.use == FROZEN


def backbone_of(config: Config, say: Say | None = None) -> Backbone:
    """The backbone that a configuration names, with its weights; a run's are those that it began with."""
    features = config.features
    assert features.backbone is not None
    weights = None if features.weights is None else Path(features.weights).expanduser()
    if weights is None:
        weights = own_weights(plain_name(features.backbone)).fetched(say or _nothing, features.offline)
    stamp = weights.stat().st_mtime_ns if weights.is_file() else 0
    found = _loaded(features.backbone, weights, stamp, config.pictures.size, config.pictures.fit)
    if features.sha256 is not None and found.sha256 != features.sha256:
        raise ToolError(
            f"{weights}: these are not the weights the run started with, from which its features come; "
            f"put that file back, or start a new run"
        )
    return found


def _nothing(text: str) -> None:
    """Nobody listens."""


@lru_cache(maxsize=1)
def _loaded(name: str, weights: Path, stamp: int, size: int | None, fit: str) -> Backbone:
    """One at a time is kept: a run asks for its own again and again. `stamp` tells a changed file."""
    return backbone_for(name, weights, size=size, fit=fit)


def embedder_of(config: Config, shown: Shown | None = None) -> Embedder | None:
    """What makes a run's features; None where it trains on pixels."""
    if not is_frozen(config):
        return None
    shown = shown or Shown()
    device = choose_device(config.device)
    backbone = placed(backbone_of(config, shown.say), device)
    usual = Embedder(backbone, device, cache_of(config), config.engine.threads, config.pictures.by_content, shown.tell)
    return usual if shown.by is None else shown.by(usual)


def cache_of(config: Config) -> Path:
    """The folder in which features are kept, beside the decoded pictures."""
    return Path(config.pictures.cache_dir).expanduser() if config.pictures.cache_dir else default_cache_dir()


def check_backbone(config: Config) -> None:
    """An error for a backbone that is not known or weights that are not its own, before any long work."""
    if not is_frozen(config):
        return
    assert config.features.backbone is not None
    check_model(plain_name(config.features.backbone))
    if config.features.weights is not None:
        backbone_of(config)


def with_backbone(folder: RunFolder, config: Config, say: Say | None = None) -> Config:
    """The configuration of a new run with its backbone put into its folder: the run needs nothing else from then on."""
    if not is_frozen(config) or (config.features.sha256 is not None and folder.backbone.is_file()):
        return config
    backbone = backbone_of(config, say)
    for note in backbone.notes:
        (say or _nothing)(note)
    atomic.write_bytes(folder.backbone, backbone.weights())
    whole = replace(config, features=replace(config.features, sha256=backbone.sha256, backbone=backbone.name))
    folder.write_config(whole)
    return folder.own(whole)


def looking_as(before: Config, config: Config) -> Config:
    """The configuration with what a run has found out of its backbone, if it names the same one with the same weights."""
    mine, its = config.features, before.features
    if not (is_frozen(config) and is_frozen(before) and plain_name(mine.backbone or "") == its.backbone):
        return config
    same = mine.weights is None or backbone_of(config).sha256 == its.sha256
    return replace(config, features=its) if same else config


def framed_samples(config: Config, frame: Frame, count: int) -> Tensor:
    """Bytes (M, 3, H, W) of some training pictures as a backbone sees them, evenly spaced over the data."""
    name, _, place = config.data.source.partition(":")
    options = picture_options(config.pictures)
    if name not in OWN or not recognise(Path(place), options).has_pictures:
        images = open_source(config.data.source, options).collection.train.images
        pictures: Pictures = ArrayPictures(images, config.data.source)
        total = len(images)
    else:
        layout = Layout(name, Path(place), "as named") if name in WEBSETS else recognise(Path(place), options)
        listing = present(list_pictures(layout, options))
        pictures, total = FilePictures(listing.origin, options.white or WHITEST, workers=0), len(listing)
    rows = sorted({round(row) for row in np.linspace(0, total - 1, min(count, total))})
    with TemporaryDirectory(prefix="labelsieve-") as folder:
        blocks = list(pictures.blocks(rows, frame, len(rows), Path(folder)))
    kept = [block.pixels[place] for block in blocks for place in range(len(block.rows)) if place not in block.reasons]
    if not kept:
        raise ToolError(f"{config.data.source}: none of {len(rows)} pictures can be read")
    return torch.stack(kept)


USES = ("auto", FROZEN, "tuned", "none")
LOOKED_AT = 64  # pictures whose headers tell whether they are photos
SMALLEST = 24  # pixels: pictures with a shorter side below are icons or digits
ENOUGH = 50_000  # photos from which on a GPU trains the backbone itself; on 2,000 frozen features rank far better
EACH = 5_000  # photos of a class from which on networks that start from nothing rank well: CIFAR-10 has as many
LIGHT = (
    *("tf_efficientnet_lite0", "mobilenetv3_large_100", "efficientnet_b0", "resnet18", "resnet50"),
    *("vit_small_patch14_dinov2", "vit_small_patch16_224", "convnext_tiny", "vit_base_patch14_dinov2"),
)
NAME, FILE = "LABELSIEVE_BACKBONE", "LABELSIEVE_WEIGHTS"  # a user's own choice for all runs
# Who says one of these has chosen how to train already.
TOLD = ("network", "pretrained", "views.crop", "views.policy")


@dataclass(frozen=True)
class Eyes:
    """Settings by dotted key, and one line on why they are so; nothing is said where there was nothing to choose."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True)
class Photos:
    """What the listing and some headers tell: how many training pictures of how many classes, and whether they are photos."""

    count: int
    classes: int
    no_photos: str  # why they are none, or ""


@dataclass(frozen=True)
class AtHand:
    """A backbone whose weights are on this machine, or that was asked for."""

    name: str
    weights: str | None
    asked: bool


def eyes_for(source: str, given: Mapping[str, Any], preset: bool = False) -> Eyes:
    """For data at `source`, by what was `given` by dotted key (features.*, device, pictures.*); a `preset` has chosen already."""
    use = str(given.get("features.use", "auto"))
    if use not in USES:
        raise UsageError(f'--features "{use}" is not known{suggest(use, USES)}; there are: {", ".join(USES)}')
    named = given.get("features.backbone")
    idle = [key for key in ("features.backbone", "features.weights") if given.get(key) is not None]
    if use == "none":
        if idle:
            raise UsageError(f"--features none uses no backbone; leave out {_option(idle[0])}, or --features none")
        return Eyes({"features.use": "none"}, "")
    if given.get("features.weights") is not None and not named:
        raise UsageError("--weights needs the name of the network that the file is for: --backbone NAME, a network of timm")
    told = [key for key in TOLD if given.get(key) is not None]
    if use != "auto" or named:
        if told and use != "auto":
            raise UsageError(f"--features {use} has a network of its own; leave out {_option(told[0])}, or --features")
        if told:
            raise UsageError(f"--backbone has a network of its own; leave out {_option(told[0])}, or --backbone")
        return _asked(use, given, source)
    kind = source.partition(":")[0]
    if kind != "pictures" or told or preset:
        return Eyes({"features.use": "none"}, "")
    return _chosen(seen(source, given), at_hand(given), _on_gpu(given), given)


def _option(key: str) -> str:
    return "--" + key.rpartition(".")[2].replace("_", "-")


def _on_gpu(given: Mapping[str, Any]) -> bool:
    return choose_device(str(given.get("device") or "auto")).type == "cuda"


def _asked(use: str, given: Mapping[str, Any], source: str) -> Eyes:
    """A backbone was named, or a way to use one."""
    found = at_hand(given)
    if found is None:
        raise UsageError(f"--features {use} needs a network of timm, whose weights are downloaded once: --backbone NAME")
    if use == "tuned":
        return _tuned(found, "as you asked", given)
    return _frozen(found, "as you asked")


def _chosen(photos: Photos, found: AtHand | None, cuda: bool, given: Mapping[str, Any]) -> Eyes:
    if photos.no_photos:
        why = f"features: none, trained from scratch: {photos.no_photos}; to use a pretrained network anyway: --backbone NAME"
        return Eyes({"features.use": "none"}, why)
    if found is None:
        each = photos.count // max(photos.classes, 1)
        return Eyes(
            {"features.use": "none"},
            f"features: none, trained from scratch: no weights of a pretrained network are on this machine. That takes about "
            f"{EACH:,} photos per class to rank well, and you have {each:,}; with --backbone {LIGHT[0]} (a download of 19 MB, "
            f"once) a few are enough",
        )
    if cuda and photos.count >= ENOUGH:
        return _tuned(found, f"{photos.count:,} photos are enough to train it further on a GPU", given)
    few = f"{photos.count:,} photos are too few to train a network on" if photos.count < ENOUGH else "there is no GPU"
    return _frozen(found, f"{few}, and its weights are {'here' if found.weights is None else 'in ' + found.weights}")


def _frozen(found: AtHand, why: str) -> Eyes:
    settings = {"features.use": FROZEN, "features.backbone": found.name, "features.weights": found.weights}
    return Eyes(settings, f"features: frozen, of {found.name}: {why}; to learn from the pixels instead: --features none")


def _tuned(found: AtHand, why: str, given: Mapping[str, Any]) -> Eyes:
    from labelsieve.backbones.backbone import sight_of

    settings = {
        "features.use": "none",
        "network": f"timm:{found.name}",
        "pretrained": found.weights or "zoo",
        "pictures.size": given.get("pictures.size") or sight_of(found.name).frame.height,
    }
    return Eyes(settings, f"features: {found.name} itself is trained further: {why}; to keep it as it is: --features frozen")


def at_hand(given: Mapping[str, Any]) -> AtHand | None:
    """The backbone that was named, by option or environment; else the lightest one whose weights are on this machine."""
    name, file = given.get("features.backbone"), given.get("features.weights")
    if not name and os.environ.get(NAME):
        name, file = os.environ[NAME], os.environ.get(FILE) or None
    if name:
        return AtHand(str(name).removeprefix("timm:"), None if file is None else str(file), True)
    if not _may_be_cached():
        return None
    for one in LIGHT:
        try:
            if own_weights(one).cached() is not None:
                return AtHand(one, None, False)
        except ToolError:  # without timm there is no backbone; an older timm lacks some
            continue
    return None


def _may_be_cached() -> bool:
    """Whether anything of timm's is there at all: importing it takes seconds."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    hub = Path(os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME") or home / "huggingface") / "hub")
    torch_hub = Path(os.environ.get("TORCH_HOME") or home / "torch") / "hub" / "checkpoints"
    return any(hub.glob("models--timm--*")) or any(torch_hub.glob("*.pth"))


def seen(source: str, given: Mapping[str, Any]) -> Photos:
    """The listing, and the headers of some of its pictures. What cannot be listed is told by who opens it."""
    said = {key: value for key, value in given.items() if key.startswith("pictures.")}
    options = picture_options(override(Config(), said).pictures)
    listing = list_pictures(recognise(Path(source.partition(":")[2]), options), options)
    train = np.flatnonzero(listing.splits == TRAIN)
    rows = train[np.unique(np.linspace(0, max(len(train) - 1, 0), min(LOOKED_AT, len(train))).astype(np.int64))]
    records = [survey(listing.origin.reference(row), False) for row in rows.tolist()]
    return Photos(len(train), len(np.unique(listing.labels[train])), why_no_photos([one for one in records if "mode" in one]))


def why_no_photos(records: Collection[Mapping[str, Any]]) -> str:
    """By mode and size of pictures; colour and enough pixels are all that a header tells."""
    if not records:
        return "none of the first pictures can be read"
    side = float(np.median([min(one["width"], one["height"]) for one in records]))
    if side < SMALLEST:
        return f"pictures of {side:g} px are too small to be photos that a pretrained network would know"
    grey = sum(one["mode"] in GREY_MODES for one in records)
    if 2 * grey > len(records):
        return "most pictures are grey, and pretrained networks know colour photos"
    return ""
