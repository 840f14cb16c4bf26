"""timm's networks as ours: features told from logits, one picture size or any, weights by the seed; and when it is missing."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from labelsieve.errors import ToolError, UsageError
from labelsieve.nets import build
from labelsieve.nets.zoo import timm_library


@pytest.mark.parametrize("name", ["resnet10t", "test_vit", "test_efficientnet", "vit_tiny_patch16_224"])
def test_zoo_networks_give_logits_and_features(timm: ModuleType, name: str) -> None:
    network = build(f"timm:{name}", 1, 5, seed=3, shape=(1, 64, 64)).eval()
    x = torch.randn(2, 1, 64, 64)
    with torch.no_grad():
        logits, v = network(x)
        assert logits.shape == (2, 5) and v.shape == (2, network.features)
        torch.testing.assert_close(logits, network.model(x), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(network.classifier(v), logits)
    again = build(f"timm:{name}", 1, 5, seed=3, shape=(1, 64, 64))
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), again.parameters()))


def test_a_zoo_network_trains_in_a_run_and_is_loaded_again(timm: ModuleType, tmp_path: Path) -> None:
    import numpy as np

    from labelsieve.config.resolve import resolve
    from labelsieve.predict.model import load_model
    from labelsieve.train.loop import each_epoch
    from labelsieve.train.start import start

    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", images=rng.integers(0, 255, (16, 32, 32), dtype=np.uint8), labels=np.arange(16) % 2)
    weights = tmp_path / "w.pt"
    torch.save(timm.create_model("test_efficientnet", num_classes=3).state_dict(), weights)
    settings = {"network": "timm:test_efficientnet", "training.epochs": 1, "device": "cpu", "pretrained": str(weights)}
    run = start(tmp_path / "run", resolve(f"arrays:{tmp_path / 'a.npz'}", options=settings))
    assert any("the classifier is new" in choice for choice in run.choices)
    for _ in each_epoch(run):
        pass
    model = load_model(tmp_path / "run", torch.device("cpu"))
    assert model.probabilities(torch.zeros(2, 1, 32, 32, dtype=torch.uint8)).shape == (2, 2)


def test_a_slow_twin_starts_from_the_same_weights(timm: ModuleType, tmp_path: Path) -> None:
    import numpy as np

    from labelsieve.config.resolve import resolve
    from labelsieve.train.start import start

    np.savez(tmp_path / "a.npz", images=np.zeros((20, 32, 32), np.uint8), labels=np.arange(20) % 2)
    torch.save(timm.create_model("test_efficientnet", num_classes=3).state_dict(), tmp_path / "w.pt")
    settings = {"network": "timm:test_efficientnet", "device": "cpu", "pretrained": str(tmp_path / "w.pt"), "method": "sieve"}
    net = start(None, resolve(f"arrays:{tmp_path / 'a.npz'}", options=settings)).parts.method.nets[0]
    assert net.twin is not None
    weights, its = net.network.state_dict(), net.twin.network.state_dict()
    assert all(torch.equal(value, its[name]) for name, value in weights.items())


def test_unknown_and_unfit_names_are_named(timm: ModuleType) -> None:
    with pytest.raises(UsageError, match='timm has no model "resnet188".*did you mean "resnet'):
        build("timm:resnet188", 3, 2, 0)
    with pytest.raises(UsageError, match="not in one linear layer"):
        build("timm:deit_tiny_distilled_patch16_224", 3, 2, 0, (3, 224, 224))


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ToolError, match=r"labelsieve\[zoo\]"):
        build("timm:resnet18", 3, 2, 0)


def test_a_torchvision_that_does_not_fit_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ToolError, match="cannot be imported.*nms.*reinstall both"):
        timm_library()
