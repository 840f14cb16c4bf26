"""Views of vectors: noise on each dimension's own scale, drawn on the host apart from being made."""

import pytest
import torch

from labelsieve.data.augment.vectors import vector_views
from labelsieve.errors import UsageError

MEAN, STD = (0.0, 100.0, -3.0), (1.0, 50.0, 0.01)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_weak_noise_is_a_tenth_of_each_spread() -> None:
    vectors = torch.tensor(MEAN).expand(20_000, 3)
    shaken = vector_views(MEAN, STD).weak(vectors, seeded()) - vectors
    torch.testing.assert_close(shaken.std(0) / torch.tensor(STD), torch.full((3,), 0.1), rtol=0.05, atol=0)
    assert bool((shaken.mean(0).abs() < 0.01 * torch.tensor(STD)).all())


def test_strong_views_shake_more_and_drop_a_tenth() -> None:
    vectors = torch.tensor(MEAN).add(torch.tensor(STD) * 7).expand(20_000, 3)
    views = vector_views(MEAN, STD).strong(vectors, seeded())
    dropped = views == torch.tensor(MEAN)
    assert abs(float(dropped.double().mean()) - 0.1) < 0.01
    noise = ((views - vectors) / torch.tensor(STD))[~dropped]
    assert abs(float(noise.std()) - 0.3) < 0.01


def test_the_seed_alone_decides_and_the_input_is_left() -> None:
    vectors = torch.randn(8, 3, generator=seeded())
    kept = vectors.clone()
    strong = vector_views(MEAN, STD).strong
    first = strong(vectors, seeded(1))
    assert torch.equal(first, strong(vectors, seeded(1))) and not torch.equal(first, strong(vectors, seeded(2)))
    assert torch.equal(vectors, kept)
    assert torch.equal(first, strong.apply(vectors, strong.draw(8, 3, seeded(1))))


def test_a_plan_for_other_vectors_is_refused() -> None:
    weak = vector_views(MEAN, STD).weak
    with pytest.raises(UsageError, match="draw a plan"):
        weak.apply(torch.zeros(4, 3), weak.draw(5, 3, seeded()))
