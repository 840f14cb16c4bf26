"""Networks of the timm library (the extra "zoo"): `timm:NAME` and a picture's shape go in, x -> (logits, v) comes out."""

from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labelsieve.errors import ToolError, UsageError, suggest

PREFIX = "timm:"
REMEDY = 'install the extra: pip install "labelsieve[zoo]"'


def timm_library() -> ModuleType:
    """The library, or a `ToolError` that says how to get it."""
    try:
        import timm
    except ModuleNotFoundError as error:
        raise ToolError(f"networks timm:NAME need {error.name}, which is not installed; {REMEDY}") from None
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        # torchvision is compiled against one version of torch, and fails in many ways beside another.
        said = " ".join(str(error).split())[:160]
        raise ToolError(
            f"timm is installed and cannot be imported ({said}); most often torchvision does not fit this torch "
            f"({torch.__version__}): reinstall both together, then {REMEDY}"
        ) from None
    module: ModuleType = timm
    return module


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
    return timm


def zoo_network(name: str, channels: int, classes: int, size: int | None = None, pretrained: bool = False) -> ZooNet:
    """`name` as timm knows it. Models that are made for one picture size are made for `size`.

    `pretrained` fetches timm's own weights, over the network where they are not on the disk yet.
    """
    timm = check_model(name)
    settings: dict[str, Any] = {"num_classes": classes, "in_chans": channels}
    config = timm.get_pretrained_cfg(name)
    if size is not None and config is not None and config.fixed_input_size:
        settings["img_size"] = size
    try:
        return ZooNet(timm.create_model(name, pretrained=pretrained, **settings), name)
    except UsageError:
        raise
    except Exception as error:  # each of a thousand models refuses settings, or its download, in a way of its own
        said = " ".join(str(error).split())[:200]
        advice = "; weights can also come from a file: --pretrained FILE" if pretrained else ""
        raise ToolError(f"network {PREFIX}{name} cannot be made ({said}){advice}") from None
