"""How many labels are wrong, by heads that have not seen them: on made clusters, and where nothing can be known."""

import numpy as np
import pytest
import torch

from labelsieve.issues.estimate import Share, expected_yield, sentence, spread
from labelsieve.methods.parts.estimate import noise_by
from labelsieve.methods.parts.heads import HeldOut, held_out


def clusters(wrong: float, apart: float, seed: int, count: int = 400) -> tuple[torch.Tensor, torch.Tensor, float]:
    rng = np.random.default_rng(seed)
    truth = np.arange(count) % 4
    vectors = apart * np.eye(4, 12)[truth] + rng.normal(size=(count, 12))
    flipped = rng.random(count) < wrong
    given = np.where(flipped, (truth + rng.integers(1, 4, count)) % 4, truth)
    return torch.from_numpy(vectors).float(), torch.from_numpy(given), float(flipped.mean())


@pytest.mark.parametrize("apart", [2.5, 5.0])
@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.4])
def test_the_interval_holds_what_was_made_wrong(wrong: float, apart: float) -> None:
    vectors, given, truth = clusters(wrong, apart, 1)
    found = noise_by(held_out([vectors], given, 4), given)
    assert found.low <= truth <= found.high and found.low <= found.share <= found.high
    assert found.high - found.low < 0.4
    assert len(found.by_class) == 4


def test_far_apart_clusters_are_known_closely() -> None:
    vectors, given, truth = clusters(0.2, 8.0, 2, 1000)
    found = noise_by(held_out([vectors], given, 4), given)
    assert abs(found.share - truth) < 0.03 and found.high - found.low < 0.15


def test_where_labels_are_drawn_by_lot_no_percentage_is_said() -> None:
    generator = torch.Generator().manual_seed(0)
    vectors, labels = torch.randn(200, 20, generator=generator), torch.randint(0, 4, (200,), generator=generator)
    found = noise_by(held_out([vectors], labels, 4), labels)
    assert (found.low, found.high) == (0.0, 1.0)
    assert "%" not in sentence(Share(found.share, found.low, found.high))


def test_the_formula_by_hand() -> None:
    """Twenty samples of two classes, all heads of one voice: 0 for ten, 1 for ten, and two labels of each contradicted."""
    said = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 1, 1] * 2)
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 1, 0] * 2)
    sure = torch.tensor([0.85, 0.84, 0.8, 0.75, 0.6] * 4)
    probs = torch.where(said.unsqueeze(1) == torch.arange(2), sure.unsqueeze(1), 1 - sure.unsqueeze(1))
    found = noise_by(HeldOut(probs, said.expand(4, 20), torch.zeros(20, 1)), labels)
    rest = 1 - (2 * (0.85 + 0.84 + 0.8 + 0.75) + 2 * 0.4) / 10 - 0.2
    assert found.low == 0.0  # the surest contradict nothing
    assert found.high == pytest.approx(0.2 + rest + 1.28 * (0.2 * 0.8 / 20) ** 0.5, abs=1e-6)
    assert found.share == pytest.approx((0.0 + 0.2) / 2)
    one_differs = said.expand(4, 20).clone()
    one_differs[3, :8] = 1 - said[:8]  # on 0.4 of the samples: of its square a quarter are mistakes of heads
    lower = noise_by(HeldOut(probs, one_differs, torch.zeros(20, 1)), labels)
    assert lower.high == pytest.approx(found.high - 0.25 * 0.4**2, abs=1e-6)


def test_the_yield_reaches_from_few_to_a_perfect_order() -> None:
    score = np.array([0.0, 0.5, 0.9, 1.0])
    differs = np.array([True, True, False, False])
    found = spread(score, differs, np.arange(4), Share(0.375, 0.15, 0.5))
    np.testing.assert_allclose(found.wrong, [1.0, 1 / 6, 0, 0])
    np.testing.assert_allclose(found.opinions, [[0.6 * 8 / 9, 0.6 / 9, 0, 0], [1, 1, 0, 0]])
    expected, low, high = expected_yield(found, np.arange(4)).at(1)
    assert expected == pytest.approx(1.0) and low <= 0.54 and high == pytest.approx(1.0)
