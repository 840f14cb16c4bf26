"""How prototypes learn and judge: one step by hand, batches, passes, the range of the score."""

from functools import partial
from itertools import chain

import numpy as np
import pytest
import torch
from made_evidence import D, K, copied, evidence, taught
from torch import Tensor

from labelsieve.methods.parts.cleaners import Evidence, PrototypeCleaner
from labelsieve.methods.parts.sgd import Pass, one_by_one


def stepped_by_hand(cleaner: PrototypeCleaner, seen: Evidence, clean: Tensor, confident: Tensor) -> list[Tensor]:
    """One SGD step on L_C over all rows, its gradient worked out on paper: no autograd, no shared functions.

    With s = v W^T + b and scores S = s C^T, dL/dS is (sigmoid - 1) / |X| at the own class of clean rows,
    sigmoid / (K |X|) at the others, sigmoid / |U| at the given class of noisy rows, and in addition
    alpha (sigmoid - 1) / |XP| at the predicted class of confident ones.
    """
    assert cleaner.projector_ is not None and cleaner.prototypes_ is not None
    weight, bias = (p.detach().double().numpy() for p in cleaner.projector_.parameters())
    c, v = cleaner.prototypes_.detach().double().numpy(), seen.features.double().numpy()
    embedded = v @ weight.T + bias
    q = 1 / (1 + np.exp(-embedded @ c.T))
    slope = np.zeros_like(q)
    sizes = int(clean.sum()), int((~clean).sum()), max(int(confident.sum()), 1)
    predicted = seen.probs.argmax(1).tolist()
    for i, y in enumerate(seen.labels.tolist()):
        if clean[i]:
            slope[i] += q[i] / len(c) / sizes[0]
            slope[i, y] = (q[i, y] - 1) / sizes[0]
        else:
            slope[i, y] += q[i, y] / sizes[1]
        if confident[i]:
            slope[i, predicted[i]] += cleaner.alpha * (q[i, predicted[i]] - 1) / sizes[2]
    back = slope @ c
    gradients = (back.T @ v, back.sum(0), slope.T @ embedded)
    moved = []
    for value, gradient in zip((weight, bias, c), gradients):
        moved.append(torch.from_numpy(value - cleaner.lr * (gradient + cleaner.weight_decay * value)))
    return moved


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_one_step_equals_the_gradient_worked_out_by_hand(alpha: float) -> None:
    seen, right = evidence(2, n=100)
    own = seen.probs.gather(1, seen.labels.unsqueeze(1)).squeeze(1)
    thresholds = [float(own[right & (seen.labels == k)].mean()) for k in range(K)]
    predicted = seen.probs.argmax(1)
    confident = torch.tensor([not right[i] and float(seen.probs[i, k]) > thresholds[k] for i, k in enumerate(predicted.tolist())])
    assert 5 < int(confident.sum()) < int((~right).sum())
    cleaner = PrototypeCleaner(dim=8, alpha=alpha, batch=100, lr=0.5)
    cleaner._start(D, K, torch.device("cpu"))
    expected = stepped_by_hand(cleaner, seen, right, confident)
    cleaner.learn(seen, right)
    assert cleaner.projector_ is not None and cleaner.prototypes_ is not None
    for got, wanted in zip((*cleaner.projector_.parameters(), cleaner.prototypes_), expected):
        torch.testing.assert_close(got.detach().double(), wanted, rtol=0, atol=1e-6)


def test_rows_that_fill_up_a_short_batch_change_nothing() -> None:
    """70 rows in one batch of 100 (30 of them filling) equal 70 rows in one batch of 70."""
    seen, right = evidence(4, n=70)
    states = []
    for batch in (70, 100):
        cleaner = PrototypeCleaner(dim=8, alpha=1.0, batch=batch, lr=0.5)
        cleaner.learn(seen, right)
        states.append(copied(cleaner))
    for name, value in states[0].items():
        torch.testing.assert_close(states[1][name], value, rtol=0, atol=1e-6)


def test_each_pass_sees_every_row_once_in_another_order() -> None:
    met: list[list[int]] = []

    def spying(owner: object, name: str, step: object, state: object, same: object) -> Pass:
        def spy(features: Tensor, *rest: Tensor) -> Tensor:
            weight = rest[-1]
            assert len(features) == len(weight) == 32
            met.append(features[weight > 0, 0].long().tolist())
            return features.new_zeros(())

        return partial(one_by_one, spy)

    rows = torch.arange(70.0).unsqueeze(1).repeat(1, 4)
    seen = Evidence(torch.arange(70) % 3, torch.rand(70), torch.full((70, 3), 1 / 3), rows)
    cleaner = PrototypeCleaner(batch=32, passes=2)
    cleaner.prepare = spying
    cleaner.learn(seen, torch.arange(70) % 2 == 0)
    assert len(met) == 6
    first, second = (list(chain.from_iterable(turn)) for turn in (met[:3], met[3:]))
    assert sorted(first) == sorted(second) == list(range(70)) and first != second


def test_the_score_has_its_full_range_unless_confined_to_unit_vectors() -> None:
    """Ruling 2: products of unit vectors would confine q to sigmoid(-1)..sigmoid(1) = 0.27..0.73."""
    seen, right = evidence()
    free, unit = PrototypeCleaner(dim=8), PrototypeCleaner(dim=8, cosine=1.0)
    for _ in range(30):
        free.learn(seen, right)
        unit.learn(seen, right)
    q, confined = free.judge(seen), unit.judge(seen)
    assert float(q.max()) > 0.9 and float(q.min()) < 0.1
    assert float(confined.max()) <= 0.7311 and float(confined.min()) >= 0.2689


def test_prototypes_start_small_and_classify_after_learning() -> None:
    cleaner = PrototypeCleaner()
    cleaner._start(D, K, torch.device("cpu"))
    assert cleaner.prototypes_ is not None and cleaner.prototypes_.shape == (K, 128)
    assert 0 < float(cleaner.prototypes_.detach().abs().max()) < 0.1
    seen, right = evidence(wrong=0.3)
    for _ in range(10):
        cleaner.learn(seen, right)
    true = seen.features[:, :K].argmax(1)
    assert float((cleaner.classify(seen.features).argmax(1) == true).double().mean()) > 0.95


def test_the_judge_scores_the_given_label() -> None:
    cleaner, seen = taught(lambda: PrototypeCleaner(dim=8))
    scores = cleaner.classify(seen.features)  # type: ignore[attr-defined]
    expected = torch.tensor([1 / (1 + torch.exp(-scores[i, y])) for i, y in enumerate(seen.labels.tolist())])
    torch.testing.assert_close(cleaner.judge(seen), expected)
