"""One list of contract checks over every cleaner, then what each of them must do by itself."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from labelsieve.method.batches import Pass, one_by_one
from labelsieve.method.cleaners import (
    Cleaner,
    ContrastiveCleaner,
    Evidence,
    MixtureCleaner,
    PrototypeCleaner,
)
from labelsieve.method.contrastive import pseudo_labels
from labelsieve.method.mixture import fit

N, K, D = 600, 4, 12

CLEANERS: dict[str, Callable[[], Cleaner]] = {
    "mixture, one": lambda: MixtureCleaner(False),
    "mixture, per class": lambda: MixtureCleaner(True),
    "mixture, memory": lambda: MixtureCleaner(memory=5),
    "prototypes": lambda: PrototypeCleaner(dim=8),
    "prototypes, alpha": lambda: PrototypeCleaner(dim=8, alpha=1.0),
    "prototypes, deep": lambda: PrototypeCleaner(dim=8, depth=2),
    "prototypes, cosine": lambda: PrototypeCleaner(dim=8, cosine=10.0),
    "prototypes, passes": lambda: PrototypeCleaner(dim=8, passes=3),
    "prototypes, memory": lambda: PrototypeCleaner(dim=8, memory=3),
    "prototypes, prior": lambda: PrototypeCleaner(dim=8, prior=0.2),
    "contrastive": lambda: ContrastiveCleaner(dim=8),
}
every_cleaner = pytest.mark.parametrize("make", CLEANERS.values(), ids=CLEANERS.keys())


def evidence(seed: int = 0, wrong: float = 0.4, n: int = N) -> tuple[Evidence, Tensor]:
    """What a good network leaves under labels of which 40 % are wrong; and which are right (N,)."""
    g = torch.Generator().manual_seed(seed)
    true = torch.randint(K, (n,), generator=g)
    centres = 3 * torch.nn.functional.one_hot(torch.arange(K), D).float()
    features = centres[true] + 0.5 * torch.randn(n, D, generator=g)
    flipped = torch.rand(n, generator=g) < wrong
    labels = torch.where(flipped, (true + torch.randint(1, K, (n,), generator=g)) % K, true)
    probs = torch.softmax(features[:, :K] + 0.5 * torch.randn(n, K, generator=g), 1)
    losses = -probs.gather(1, labels.unsqueeze(1)).squeeze(1).log()
    return Evidence(labels, losses, probs, features), ~flipped


def copied(cleaner: Cleaner) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in cleaner.state_dict().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def taught(make: Callable[[], Cleaner], calls: int = 3) -> tuple[Cleaner, Evidence]:
    cleaner, (seen, right) = make(), evidence()
    for _ in range(calls):
        cleaner.learn(seen, right)
    return cleaner, seen


@every_cleaner
def test_the_chance_is_a_chance_for_each_sample(make: Callable[[], Cleaner]) -> None:
    cleaner, seen = taught(make)
    q = cleaner.judge(seen)
    assert q.shape == (N,) and q.dtype == torch.float32
    assert bool(((q >= 0) & (q <= 1)).all())


@every_cleaner
def test_judging_changes_nothing(make: Callable[[], Cleaner]) -> None:
    cleaner, seen = taught(make)
    before, first = copied(cleaner), cleaner.judge(seen)
    assert torch.equal(first, cleaner.judge(seen))
    cleaner.judge(evidence(1)[0])
    assert same(before, copied(cleaner)) and before


@every_cleaner
def test_learning_is_deterministic_and_leaves_the_global_generator_alone(make: Callable[[], Cleaner]) -> None:
    torch.manual_seed(1)
    first, seen = taught(make)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second, _ = taught(make)
    assert same(copied(first), copied(second))
    assert torch.equal(first.judge(seen), second.judge(seen))
    assert torch.equal(state, torch.get_rng_state())


@every_cleaner
def test_a_saved_cleaner_continues_bit_for_bit(make: Callable[[], Cleaner]) -> None:
    cleaner, seen = taught(make, 2)
    fresh = make()
    fresh.load_state_dict(copied(cleaner))
    assert torch.equal(fresh.judge(seen), cleaner.judge(seen))
    later, right = evidence(7)
    for one in (cleaner, fresh):
        one.learn(later, right)
        one.learn(seen, right)
    assert same(copied(fresh), copied(cleaner))
    assert torch.equal(fresh.judge(later), cleaner.judge(later))


@every_cleaner
def test_the_state_of_one_that_has_not_learnt_is_empty_and_loads(make: Callable[[], Cleaner]) -> None:
    cleaner, fresh = make(), make()
    assert cleaner.state_dict() == {}
    fresh.load_state_dict({})
    seen, right = evidence()
    cleaner.learn(seen, right)
    fresh.learn(seen, right)
    assert same(copied(cleaner), copied(fresh))


@every_cleaner
def test_nothing_reaches_the_backbone(make: Callable[[], Cleaner]) -> None:
    """Features that would carry a gradient get none, and a judgement carries none."""
    cleaner, (seen, right) = make(), evidence()
    live = seen.features.clone().requires_grad_()
    wired = replace(seen, features=2 * live)
    cleaner.learn(wired, right)
    q = cleaner.judge(wired)
    assert live.grad is None
    assert not q.requires_grad
    plain = make()
    plain.learn(replace(seen, features=2 * seen.features), right)
    assert same(copied(plain), copied(cleaner))


@every_cleaner
def test_far_better_than_chance_without_a_teacher(make: Callable[[], Cleaner]) -> None:
    cleaner, (seen, right) = make(), evidence()
    for _ in range(4):
        cleaner.learn(seen)
    assert roc_auc_score(right.numpy(), cleaner.judge(seen).numpy()) > 0.9


@every_cleaner
def test_judging_before_learning_says_what_to_do(make: Callable[[], Cleaner]) -> None:
    with pytest.raises(RuntimeError, match="call learn"):
        make().judge(evidence()[0])


@every_cleaner
@pytest.mark.parametrize("n", [1, 2, 7])
def test_tiny_sets_do_not_stop_it(make: Callable[[], Cleaner], n: int) -> None:
    cleaner, (seen, right) = make(), evidence(n=n)
    cleaner.learn(seen, right)
    assert bool(torch.isfinite(cleaner.judge(seen)).all())


# --- the mixture


def normalised(losses: Tensor) -> Tensor:
    losses = losses.double()
    return (losses - losses.min()) / (losses.max() - losses.min())


def test_memory_takes_the_mean_of_the_last_five_normalised_vectors() -> None:
    cleaner, passes = MixtureCleaner(memory=5), [evidence(3)[0]]
    g = torch.Generator().manual_seed(5)
    for scale in (1.0, 3.0, 0.5, 2.0, 4.0, 1.5):
        noise = torch.rand(N, generator=g)
        passes.append(replace(passes[0], losses=scale * (passes[0].losses + noise)))
    for seen in passes:
        cleaner.learn(seen)
    mean = torch.stack([normalised(seen.losses) for seen in passes[-5:]]).mean(0)
    groups = torch.zeros(N, dtype=torch.long)
    assert cleaner.past_ is not None and cleaner.past_.shape == (5, N)
    torch.testing.assert_close(cleaner.past_.mean(0), mean, rtol=0, atol=1e-12)
    # the mean is not normalised again before it is fitted
    expected = fit(mean, groups, 1).posterior(mean, groups).float()
    torch.testing.assert_close(cleaner.judge(passes[-1]), expected, rtol=0, atol=1e-6)


def test_normalisation_is_over_the_whole_set_also_per_class() -> None:
    """A class whose losses are all high stays high: its own range is not stretched to [0, 1]."""
    seen, _ = evidence()
    cleaner = MixtureCleaner(True)
    cleaner.learn(seen)
    assert cleaner.past_ is not None
    torch.testing.assert_close(cleaner.past_[0], normalised(seen.losses), rtol=0, atol=1e-12)
    assert cleaner.mixture_ is not None and cleaner.mixture_.means.shape == (K, 2)


def test_scaling_all_losses_changes_nothing() -> None:
    seen, _ = evidence()
    first, second = MixtureCleaner(), MixtureCleaner()
    first.learn(seen)
    bigger = replace(seen, losses=7 * seen.losses + 3)
    second.learn(bigger)
    torch.testing.assert_close(first.judge(seen), second.judge(bigger), rtol=0, atol=1e-4)


def test_a_class_that_cannot_be_fitted_counts_as_clean_and_is_named() -> None:
    seen, _ = evidence()
    losses = torch.where(seen.labels == 2, 0.5, seen.losses)
    cleaner = MixtureCleaner(True)
    cleaner.learn(replace(seen, losses=losses))
    assert cleaner.unfitted_ == [2]
    assert bool((cleaner.judge(replace(seen, losses=losses))[seen.labels == 2] == 1).all())


def test_losses_that_are_not_finite_are_counted_and_judged_wrong() -> None:
    seen, _ = evidence()
    losses = seen.losses.clone()
    losses[:3] = torch.tensor([float("nan"), float("inf"), float("-inf")])
    cleaner = MixtureCleaner()
    cleaner.learn(replace(seen, losses=losses))
    q = cleaner.judge(replace(seen, losses=losses))
    assert cleaner.excluded_ == 3
    assert q[:3].tolist() == [0, 0, 0] and 0 < float(q[3:].mean()) < 1


# --- prototypes


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


# --- prototypes without a mixture


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


def test_evidence_of_uneven_columns_is_refused() -> None:
    seen, _ = evidence()
    with pytest.raises(ValueError, match="599 losses"):
        replace(seen, losses=seen.losses[:-1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": torch.zeros(6, 1, dtype=torch.int64)}, r"labels have the shape \(6, 1\)"),
        ({"labels": torch.zeros(6)}, "labels are torch.float32"),
        ({"labels": torch.tensor([0, 1, 2, 3, 0, 1])}, "run from 0 to 3; probs have 3 columns"),
        ({"labels": torch.tensor([0, 1, -1, 2, 0, 1])}, "run from -1 to 2"),
        ({"probs": torch.ones(6)}, r"probs have the shape \(6,\)"),
        ({"features": [[1.0]] * 6}, "features are a list; give a torch tensor"),
        ({"losses": torch.ones(5)}, "differ in length"),
    ],
)
def test_evidence_says_which_column_is_wrong(change: dict[str, object], words: str) -> None:
    columns = {"labels": torch.arange(6) % 3, "losses": torch.ones(6), "probs": torch.ones(6, 3), "features": torch.ones(6, 2)}
    with pytest.raises((TypeError, ValueError), match=words):
        Evidence(**(columns | change))  # type: ignore[arg-type]


def test_labels_may_be_any_whole_numbers() -> None:
    seen = Evidence(torch.arange(40).int() % 2, torch.rand(40), torch.full((40, 2), 0.5), torch.rand(40, 3))
    PrototypeCleaner(dim=4).learn(seen, torch.arange(40) < 30)
    assert seen.labels.dtype == torch.int64


@pytest.mark.parametrize("clean", [torch.full((40,), 0.2), torch.arange(3), [True] * 40, torch.ones(39, dtype=torch.bool)])
def test_chances_are_no_partition(clean: object) -> None:
    seen = Evidence(torch.arange(40) % 2, torch.rand(40), torch.full((40, 2), 0.5), torch.rand(40, 3))
    with pytest.raises(ValueError, match="40 truth values"):
        PrototypeCleaner(dim=4).learn(seen, clean)  # type: ignore[arg-type]
