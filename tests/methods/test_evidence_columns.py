"""Evidence and partitions that cannot be are refused, with the column's name."""

from dataclasses import replace

import pytest
import torch
from made_evidence import evidence

from labelsieve.methods.parts.cleaners import Evidence, PrototypeCleaner


def test_evidence_of_uneven_columns_is_refused() -> None:
    seen, _ = evidence()
    with pytest.raises(ValueError, match="599 losses"):
        replace(seen, losses=seen.losses[:-1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": torch.zeros(6, 1, dtype=torch.int64)}, r"labels have the shape \(6, 1\)"),
        ({"labels": torch.zeros(6)}, "labels are torch.float32"),
        ({"labels": torch.tensor([0, 1, 2, 3, 0, 1])}, "run from 0 to 3; probs have 3 columns"),
        ({"labels": torch.tensor([0, 1, -1, 2, 0, 1])}, "run from -1 to 2"),
        ({"probs": torch.ones(6)}, r"probs have the shape \(6,\)"),
        ({"features": [[1.0]] * 6}, "features are a list; give a torch tensor"),
        ({"losses": torch.ones(5)}, "differ in length"),
    ],
)
def test_evidence_says_which_column_is_wrong(change: dict[str, object], words: str) -> None:
    columns = {"labels": torch.arange(6) % 3, "losses": torch.ones(6), "probs": torch.ones(6, 3), "features": torch.ones(6, 2)}
    with pytest.raises((TypeError, ValueError), match=words):
        Evidence(**(columns | change))  # type: ignore[arg-type]


def test_labels_may_be_any_whole_numbers() -> None:
    seen = Evidence(torch.arange(40).int() % 2, torch.rand(40), torch.full((40, 2), 0.5), torch.rand(40, 3))
    PrototypeCleaner(dim=4).learn(seen, torch.arange(40) < 30)
    assert seen.labels.dtype == torch.int64


@pytest.mark.parametrize("clean", [torch.full((40,), 0.2), torch.arange(3), [True] * 40, torch.ones(39, dtype=torch.bool)])
def test_chances_are_no_partition(clean: object) -> None:
    seen = Evidence(torch.arange(40) % 2, torch.rand(40), torch.full((40, 2), 0.5), torch.rand(40, 3))
    with pytest.raises(ValueError, match="40 truth values"):
        PrototypeCleaner(dim=4).learn(seen, clean)  # type: ignore[arg-type]
