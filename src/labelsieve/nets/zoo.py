"""Networks of the timm library (the extra "zoo"): `timm:NAME` becomes a network x -> (logits, v) for a picture's shape."""

import importlib
import sys
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labelsieve.errors import ToolError, UsageError, suggest

PREFIX = "timm:"
_DECLARED: list[torch.library.Library] = []  # a library's declarations last as long as it does
REMEDY = 'install the extra: pip install "labelsieve[zoo]"'


def timm_library() -> ModuleType:
    """The library, or a `ToolError` that says how to get it."""
    try:
        return _imported()
    except ModuleNotFoundError as error:
        raise ToolError(f"networks of timm need {error.name}, which is not installed; {REMEDY}") from None
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        # torchvision is compiled against one version of torch, and fails in many ways beside another.
        said = " ".join(str(error).split())[:160]
        raise ToolError(
            f"timm is installed and cannot be imported ({said}); most often torchvision does not fit this torch "
            f"({torch.__version__}): reinstall both together, then {REMEDY}"
        ) from None


def _imported() -> ModuleType:
    """timm; where torchvision's compiled half is missing or fits another torch, with its Python half, which is all timm uses.

    That half declares things about two operators of the other, so these are named first.
    """
    try:
        return importlib.import_module("timm")
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
    for name in [name for name in sys.modules if name.partition(".")[0] in ("timm", "torchvision")]:
        del sys.modules[name]
    if not _DECLARED:
        _DECLARED.append(torch.library.Library("torchvision", "FRAGMENT"))
        for name in ("nms", "qnms"):
            _DECLARED[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return importlib.import_module("timm")


class ZooNet(nn.Module):
    """A timm model that tells its features from its logits."""

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        self.model = model
        classifier = model.get_classifier()  # type: ignore[operator]
        if not isinstance(classifier, nn.Linear):
            raise UsageError(
                f"network {PREFIX}{name} ends in {type(classifier).__name__} and not in one linear layer; choose another"
            )
        self.features = classifier.in_features

    @property
    def classifier(self) -> nn.Linear:
        found: nn.Linear = self.model.get_classifier()  # type: ignore[operator]
        return found

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        v = self.model.forward_head(self.model.forward_features(x), pre_logits=True)  # type: ignore[operator]
        with torch.autocast(x.device.type, enabled=False):
            v = v.float()
            return self.classifier(v), v


def check_model(name: str) -> ModuleType:
    """The library, or a `UsageError` where it has no such model."""
    timm = timm_library()
    if not timm.is_model(name):
        known = timm.list_models()
        raise UsageError(f'timm has no model "{name}"{suggest(name, known)}; it has {len(known)}: timm.list_models()')
    tag = name.partition(".")[2]
    tags = [one.partition(".")[2] for one in timm.list_pretrained(f"{name.partition('.')[0]}.*")] if tag else []
    if tag and tag not in tags:
        listed = f"{suggest(tag, tags)}; there are: {', '.join(tags)}" if tags else ": there are no weights of it"
        raise UsageError(f'timm has no weights "{tag}" of {name.partition(".")[0]}{listed}')
    return timm


def zoo_network(name: str, channels: int, classes: int, size: int | None = None) -> ZooNet:
    """`name` as timm knows it, untrained. Networks that are made for one picture size are made for `size`."""
    return ZooNet(_made(name, size, num_classes=classes, in_chans=channels), name)


def body_of(name: str, size: int | None = None) -> nn.Module:
    """The same without a classifier, for pictures of three channels: x -> features (B, D). Its weights are yet to come."""
    with torch.random.fork_rng(devices=[]):
        return _made(name, size, num_classes=0)


def _made(name: str, size: int | None, **settings: Any) -> nn.Module:
    timm = check_model(name)
    config = timm.get_pretrained_cfg(name)
    if size is not None and config is not None and config.fixed_input_size:
        settings["img_size"] = size
    try:
        found: nn.Module = timm.create_model(name, pretrained=False, **settings)
    except Exception as error:  # each of a thousand models refuses settings in a way of its own
        said = " ".join(str(error).split())[:200]
        raise ToolError(f"network {PREFIX}{name} cannot be made ({said})") from None
    return found
