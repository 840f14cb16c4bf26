"""Weights whose names are not timm's: as timm translates them itself, or by order and shape."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from labelsieve.nets.zoo import timm_library

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
