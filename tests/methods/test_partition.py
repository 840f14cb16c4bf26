"""Which labels count as clean: above the threshold, pinned, and at least a given share."""

import pytest
import torch

from labelsieve.methods.parts.evidence import taken, weighed

CHANCES = torch.tensor([0.9, 0.1, 0.6, 0.4, 0.5])


@pytest.mark.parametrize(
    ("least", "expected"),
    [(0.0, [1, 0, 1, 0, 0]), (0.2, [1, 0, 1, 0, 0]), (0.6, [1, 0, 1, 0, 1]), (0.8, [1, 0, 1, 1, 1]), (1.0, [1, 1, 1, 1, 1])],
)
def test_the_likeliest_are_taken_until_they_are_enough(least: float, expected: list[int]) -> None:
    assert taken(CHANCES, 0.5, None, least).int().tolist() == expected


def test_pinned_ones_come_on_top_and_equal_chances_are_taken_alike() -> None:
    pinned = torch.tensor([False, True, False, False, False])
    assert taken(CHANCES, 0.5, pinned, 0.0).int().tolist() == [1, 1, 1, 0, 0]
    assert taken(torch.full((4,), 0.2), 0.5, None, 0.5).all()


def test_labels_taken_for_the_share_stand_by_it() -> None:
    clean = taken(CHANCES, 0.5, None, 0.8)
    assert weighed(CHANCES, clean, 0.5, 0.8).tolist() == pytest.approx([0.9, 0.1, 0.6, 0.8, 0.8])
    assert weighed(CHANCES, clean, 0.5, 0.0) is CHANCES
