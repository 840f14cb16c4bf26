"""timm where it can be had. Beside a CPU-only torch, torchvision lacks its compiled part and will not be imported; the two
operators it declares things about are declared here first, in tests only, so that timm can be tried."""

import importlib
import sys
from types import ModuleType

import pytest
import torch

_LIBRARY: list[torch.library.Library] = []


def imported() -> ModuleType:
    try:
        return importlib.import_module("timm")
    except (ImportError, RuntimeError):
        for name in [name for name in sys.modules if name.partition(".")[0] in ("timm", "torchvision")]:
            del sys.modules[name]
    if not _LIBRARY:
        _LIBRARY.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            _LIBRARY[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return importlib.import_module("timm")


@pytest.fixture(scope="session")
def timm() -> ModuleType:
    try:
        return imported()
    except ImportError as error:
        pytest.skip(f"the extra zoo is not installed: {error}")
