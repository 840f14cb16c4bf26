"""Both networks together have one answer: what `evaluate` counts as theirs is what predict, Python and exports name."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from labelsieve import NoisyLabelClassifier
from labelsieve.data.noisy_data import Held
from labelsieve.data.pictures.unlabelled import Chunk
from labelsieve.exports.export import ensemble, export_run
from labelsieve.issues.table import read_issues
from labelsieve.predict.model import Expert, Model, load_model, measured, together
from labelsieve.predict.predict import predictions

# The mean of these networks' softmaxes says class 0 (0.49 against 0.37), the sum of their logits class 1 (4 against 3).
FIRST, SECOND = [4.0, 0.0, -9.0], [-1.0, 4.0, 3.0]


class Fixed(nn.Module):
    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self.register_buffer("logits", torch.tensor(logits))

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        return self.logits.expand(len(pixels), -1), pixels.flatten(1)  # type: ignore[operator]


@pytest.fixture
def torn() -> Model:
    facts = {"classes": ["a", "b", "c"], "shape": [1, 8, 8], "mean": [0.0], "std": [1.0]}
    experts = [Expert(Fixed(logits).eval(), None, None, 0.0) for logits in (FIRST, SECOND)]
    return Model(experts, facts, torch.device("cpu"))


def test_every_way_to_ask_names_the_class_that_accuracy_is_measured_by(torn: Model) -> None:
    pictures = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)
    assert torn.mean_shares(pictures).argmax(1).tolist() == [0] * 4  # the networks are as torn as they should be
    assert measured(torn, Held(pictures, torch.ones(4, dtype=torch.long)))["both"] == 100.0
    (found,) = predictions(torn, [Chunk(list("wxyz"), pictures.numpy(), {})], top=3)
    assert [one.best[0][0] for one in found] == ["b"] * 4
    assert sum(share for _, share in found[0].best) == pytest.approx(1)
    assert ensemble(torn)(pictures).argmax(1).tolist() == [1] * 4
    assert torch.equal(ensemble(torn)(pictures), torn.probabilities(pictures))


def test_python_names_it_too(torn: Model) -> None:
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(40, 4)), np.array(["a", "b", "c", "b"] * 10)
    fitted = NoisyLabelClassifier(epochs=2, warmup=1, random_state=0).fit(vectors, labels)
    fitted.model_.look = torn.look  # type: ignore[method-assign]
    torn.mean, torn.std = torch.zeros(()), torch.ones(())
    assert fitted.predict(vectors).tolist() == ["b"] * 40
    assert fitted.score(vectors, np.array(["b"] * 40)) == 1.0


def test_shares_add_up_to_one_and_keep_the_order_of_the_sum() -> None:
    one, other = torch.randn(2, 500, 7, generator=torch.Generator().manual_seed(0)) * 3
    shares = together([one, other])
    torch.testing.assert_close(shares.sum(1), torch.ones(500))
    assert torch.equal(shares.argmax(1), (one + other).argmax(1))


def test_what_cleanlab_gets_names_the_classes_that_the_list_suggests(finished: Path, tmp_path: Path) -> None:
    """Suggestions are by the mean of both softmaxes, and stay so: `pred_probs.npy` must not contradict the table beside it."""
    out = export_run(finished, "cleanlab", tmp_path / "out").path
    listed = read_issues(finished / "issues.csv")
    ids = load_ids(out / "label_issues.csv")
    suggested = dict(zip(listed["id"], listed["suggested_label"]))
    classes = load_model(finished).classes
    shares = np.load(out / "pred_probs.npy")
    assert [classes[k] for k in shares.argmax(1)] == [suggested[name] for name in ids]
    confidence = dict(zip(listed["id"], listed["suggested_confidence"]))
    np.testing.assert_allclose(shares.max(1), [confidence[name] for name in ids], atol=1e-5)


def load_ids(path: Path) -> list[str]:
    return [line.split(",")[0] for line in path.read_text().splitlines()[1:]]
