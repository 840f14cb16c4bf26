"""Specs to collections, the digits, and the fixed smaller choice of rows."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from labelsieve.data.sources import FORMS, SOURCES, limited, open_data
from labelsieve.errors import ToolError, UsageError


def test_every_source_has_its_form() -> None:
    assert list(SOURCES) == list(FORMS)
    assert all(form.startswith(name) for name, form in FORMS.items())


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("digit", 'did you mean "digits"'),
        ("cifar-10:/x", 'did you mean "cifar10"'),
        ("", "the forms are digits, cifar10:PATH"),
        ("digits:/x", 'write "digits"'),
        ("cifar10", "cifar10:PATH"),
        ("cifar100:", "nothing after the colon"),
        ("arrays", "arrays:FILE.npz"),
    ],
)
def test_a_wrong_spec_says_how_to_write_it(spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        open_data(spec)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("cifar10", "cifar-10-batches-py"),
        ("cifar100", "cifar-100-python"),
        ("fashion-mnist", "train-images-idx3-ubyte"),
        ("arrays", "numpy.savez"),
    ],
)
def test_a_path_that_is_not_there_says_what_to_put_there(name: str, remedy: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=remedy) as caught:
        open_data(f"{name}:{tmp_path / 'nowhere'}")
    assert not isinstance(caught.value, UsageError)
    assert str(tmp_path / "nowhere") in str(caught.value)


def test_digits_are_all_there_once() -> None:
    digits = open_data("digits")
    assert digits.test is not None and digits.truth is not None
    assert digits.train.images.shape == (1348, 1, 8, 8) and digits.test.images.shape == (449, 1, 8, 8)
    assert digits.train.images.dtype == torch.uint8 and int(digits.train.images.max()) == 255
    assert not digits.mirror and digits.groups is None and digits.train.classes == tuple("0123456789")
    assert torch.equal(digits.truth.labels, digits.train.labels)
    assert torch.bincount(digits.test.labels).min() >= 43
    source = load_digits()
    rows = [int(name) for name in digits.train.ids]
    assert torch.equal(digits.train.labels, torch.from_numpy(source.target[rows]))
    expected = np.rint(source.images[rows] * 255 / 16).astype(np.uint8)
    assert np.array_equal(digits.train.images[:, 0].numpy(), expected)
    together = sorted(digits.train.labels.tolist() + digits.test.labels.tolist())
    assert together == sorted(source.target.tolist())


def test_the_split_of_the_digits_never_changes() -> None:
    ids = ",".join(open_data("digits").train.ids)
    assert hashlib.sha256(ids.encode()).hexdigest().startswith("e80e8830dcf16293")


def test_a_limit_chooses_the_same_rows_each_time_and_keeps_the_test_set() -> None:
    whole, some, again = open_data("digits"), open_data("digits", limit=200), open_data("digits", limit=200)
    assert some.train.ids == again.train.ids and len(some.train) == 200
    assert some.test is not None and len(some.test.labels) == 449
    assert torch.bincount(some.train.labels).tolist() == pytest.approx([20] * 10, abs=1)
    assert (some.mean, some.std) == (whole.mean, whole.std)
    assert some.truth is not None and torch.equal(some.truth.labels, some.train.labels)
    place = {name: row for row, name in enumerate(whole.train.ids)}
    rows = torch.tensor([place[name] for name in some.train.ids])
    assert torch.equal(some.train.images, whole.train.images[rows])


def test_a_limit_beyond_the_rows_keeps_them_all_and_too_small_a_one_is_refused() -> None:
    digits = open_data("digits")
    assert limited(digits, 5000) is digits
    for limit in (9, 0, -1):
        with pytest.raises(UsageError, match="10 classes"):
            limited(digits, limit)
