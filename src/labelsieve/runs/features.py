"""Finds the backbone that a configuration names, keeps it in the run folder, and turns pictures into its features."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from labelsieve.backbones.backbone import Backbone, backbone_for, plain_name
from labelsieve.backbones.embedding import Embedder, Tell, placed
from labelsieve.backbones.hub import Say, own_weights
from labelsieve.backbones.pictures import ArrayPictures, FilePictures, Pictures
from labelsieve.config.schema import Config
from labelsieve.data.pictures.cache import default_cache_dir
from labelsieve.data.pictures.decode import WHITEST
from labelsieve.data.pictures.framing import Frame
from labelsieve.data.pictures.options import picture_options
from labelsieve.data.pictures.presence import present
from labelsieve.data.pictures.recognise import Layout, list_pictures, recognise
from labelsieve.data.pictures.websets import WEBSETS
from labelsieve.data.sources import OWN, open_source
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError
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
