"""Prototypes without a mixture: their pseudo labels, and how they move."""

import numpy as np
import pytest
import torch
from made_evidence import K, copied, evidence, same

from labelsieve.methods.parts.cleaners import ContrastiveCleaner
from labelsieve.methods.parts.contrastive import contrastive_loss, pseudo_labels


def test_pseudo_labels_by_hand() -> None:
    """K = 4. Above 0.8 the best class, else the given one where its share is above 1/4, else none."""
    probs = torch.tensor([[0.9, 0.1, 0, 0], [0.6, 0.4, 0, 0], [0.6, 0.1, 0.3, 0], [0.8, 0.2, 0, 0]])
    scores = torch.tensor([[0.9, 0.1, 0, 0], [0.4, 0.6, 0, 0], [0.8, 0, 0.1, 0.1], [0.8, 0, 0.2, 0]])
    labels, kept = pseudo_labels(probs, scores, torch.tensor([3, 1, 2, 1]), confident=0.8)
    # means: (.9 .1 0 0) sure of 0; (.5 .5 0 0) given 1 has .5; (.7 .05 .2 .05) given 2 has .2;
    # (.8 .1 .1 0): .8 is not above .8, given 1 has .1
    assert labels.tolist() == [0, 1, 2, 1]
    assert kept.tolist() == [True, True, False, False]


def test_contrastive_prototypes_are_unit_momentum_averages_and_ignore_the_teacher() -> None:
    seen, right = evidence()
    first, second = ContrastiveCleaner(dim=8), ContrastiveCleaner(dim=8)
    first.learn(seen, right)
    second.learn(seen, ~right)
    assert same(copied(first), copied(second))
    assert first.prototypes_ is not None
    torch.testing.assert_close(first.prototypes_.norm(dim=1), torch.ones(K))


def test_a_contrastive_step_moves_the_prototypes_by_hand() -> None:
    """c0 has two members and becomes 0.9 c0 + 0.1 mean, at unit length; c1 has none and stays."""
    cleaner = ContrastiveCleaner(dim=3, prototype_momentum=0.9, lr=0.0)
    cleaner._start(5, torch.device("cpu"))
    cleaner.prototypes_ = torch.eye(3)[:2].clone()
    features = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    assert cleaner.projector_ is not None
    embedded = cleaner.projector_(features).detach()
    embedded = embedded / embedded.norm(dim=1, keepdim=True)
    cleaner._step(features, torch.tensor([0, 0, 1]), torch.tensor([True, True, False]), torch.ones(3))
    moved = 0.9 * torch.eye(3)[0] + 0.1 * (embedded[0] + embedded[1]) / 2
    torch.testing.assert_close(cleaner.prototypes_, torch.stack((moved / moved.norm(), torch.eye(3)[1])))


def test_the_contrastive_loss_is_the_mean_over_the_rows_that_are_kept() -> None:
    scores = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [5.0, 0.0, 0.0], [1.0, 1.0, 0.0]], dtype=torch.float64)
    labels, kept = torch.tensor([0, 2, 1, 1]), torch.tensor([1.0, 1.0, 0.0, 1.0])
    shares = np.exp(scores.numpy()) / np.exp(scores.numpy()).sum(1, keepdims=True)
    want = -np.log(shares[[0, 1, 3], [0, 2, 1]]).mean()
    assert float(contrastive_loss(scores, labels, kept)) == pytest.approx(want)
    assert float(contrastive_loss(scores, labels, torch.zeros(4))) == 0


def test_chances_are_of_cosines_over_the_temperature() -> None:
    seen, _ = evidence()
    cleaner = ContrastiveCleaner(dim=8, temperature=0.2)
    cleaner.learn(seen)
    assert cleaner.cosine == 5 and cleaner.projector_ is not None and cleaner.prototypes_ is not None
    embedded = cleaner.projector_(seen.features).detach().numpy()
    cosines = (embedded / np.linalg.norm(embedded, axis=1, keepdims=True)) @ cleaner.prototypes_.numpy().T
    own = cosines[np.arange(len(seen)), seen.labels.numpy()]
    np.testing.assert_allclose(cleaner.judge(seen).numpy(), 1 / (1 + np.exp(-5 * own)), atol=1e-5)
