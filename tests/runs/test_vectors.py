"""Vectors through a whole run: trained, stopped, taken up bit for bit, loaded, evaluated; by the command line too."""

from pathlib import Path

import numpy as np
import pytest
import torch

from labelsieve.config.resolve import resolve
from labelsieve.errors import ToolError
from labelsieve.predict.model import evaluate_model, load_model
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from runs.tiny import contents, tiny_config, to_the_end, whole


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    features = 5 * np.eye(3, 6)[labels] + rng.normal(size=(60, 6))
    path = tmp_path_factory.mktemp("vectors") / "v.npz"
    np.savez(path, features=features, labels=labels, test_features=features[:20], test_labels=labels[:20])
    return f"embeddings:{path}"


def test_vectors_have_defaults_of_their_own(source: str) -> None:
    config = resolve(source)
    assert config.network == "mlp" and config.training.epochs == 14 and config.training.warmup <= 8 and config.training.lr == 0


def test_a_stopped_run_ends_as_a_whole_one(source: str, tmp_path: Path) -> None:
    config = tiny_config(source, training__epochs=3, training__lr=0.05)
    whole(tmp_path / "whole", config)
    for _ in each_epoch(start(tmp_path / "stopped", config), stop=lambda: True):
        pass
    to_the_end(tmp_path / "stopped")
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")
    result = evaluate_model(tmp_path / "whole", None, "cpu")
    assert result["accuracy"]["both"] > 60
    model = load_model(tmp_path / "whole", torch.device("cpu"))
    assert model.shape == (6,)
    torch.testing.assert_close(model.probabilities(torch.zeros(2, 6)).sum(1), torch.ones(2))


@pytest.mark.parametrize(("network", "words"), [("small", "these are vectors"), ("resnet18", "use --network mlp")])
def test_a_network_for_pictures_is_refused(source: str, tmp_path: Path, network: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        start(tmp_path / "run", tiny_config(source, network=network))
    assert not (tmp_path / "run").exists()


def test_a_head_for_vectors_takes_no_pictures(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="these are pictures"):
        start(tmp_path / "run", tiny_config("digits", network="mlp"))
