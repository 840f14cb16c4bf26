"""Prototypes by themselves: the odds they judge at, their memory, and that they stay in bounds."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_evidence import evidence
from sklearn.metrics import roc_auc_score

from labelsieve.methods.parts.cleaners import Evidence, PrototypeCleaner
from labelsieve.methods.parts.sgd import cut, update


def test_the_prototypes_prior_is_bayes_rule() -> None:
    seen, _ = evidence()
    even, rare = PrototypeCleaner(dim=8), PrototypeCleaner(dim=8, prior=0.1)
    even.learn(seen)
    rare.learn(seen)
    likelihood = torch.special.logit(even.judge(seen).double())
    expected = torch.special.expit(likelihood + np.log(0.1 / 0.9))
    assert torch.allclose(rare.judge(seen).double(), expected, atol=1e-6)


def test_the_prototypes_memory_is_the_mean_of_the_last_scores() -> None:
    plain, remembering = PrototypeCleaner(dim=8), PrototypeCleaner(dim=8, memory=3)
    scores = []
    for seed in range(5):
        seen = replace(evidence(seed)[0], labels=evidence()[0].labels)
        plain.learn(seen)
        remembering.learn(seen)
        scores.append(plain.judge(seen))
        assert torch.allclose(remembering.judge(seen), torch.stack(scores[-3:]).mean(0), atol=1e-6)
    fewer, _ = evidence(9, n=50)
    assert torch.allclose(remembering.judge(fewer), plain.judge(fewer), atol=1e-6)  # others have no past here


@pytest.mark.parametrize("memory", [1, 2])
def test_a_shorter_memory_takes_no_more_from_a_state_than_it_would_have_kept(memory: int) -> None:
    """Scores of long ago had a say for ever where a run with a memory of five went on with one of 1."""
    long, short = PrototypeCleaner(dim=8, memory=5), PrototypeCleaner(dim=8, memory=memory)
    plain = PrototypeCleaner(dim=8, memory=memory)
    for seed in range(4):
        seen = replace(evidence(seed)[0], labels=evidence()[0].labels)
        long.learn(seen)
        plain.learn(seen)
    short.load_state_dict(long.state_dict())
    assert torch.equal(short.judge(seen), plain.judge(seen))
    for cleaner in (short, plain):
        cleaner.learn(evidence()[0])
    assert torch.equal(short.judge(evidence()[0]), plain.judge(evidence()[0]))


def test_a_step_is_as_long_as_the_learning_rate_says_by_then() -> None:
    """Not as long as the one that the cleaner was made with: it drops with the network's."""
    seen, _ = evidence()
    cleaner = PrototypeCleaner(dim=8)
    cleaner.learn(seen)
    before = {name: value.clone() for name, value in cleaner.state_dict().items()}
    cleaner.lr = 0.0
    cleaner.learn(seen)
    after = cleaner.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in ("prototypes", "projector.layers.0.weight"))
    assert not torch.equal(before["momentum.0"], after["momentum.0"])


def test_many_classes_of_long_features_do_not_drive_prototypes_away() -> None:
    """With 1,000 classes of five long vectors and a rate of 0.05, scores once grew to 1e24 and nobody was told."""
    g = torch.Generator().manual_seed(1)
    true = torch.arange(1000).repeat_interleave(5)
    features = torch.relu(6 * (torch.randn(1000, 64, generator=g)[true] + 0.3 * torch.randn(5000, 64, generator=g)))
    wrong = torch.rand(5000, generator=g) < 0.1
    labels = torch.where(wrong, torch.randint(1000, (5000,), generator=g), true)
    seen = Evidence(labels, torch.zeros(5000), torch.full((5000, 1000), 1e-3), features)
    cleaner = PrototypeCleaner(lr=0.05, batch=64)
    for _ in range(8):
        cleaner.learn(seen, clean=~wrong)
    scores = cleaner.classify(features)
    assert scores.abs().max() < 1000
    assert roc_auc_score((labels == true).numpy(), cleaner.judge(seen).numpy()) > 0.9


@pytest.mark.parametrize("steepest", [1e9, 3.0])
def test_a_cut_step_is_torchs_own(steepest: float) -> None:
    """Three steps, with gradients of a length of about 6 and the cut beyond it or below, as clip_grad_norm_ and SGD make them."""
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=generator) for shape in ((4, 3), (4,), (5, 4))]
    theirs = [torch.nn.Parameter(weight.clone()) for weight in start]
    optimiser = torch.optim.SGD(theirs, lr=0.1, momentum=0.9, weight_decay=0.01)
    remembered = [torch.zeros_like(weight) for weight in start]
    for _ in range(3):
        gradients = [torch.randn(weight.shape, generator=generator) for weight in start]
        for weight, gradient in zip(theirs, gradients):
            weight.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_(theirs, steepest)
        optimiser.step()
        update(start, remembered, cut(gradients, steepest), torch.tensor(0.1), 0.9, 0.01)
    for ours, weight in zip(start, theirs):
        assert torch.equal(ours, weight.detach())


@pytest.mark.parametrize("cosine", [0.0, 9.0])
def test_scores_by_hand_with_two_layers(cosine: float) -> None:
    """Plain products of embeddings and prototypes, or nine times their cosine; ReLU stands between the layers."""
    seen, _ = evidence()
    cleaner = PrototypeCleaner(dim=8, depth=2, cosine=cosine)
    cleaner.learn(seen)
    assert cleaner.prototypes_ is not None
    state = {name: value.double().numpy() for name, value in cleaner.state_dict().items()}
    first, second = (state[f"projector.layers.{i}.weight"] for i in (0, 2))
    hidden = seen.features.double().numpy() @ first.T + state["projector.layers.0.bias"]
    v, c = np.maximum(hidden, 0) @ second.T + state["projector.layers.2.bias"], state["prototypes"]
    if cosine:
        v, c = 3 * v / np.linalg.norm(v, axis=1, keepdims=True), 3 * c / np.linalg.norm(c, axis=1, keepdims=True)
    own = (v * c[seen.labels.numpy()]).sum(1)
    np.testing.assert_allclose(cleaner.judge(seen).numpy(), 1 / (1 + np.exp(-own)), atol=1e-5)
