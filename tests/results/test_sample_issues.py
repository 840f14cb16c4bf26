"""What is wrong with samples themselves: off topic, near copies, poor pictures; told apart from what is wrong with labels."""

import numpy as np
import pytest
import torch
from torch import Tensor

from labelsieve.data.noisy_data import Held, NoisyData
from labelsieve.data.pictures.looks import of_arrays
from labelsieve.issues.rules import NEAR_COPY, OFF_TOPIC, SAMPLE_ISSUES
from labelsieve.results.sample_issues import LEAST, mixture, off_topic, sample_issues

COUNT, DIM = 300, 64


def clouds(strangers: int = 3, seed: int = 0) -> tuple[Tensor, np.ndarray]:
    """Three classes around directions of their own; the last rows point elsewhere, under labels as they come."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.arange(COUNT) % 3
    middles = 4 * torch.eye(DIM)[:3]
    values = middles[labels] + 0.3 * torch.randn(COUNT, DIM, generator=g)
    values[COUNT - strangers :] = 4 * torch.eye(DIM)[10 : 10 + strangers] + 0.3 * torch.randn(strangers, DIM, generator=g)
    return values, labels.numpy()


def test_what_is_like_no_class_is_off_topic() -> None:
    values, labels = clouds()
    assert np.flatnonzero(off_topic(values, labels)).tolist() == [297, 298, 299]
    assert np.flatnonzero(off_topic(7 * values, labels)).tolist() == [297, 298, 299]


def test_a_wrong_label_alone_makes_nothing_off_topic() -> None:
    values, labels = clouds(0)
    labels[:30] = (labels[:30] + 1) % 3
    assert not off_topic(values, labels).any()


def test_of_few_or_equal_samples_nothing_is_said() -> None:
    values, labels = clouds()
    assert not off_topic(values[-LEAST + 1 :], labels[-LEAST + 1 :]).any()
    assert not off_topic(torch.ones(COUNT, 4), labels).any()


def test_mixture_counts_the_largest_class() -> None:
    around = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3], [1, 1, 1, 1], [2, 2, 2, 2]])
    assert mixture(around).tolist() == [0, 0.5, 0.75, 0, 0]


def pictures(count: int = 120, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, 3, 4, 4)).repeat(8, 2).repeat(8, 3)
    return np.clip(coarse + rng.normal(0, 8, coarse.shape), 0, 255).astype(np.uint8)


def made(images: Tensor, looks: Tensor | None = None) -> NoisyData:
    return NoisyData(images, torch.arange(len(images)) % 2, tuple(f"p{row}" for row in range(len(images))), ("cat", "dog"), looks)


@pytest.mark.parametrize("as_features", [False, True])
def test_copies_across_classes_and_in_the_test_set_are_named(as_features: bool) -> None:
    both = pictures()
    images, held = both[:100], both[100:]
    images[11] = np.clip(images[4] + 1.0, 0, 255)  # a dog that is a cat
    images[8] = images[6]  # two cats: nobody's harm
    held[3] = images[20]
    images[50] = 90
    looks = [torch.from_numpy(of_arrays(part)) if as_features else None for part in (images, held)]
    shown = [torch.rand(len(part), 8, generator=torch.Generator().manual_seed(1)) for part in (images, held)]
    rows = shown if as_features else [torch.from_numpy(part) for part in (images, held)]
    data = made(rows[0], looks[0])
    test = Held(rows[1], torch.zeros(20, dtype=torch.long), tuple(f"t{row}" for row in range(20)), looks[1])
    found = sample_issues(data, test)
    named = {row: (found.kind[row], found.copy_of[row]) for row in range(100) if found.kind[row] and found.kind[row] != OFF_TOPIC}
    assert named == {4: (NEAR_COPY, "p11"), 11: (NEAR_COPY, "p4"), 20: (NEAR_COPY, "test:t3"), 50: ("blank", "")}
    assert set(found.kind) - {""} <= set(SAMPLE_ISSUES)


def test_copies_among_vectors_are_told_by_distance() -> None:
    g = torch.Generator().manual_seed(0)
    values = torch.randn(200, 32, generator=g)
    values[7] = values[4] + 1e-3
    values[9] = values[5]  # the same label
    held = torch.randn(30, 32, generator=g)
    held[12] = values[100]
    data = made(values)
    found = sample_issues(data, Held(held, torch.zeros(30, dtype=torch.long)))
    copied = {row: name for row, name in enumerate(found.copy_of) if name}
    assert copied == {4: "p7", 7: "p4", 100: "test:12"}


def test_strangers_among_features_are_off_topic_and_among_pixels_are_not_told() -> None:
    values, labels = clouds()
    data = NoisyData(values, torch.from_numpy(labels), tuple(map(str, range(COUNT))), ("a", "b", "c"))
    assert [row for row, kind in enumerate(sample_issues(data, None).kind) if kind] == [297, 298, 299]
    assert OFF_TOPIC not in sample_issues(made(torch.from_numpy(pictures())), None).kind
