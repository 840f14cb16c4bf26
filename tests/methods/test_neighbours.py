"""The nearest rows, block by block, are those that all cosines at once would give."""

import pytest
import torch
from waves import waves

from labelsieve.methods.parts import neighbours
from labelsieve.methods.parts.neighbours import against_the_rest, nearest, votes


@pytest.mark.parametrize("room", [1, 100, 2**22])
@pytest.mark.parametrize("itself", [True, False])
def test_nearest_of_all_whatever_fits(room: int, itself: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(neighbours.ROOM, "cpu", room)
    features = waves(37, 5)
    cosines, rows = nearest(features, 4, itself)
    unit = features / features.norm(dim=1, keepdim=True)
    alike = unit @ unit.T
    if not itself:
        alike.fill_diagonal_(-2)
    order = alike.argsort(1, descending=True)[:, :4]
    assert torch.equal(rows.sort(1).values, order.sort(1).values)
    assert torch.allclose(cosines.sort(1).values, alike.sort(1).values[:, -4:], atol=1e-6)


def test_no_more_neighbours_than_rows() -> None:
    features = waves(6, 3)
    assert nearest(features, 50)[1].sort(1).values.tolist() == [[*range(6)]] * 6
    found = nearest(features, 50, itself=False)[1]
    assert [sorted(row) for row in found.tolist()] == [[j for j in range(6) if j != i] for i in range(6)]


def test_votes_are_counted_by_label() -> None:
    angles = torch.tensor([0.0, 0.1, 0.25, 2.0, 2.1, 2.3])
    features = torch.stack((angles.cos(), angles.sin()), 1) * torch.tensor([[1.0], [5], [2], [1], [3], [1]])
    labels = torch.tensor([0, 0, 1, 2, 1, 2])
    assert votes(features, labels, 4, 3).tolist() == [[2, 1, 0, 0]] * 3 + [[0, 1, 2, 0]] * 3


def test_features_of_zero_and_half_precision_are_no_trouble() -> None:
    features = waves(20, 4).half()
    features[3] = 0
    assert votes(features, torch.zeros(20, dtype=torch.long), 2, 5).tolist() == [[5.0, 0.0]] * 20


def test_chance_is_even_where_another_class_has_as_many_votes() -> None:
    shares = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.6, 0.2], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    found = against_the_rest(shares, torch.tensor([0, 0, 0, 0]))
    assert found.tolist() == pytest.approx([0.5, 0.25, 1.0, 0.0])
    ratio = shares[:, 0] / shares.amax(1)
    assert torch.allclose(found[:2], (ratio / (1 + ratio))[:2])


def test_matrix_precision_is_given_back() -> None:
    before = torch.backends.cuda.matmul.allow_tf32
    with neighbours.tensor_cores():
        assert torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cuda.matmul.allow_tf32 == before
