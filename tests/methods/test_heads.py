"""Heads on vectors judge labels that they have not seen: held against other programs, plain loops, and labels nobody can know."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from labelsieve.methods.parts import heads
from labelsieve.methods.parts.estimate import knows_classes
from labelsieve.methods.parts.heads import Ridge, folds_of, held_out, label_share, neighbours


@pytest.fixture(scope="module")
def made() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    vectors = 2 * np.eye(3, 8)[labels] + rng.normal(size=(90, 8))
    labels[:9] = (labels[:9] + 1) % 3
    return torch.from_numpy(vectors).float(), torch.from_numpy(labels)


def test_ridge_leaves_each_row_out_as_a_refit_without_it_would(made: tuple[torch.Tensor, torch.Tensor]) -> None:
    vectors, labels = made
    fit = Ridge(vectors, labels, 3)
    rows = np.hstack([vectors.double().numpy(), np.ones((90, 1))])
    targets, penalty = np.eye(3)[labels.numpy()], fit.penalty * 90
    expected = []
    for row in range(90):
        others = np.arange(90) != row
        weights = np.linalg.solve(rows[others].T @ rows[others] + penalty * np.eye(9), rows[others].T @ targets[others])
        expected.append(rows[row] @ weights)
    scores = fit.sharpness * torch.from_numpy(np.array(expected))
    torch.testing.assert_close(fit.shares().double(), scores.softmax(1), rtol=1e-5, atol=1e-5)


def test_ridge_is_held_back_where_labels_say_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    vectors, labels = torch.randn(200, 150, generator=generator), torch.arange(200) % 2
    noise = Ridge(vectors, labels, 2)
    known = Ridge(vectors + 3 * (2 * labels.unsqueeze(1) - 1), labels, 2)
    assert noise.penalty * known.sharpness > 10 * known.penalty * noise.sharpness
    assert float((noise.shares().max(1).values - 0.5).abs().mean()) < 0.1  # it knows that it knows nothing


def test_the_logistic_head_is_scikit_learns() -> None:
    generator = torch.Generator().manual_seed(1)
    vectors, labels = torch.randn(120, 6, generator=generator), torch.arange(120) % 3
    vectors[labels == 1] += 1
    head = heads._logistic(vectors, labels, 3, 0.05)
    theirs = LogisticRegression(C=1 / (120 * 0.05), tol=1e-8, max_iter=5000).fit(vectors.numpy(), labels.numpy())
    expected = torch.from_numpy(theirs.predict_proba(vectors.numpy()))
    torch.testing.assert_close(head(vectors).softmax(1).double(), expected.double(), rtol=0, atol=2e-3)


def test_neighbours_vote_without_the_row_itself(made: tuple[torch.Tensor, torch.Tensor]) -> None:
    vectors, labels = made
    shares = neighbours(vectors, labels, 3)
    units = vectors.numpy() / np.linalg.norm(vectors.numpy(), axis=1, keepdims=True)
    alike = units @ units.T
    np.fill_diagonal(alike, -np.inf)
    candidates = []
    for near in heads.NEAREST:
        nearest = labels.numpy()[np.argsort(-alike, axis=1, kind="stable")[:, :near]]
        counts = np.stack([(nearest == k).sum(1) for k in range(3)], 1)
        candidates.append((counts + 1 / 3) / (near + 1))
    likeliest = max(candidates, key=lambda each: np.log(each[np.arange(90), labels.numpy()]).sum())
    np.testing.assert_allclose(shares.numpy(), likeliest, atol=1e-6)


def test_every_fold_holds_out_its_part_of_every_class() -> None:
    labels = torch.tensor([0] * 50 + [1] * 10 + [2] * 5)
    fold = folds_of(labels, 3)
    counts = torch.stack([torch.bincount(fold[labels == k], minlength=5) for k in range(3)])
    assert (counts.amax(1) - counts.amin(1) <= 1).all() and counts[2].tolist() == [1] * 5


@pytest.mark.parametrize("by_sgd", [False, True])
def test_all_heads_find_what_was_made_wrong(
    made: tuple[torch.Tensor, torch.Tensor], monkeypatch: pytest.MonkeyPatch, by_sgd: bool
) -> None:
    if by_sgd:
        monkeypatch.setattr(heads, "LOGISTIC", 0)
    vectors, labels = made
    found = held_out([vectors], labels, 3)
    torch.testing.assert_close(found.probs.sum(1), torch.ones(90))
    assert found.said.shape == (4, 90) and found.agree.float().mean() > 0.7
    own = found.evidence(labels).losses
    assert (
        set(own.argsort(descending=True)[:9].tolist()) >= set(range(7)) or int((own.argsort(descending=True)[:12] < 9).sum()) >= 8
    )
    assert knows_classes(found.evidence(labels))


def test_the_scale_that_suits_the_vectors_is_taken(made: tuple[torch.Tensor, torch.Tensor]) -> None:
    vectors, labels = made
    blurred = vectors + 9 * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))
    assert held_out([blurred, vectors], labels, 3).vectors is vectors


def test_labels_that_have_nothing_to_do_with_the_vectors_are_not_learnt() -> None:
    """400 dimensions can fit any labels of 200 rows; heads that have not seen them must not."""
    generator = torch.Generator().manual_seed(0)
    vectors, labels = torch.randn(200, 400, generator=generator), torch.randint(0, 4, (200,), generator=generator)
    found = held_out([vectors], labels, 4)
    assert 0.15 < float((found.predicted == labels).float().mean()) < 0.35
    assert not knows_classes(found.evidence(labels))


def test_a_labels_share_by_hand() -> None:
    probs = torch.tensor([[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1]])
    found = label_share(probs, torch.tensor([0, 0, 0]))
    # The usual share of the two confirmed labels is 0.8: (1 * 8/9), (0.75 * 6/9), (0.25 * 2/9), each under a root.
    torch.testing.assert_close(found, torch.tensor([8 / 9, 0.5, 0.5 / 9], dtype=torch.float64).sqrt(), rtol=1e-6, atol=1e-6)
