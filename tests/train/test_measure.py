"""An epoch's line against values worked out by hand: what was measured is what divided."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from labelsieve.data.noisy_data import NoisyData, Truth
from labelsieve.methods.algorithm import Epoch
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.recipe import Recipe
from labelsieve.predict.accuracy import accuracies
from labelsieve.train.measure import Measure

LABELS = torch.tensor([0, 0, 1, 1])
BY_LOSS, BY_PROTOTYPE = (torch.tensor([0.9, 0.9, 0.1, 0.1]),) * 2, (torch.tensor([0.9, 0.1, 0.55, 0.1]),) * 2
RECIPE = Recipe(epochs=4, warmup=1, prototype_warmup=1, lr_drop_epoch=4, tau=0.6)


def line(phase: str, index: int = 2, **changes: Any) -> dict[str, Any]:
    data = NoisyData(torch.zeros(4, 3, 2, 2, dtype=torch.uint8), LABELS, tuple("abcd"), ("no", "yes"))
    engine: Any = None  # nothing is held out, so nobody looks
    seen = (Evidence(LABELS, torch.zeros(4), torch.full((4, 2), 0.5), torch.zeros(4, 1)),) * 2
    epoch = replace(Epoch(index, phase, (), seen, BY_LOSS, BY_PROTOTYPE), **changes)
    return Measure(data, Truth(torch.tensor([0, 1, 1, 0])), None, RECIPE, engine, ()).record(epoch)  # right: 0 and 2


@pytest.mark.parametrize(
    ("phase", "changes", "share", "precision", "recall"),
    [
        ("mixture", {}, 0.5, 0.5, 0.5),
        ("prototypes", {}, 0.25, 1.0, 0.5),  # 0.55 is not above tau
        ("final", {}, 0.25, 1.0, 0.5),
        ("final", {"by_prototype": ()}, 0.5, 0.5, 0.5),
        ("plain", {}, 1.0, 0.5, 1.0),  # trained on all of them
    ],
)
def test_the_division_that_counted_is_measured(
    phase: str, changes: dict[str, Any], share: float, precision: float, recall: float
) -> None:
    found = line(phase, **changes)
    assert found["clean_share"] == [share] * 2 and found["wrong_labels"] == 2
    assert (found["clean_precision"], found["clean_recall"]) == ([precision] * 2, [recall] * 2)
    assert found["auc_loss"] == [0.5] * 2 and ("divergence" in found) == ("auc_prototype" in found) == (changes == {})


def test_the_final_line_belongs_to_the_last_epoch() -> None:
    found = line("final", index=4)
    assert (found["epoch"], found["lr"]) == (4, RECIPE.lr)


def test_of_many_classes_the_five_likeliest_count() -> None:
    logits = torch.arange(20.0).repeat(4, 1)  # class 19 first, 15 fifth
    found = accuracies([logits, logits], [None, None], torch.tensor([19, 15, 14, 0]))
    assert (found["both"], found["both_top5"]) == (25.0, 50.0)
    assert "both_top5" not in accuracies([logits[:, :19]] * 2, [None, None], LABELS)
