"""The map: neighbours stay neighbours, the same features give the same map, and odd inputs end in one."""

import numpy as np
import pytest
import torch
from sklearn.manifold import trustworthiness

from labelsieve.results import likeness as module
from labelsieve.results.likeness import laid_out, main_axes, nearest, unit


def groups(count: int = 300, kinds: int = 6, seed: int = 0) -> tuple[torch.Tensor, np.ndarray]:
    g = torch.Generator().manual_seed(seed)
    label = torch.arange(count) % kinds
    return 3 * torch.randn(kinds, 40, generator=g)[label] + torch.randn(count, 40, generator=g), label.numpy()


def test_neighbours_stay_together_better_than_on_the_main_axes() -> None:
    values, label = groups()
    found = laid_out([values])
    assert found.shape == (300, 2) and found.dtype == np.float32 and found.min() >= 0 and found.max() <= 1
    whole, axes = unit([values]).numpy(), main_axes(unit([values]))[:, :2].numpy()
    assert trustworthiness(whole, found) > max(0.9, trustworthiness(whole, axes))
    apart = np.linalg.norm(found[:, None] - found[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (label[apart.argmin(1)] == label).mean() > 0.99
    assert np.array_equal(found, laid_out([values]))


def test_nearest_are_those_of_a_search_written_out() -> None:
    values = torch.randn(50, 5, generator=torch.Generator().manual_seed(0))
    pool = np.arange(0, 50, 2)
    near, far = nearest(values, pool, 4)
    whole = torch.cdist(values.double(), values.double()).numpy()
    for row in range(50):
        others = [other for other in pool.tolist() if other != row]
        assert near[row].tolist() == sorted(others, key=lambda other: whole[row, other])[:4]
    assert np.allclose(far, np.take_along_axis(whole, near, 1), atol=1e-3)


def test_samples_beyond_those_laid_out_lie_among_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    values, label = groups()
    monkeypatch.setattr(module, "MAPPED", 120)
    found = laid_out([values])
    middles = np.stack([np.median(found[label == k], 0) for k in range(6)])
    assert (np.linalg.norm(found[:, None] - middles, axis=2).argmin(1) == label).mean() > 0.95


def test_the_repulsion_of_the_grid_is_that_of_all_pairs() -> None:
    places = 6 * np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    push, total = module._Repulsion()(places)
    apart = places[:, None] - places[None]
    close = 1 / (1 + (apart**2).sum(2))
    exact = (apart * close[..., None] ** 2).sum(1)
    assert abs(total / (close.sum() - 200) - 1) < 0.05
    assert np.linalg.norm(push - exact) < 0.25 * np.linalg.norm(exact)  # the grid smooths what is very near
    push, total = module._by_pairs(places)
    assert np.allclose(push, exact, rtol=1e-4, atol=1e-5) and total == pytest.approx(close.sum() - 200, rel=1e-5)


@pytest.mark.parametrize("values", [torch.ones(50, 3), torch.zeros(5, 2), torch.randn(3, 4), torch.randn(1, 1)])
def test_what_has_no_places_lies_in_the_middle(values: torch.Tensor) -> None:
    assert np.array_equal(laid_out([values]), np.full((len(values), 2), 0.5, np.float32))


@pytest.mark.parametrize("count", [4, 7, 30])
def test_few_samples_have_a_map(count: int) -> None:
    found = laid_out([torch.randn(count, 3, generator=torch.Generator().manual_seed(1))])
    assert np.isfinite(found).all() and len(np.unique(found, axis=0)) == count
    both = laid_out([torch.randn(count, 1), torch.full((count, 2), torch.nan)])
    assert np.isfinite(both).all()
