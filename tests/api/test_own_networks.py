"""Anybody's module or builder as the classifier's network, and the documents' example of it, which runs as it stands."""

import pickle
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from api.made import blobs
from labelsieve import NoisyLabelClassifier, nets
from labelsieve.errors import UsageError

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def small(dimensions: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(dimensions, 16), nn.ReLU(), nn.Linear(16, classes))


class NoArguments(nn.Module):
    """A builder that cannot be told how many classes there are."""

    def __init__(self) -> None:
        super().__init__()


@pytest.mark.parametrize("network", [small, small(6, 3)], ids=["builder", "module"])
def test_a_network_of_ones_own(network: Any) -> None:
    vectors, given, truth = blobs()
    model = NoisyLabelClassifier(network=network, epochs=8, random_state=0)
    again = clone(model)
    assert model.get_params()["network"] is network
    model.fit(vectors, given)
    assert model.score(vectors, truth) > 0.9
    first, second = (expert.network.state_dict() for expert in model.model_.experts)
    assert all((first[name] != second[name]).any() for name in first)
    shares = model.predict_proba(vectors)
    assert np.array_equal(again.fit(vectors, given).predict_proba(vectors), shares)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(vectors), shares)


def test_a_run_folder_of_it_has_its_files(tmp_path: Path) -> None:
    vectors, given, _ = blobs(90)
    NoisyLabelClassifier(network=small, epochs=2, run_dir=tmp_path / "run", random_state=0).fit(vectors, given)
    assert (tmp_path / "run" / "issues.csv").is_file()
    assert "network: given:small" in (tmp_path / "run" / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (3, "network=3 cannot be used"),
        (nn.Linear(5, 3), "cannot read samples"),
        (nn.Linear(6, 2), "2 logits"),
        (NoArguments, r"as in build\(3, 10\)"),
    ],
)
def test_what_is_no_network_is_refused(network: Any, said: str) -> None:
    vectors, given, _ = blobs(90)
    with pytest.raises(UsageError, match=said):
        NoisyLabelClassifier(network=network, epochs=2).fit(vectors, given)


def test_the_documents_example(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    block = next(text for text in blocks if "network=mine" in text)
    X, y = np.random.default_rng(0).integers(0, 256, (80, 8, 8)).astype(np.uint8), np.arange(80) % 10
    monkeypatch.setattr(nets.own, "REGISTERED", {})
    monkeypatch.setattr(nets, "REGISTERED", nets.own.REGISTERED)
    found: dict[str, Any] = {"X": X, "y": y}
    exec(block.replace("network=mine", "epochs=2, network=mine"), found)
    assert found["model"].predict(X).shape == y.shape and "mine" in nets.REGISTERED


def with_dropout(dimensions: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(dimensions, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, classes))


def test_dropout_draws_from_the_random_state_and_leaves_the_callers_alone() -> None:
    vectors, given, _ = blobs(60)
    model = NoisyLabelClassifier(network=with_dropout, epochs=3, random_state=0)
    before = torch.get_rng_state()
    first = model.fit(vectors, given).predict_proba(vectors)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(7)
    assert np.array_equal(model.fit(vectors, given).predict_proba(vectors), first)
    assert not np.array_equal(model.set_params(random_state=1).fit(vectors, given).predict_proba(vectors), first)


def test_threads_do_not_draw_each_others_weights() -> None:
    """A builder that lets others run before its layers are drawn: weights came from whichever seed was set last."""
    vectors, given, _ = blobs(40)

    def slow(dimensions: int, classes: int) -> nn.Module:
        time.sleep(0.01)
        return nn.Sequential(nn.Linear(dimensions, 8), nn.ReLU(), nn.Linear(8, classes))

    def fitted(seed: int) -> Any:
        return NoisyLabelClassifier(network=slow, epochs=1, random_state=seed).fit(vectors, given).predict_proba(vectors)

    alone = [fitted(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fitted, range(4)))
    assert all(np.array_equal(one, other) for one, other in zip(alone, together))
