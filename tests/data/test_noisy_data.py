"""What `checked` and its siblings refuse, and the channel statistics against NumPy."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from labelsieve.data.noisy_data import Held, NoisyData, Truth, channel_statistics, checked, checked_held, checked_truth
from labelsieve.errors import ToolError


def rows(labels: list[int], classes: tuple[str, ...] = ("a", "b"), ids: str | None = None) -> NoisyData:
    names = tuple(ids) if ids is not None else tuple(str(row) for row in range(len(labels)))
    images = torch.zeros(len(labels), 1, 2, 2, dtype=torch.uint8)
    return NoisyData(images, torch.tensor(labels, dtype=torch.int64), names, classes)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (rows([0, 1], ids="x"), "2 pictures, 2 labels, 1 ids"),
        (replace(rows([0, 1]), images=torch.zeros(3, 1, 2, 2)), "3 pictures, 2 labels; the counts"),
        (rows([]), "no samples"),
        (rows([0, 0], ("a",)), "1 class"),
        (rows([0, 1], ("a", "a")), 'class name "a" occurs more than once'),
        (rows([0, 1], ids="xx"), 'id "x" occurs more than once'),
        (rows([0, 2, 1]), r"row 1 has label 2, outside 0\.\.1"),
        (rows([-1, 0, 1]), "row 0 has label -1"),
        (rows([0, 1], ("a", "b", "c")), 'no sample has the label "c"'),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_the_place(data: NoisyData, says: str) -> None:
    with pytest.raises(ToolError, match=says) as caught:
        checked(data, "here")
    assert str(caught.value).startswith("here: ")


def test_good_rows_pass() -> None:
    data = rows([0, 1, 0])
    assert checked(data, "here") is data
    taken = data.rows(torch.tensor([2, 1]))
    assert taken.ids == ("2", "1") and taken.labels.tolist() == [0, 1] and taken.classes == data.classes


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (
            Held(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.tensor([0])),
            "2 test pictures, 1 test labels",
        ),
        (Held(torch.zeros(0, 1, 2, 2, dtype=torch.uint8), torch.tensor([])), "at least one"),
        (Held(torch.zeros(1, 3, 2, 2, dtype=torch.uint8), torch.tensor([0])), r"\(3, 2, 2\)"),
        (Held(torch.zeros(1, 1, 2, 2, dtype=torch.uint8), torch.tensor([2])), "test set: row 0 has label 2"),
    ],
)
def test_a_test_set_that_does_not_fit_is_refused(held: Held, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        checked_held(held, rows([0, 1]), "here")


@pytest.mark.parametrize(("labels", "says"), [([0], "1 true labels for 2 rows"), ([0, 5], "row 1 has label 5")])
def test_true_labels_that_do_not_fit_are_refused(labels: list[int], says: str) -> None:
    with pytest.raises(ToolError, match=says):
        checked_truth(Truth(torch.tensor(labels)), rows([0, 1]), "here")


def test_channel_statistics_are_those_of_numpy() -> None:
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (70, 3, 5, 4), dtype=np.uint8))
    mean, std = channel_statistics(images)
    scaled = images.numpy() / 255
    assert mean == pytest.approx(scaled.mean((0, 2, 3)).tolist(), abs=1e-12)
    assert std == pytest.approx(scaled.std((0, 2, 3)).tolist(), abs=1e-12)
    assert channel_statistics(images, at_most=30) == channel_statistics(images[::3])
    assert channel_statistics(torch.zeros(2, 1, 2, 2, dtype=torch.uint8)) == ((0.0,), (1e-3,))
