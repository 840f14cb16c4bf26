"""An epoch's line against values worked out by hand: what was measured is what divided."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from labelsieve.data.noisy_data import NoisyData, Truth
from labelsieve.methods.contract import Training, Verdict
from labelsieve.methods.epochs import Epoch, Trained
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.predict.model import accuracies
from labelsieve.train.run import Measure

LABELS = torch.tensor([0, 0, 1, 1])
OPINIONS = {
    "loss": (torch.tensor([0.9, 0.9, 0.1, 0.1]),) * 2,
    "prototype": (torch.tensor([0.9, 0.1, 0.55, 0.1]),) * 2,
}
TRAINING = Training(epochs=4, lr_drop_epoch=4)


def line(opinions: tuple[str, ...], clean: list[int], **facts: Any) -> dict[str, Any]:
    data = NoisyData(torch.zeros(4, 3, 2, 2, dtype=torch.uint8), LABELS, tuple("abcd"), ("no", "yes"))
    engine: Any = None  # nothing is held out, so nobody looks
    seen = (Evidence(LABELS, torch.zeros(4), torch.full((4, 2), 0.5), torch.zeros(4, 1)),) * 2
    masks = (torch.tensor(clean).bool(),) * 2
    verdict = Verdict(seen, {name: OPINIONS[name] for name in opinions}, {"loss": 0.5, "prototype": 0.6}, masks, ())
    method: Any = SimpleNamespace(training=TRAINING, nets=(), lr_at=TRAINING.lr_at)
    epoch = Epoch(**{"index": 2, "phase": "prototypes", "verdict": verdict} | facts)
    return Measure(data, Truth(torch.tensor([0, 1, 1, 0])), None, method, engine).record(epoch)  # right: 0 and 2


@pytest.mark.parametrize("opinions", [("loss",), ("loss", "prototype")])
@pytest.mark.parametrize(
    ("clean", "share", "precision", "recall"),
    [([1, 1, 0, 0], 0.5, 0.5, 0.5), ([1, 0, 0, 0], 0.25, 1.0, 0.5), ([1, 1, 1, 1], 1.0, 0.5, 1.0)],
)
def test_what_counts_as_clean_and_what_was_said_are_measured(
    opinions: tuple[str, ...], clean: list[int], share: float, precision: float, recall: float
) -> None:
    found = line(opinions, clean)
    assert found["clean_share"] == [share] * 2 and found["wrong_labels"] == 2
    assert (found["clean_precision"], found["clean_recall"]) == ([precision] * 2, [recall] * 2)
    assert found["auc_loss"] == [0.5] * 2
    assert ("divergence" in found) == ("consistency" in found) == ("auc_prototype" in found) == ("prototype" in opinions)
    if "prototype" in opinions:
        assert found["auc_prototype"] == [1.0] * 2  # 0.9 and 0.55 against two of 0.1
        assert found["consistency"] == [0.75] * 2  # of the second sample they think otherwise


def test_the_final_line_belongs_to_the_last_epoch() -> None:
    found = line(("loss",), [1, 1, 0, 0], phase="final", index=4)
    assert (found["epoch"], found["lr"]) == (4, TRAINING.lr)


def test_terms_are_means_over_each_phase_that_has_them() -> None:
    """Two networks that trained alike, and a further phase of the first with a term of its own."""
    trained = tuple(Trained((r,), ("a", "b"), torch.tensor([[1.0 + r, 2], [3, 4]])) for r in (0, 1))
    found = line(("loss",), [1, 1, 0, 0], trained=(*trained, Trained((0,), ("c",), torch.full((3, 1), 7.0))))
    assert found["loss"] == {"a": [2, 2.5], "b": [3, 3], "c": [7]} and found["steps"] == [2, 2, 3]


def test_of_many_classes_the_five_likeliest_count() -> None:
    logits = torch.arange(20.0).repeat(4, 1)  # class 19 first, 15 fifth
    found = accuracies([logits, logits], [None, None], torch.tensor([19, 15, 14, 0]))
    assert (found["both"], found["both_top5"]) == (25.0, 50.0)
    assert "both_top5" not in accuracies([logits[:, :19]] * 2, [None, None], LABELS)
