"""Patches: a vector is what a plain count of its patches gives; mirror images have the same; labels follow from it."""

import pytest
import torch
import torch.nn.functional as F

from labelsieve.methods.parts import patches
from labelsieve.methods.parts.heads import held_out
from labelsieve.methods.parts.patches import LEAST, Filters, patch_vectors, shrunk


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FILTERS": 40, "DRAWN": 2_000, "AXES": 64}.items():
        monkeypatch.setattr(patches, name, value)


def striped(count: int, side: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy pictures (N, 3, side, side) with stripes along or across, and which they have (N,)."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 2
    wave = 40 * torch.sin(torch.arange(side) * 1.5)
    along = wave[None, :].expand(side, side)
    pictures = torch.stack([along if label else along.T for label in labels])[:, None].expand(-1, 3, -1, -1)
    return (128 + pictures + 15 * torch.randn(count, 3, side, side, generator=generator)).clamp(0, 255).byte(), labels


def test_answers_are_those_of_each_patch_counted_one_by_one() -> None:
    pictures = shrunk(striped(6)[0])
    filters = Filters(pictures, mirror=False, seed=0)
    found = filters.answers(pictures[:1]).view(3, 3, 2, -1)
    places = 16 - 6 + 1
    for i, rows in enumerate((range(4), range(3, 8), range(7, places))):
        for j, columns in enumerate((range(4), range(3, 8), range(7, places))):
            total = torch.zeros(2, 40)
            for top in rows:
                for left in columns:
                    patch = pictures[0, :, top : top + 6, left : left + 6].flatten()
                    even = (patch - patch.mean()) / (patch.var() + patches.FLAT[0]).sqrt()
                    answer = even @ filters.weights[:-1] + filters.weights[-1]
                    total += torch.stack(((answer - LEAST).relu(), (-answer - LEAST).relu()))
            torch.testing.assert_close(found[i, j], (total / len(rows) / len(columns)).sqrt(), rtol=1e-3, atol=2e-3)


def test_a_mirror_image_has_the_same_vector() -> None:
    pictures = striped(30)[0]
    both = torch.cat((pictures, pictures.flip(3)))
    found = patch_vectors(both, mirror=True)
    torch.testing.assert_close(found[:30], found[30:], rtol=1e-3, atol=1e-3)
    apart = patch_vectors(both, mirror=False)
    assert float((apart[:30] - apart[30:]).abs().max()) > 0.1


def test_what_more_pictures_are_looked_at_by_are_the_axes_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = striped(60)[0]
    monkeypatch.setattr(patches, "FITTED", 20)
    found = patch_vectors(pictures, mirror=False)
    assert found.shape == (60, 19) and torch.isfinite(found).all()  # of 20 rows, less their mean
    assert torch.equal(found, patch_vectors(pictures, mirror=False))


def test_larger_pictures_are_shrunk_to_32_pixels_by_means_and_smaller_ones_stay() -> None:
    picture = torch.arange(64 * 96).remainder(251).byte().view(1, 1, 64, 96)
    torch.testing.assert_close(shrunk(picture), F.avg_pool2d(picture.float(), 2) / 255)
    assert shrunk(picture[:, :, :20, :20]).shape[2:] == (20, 20)


def test_pictures_without_any_contrast_break_nothing() -> None:
    found = patch_vectors(torch.full((12, 1, 16, 16), 7, dtype=torch.uint8), mirror=True)
    assert torch.isfinite(found).all()


def test_heads_on_patches_find_wrong_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "FILTERS", 200)
    pictures, labels = striped(240)
    given = labels.clone()
    given[:24] = 1 - given[:24]
    held = held_out([patch_vectors(pictures, mirror=True)], given, 2, heads=("ridge", "logistic"))
    assert held.said.shape == (2, 240)
    assert float((held.predicted == labels).double().mean()) > 0.95
