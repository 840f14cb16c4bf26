"""Draws: the same numbers everywhere, and rows chosen class by class."""

import numpy as np
import pytest

from labelsieve.data.draws import Draws, stratified_rows
from labelsieve.errors import UsageError


def test_the_stream_is_the_one_numpy_promises_to_keep() -> None:
    raw = np.random.PCG64(np.random.SeedSequence((3, 7))).random_raw(5)
    assert Draws(3, 7).below(1000, 5).tolist() == [int(value) % 1000 for value in raw]
    assert Draws(3, 7).uniform(5).tolist() == [(int(value) >> 11) / 2**53 for value in raw]


def test_these_numbers_never_change() -> None:
    assert Draws(3, 0).order(8).tolist() == [0, 4, 7, 1, 5, 6, 3, 2]
    assert Draws(3, 0).below(10, 8).tolist() == [0, 1, 8, 4, 6, 7, 2, 1]


def test_streams_and_seeds_differ_and_an_order_is_a_permutation() -> None:
    first = Draws(1, 0).order(1000)
    assert sorted(first.tolist()) == list(range(1000))
    assert not np.array_equal(first, Draws(2, 0).order(1000))
    assert not np.array_equal(first, Draws(1, 1).order(1000))


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(UsageError, match="seed"):
        Draws(1, seed)


def test_rows_are_spread_as_the_classes_are() -> None:
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    rows = stratified_rows(labels, 100, Draws(1, 0))
    assert np.bincount(labels[rows]).tolist() == [60, 30, 10]
    assert np.all(np.diff(rows) > 0)


@pytest.mark.parametrize("size", [4, 5, 17, 40, 46, 47])
def test_the_size_is_exact_and_no_class_is_lost(size: int) -> None:
    labels = np.repeat([0, 1, 2, 3], [1, 2, 4, 40])
    rows = stratified_rows(labels, size, Draws(1, 0))
    assert len(set(rows.tolist())) == size
    assert set(labels[rows].tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("size", [3, 48])
def test_an_impossible_size_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="between 4 and 47"):
        stratified_rows(np.repeat([0, 1, 2, 3], [1, 2, 4, 40]), size, Draws(1, 0))
