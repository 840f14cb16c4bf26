"""One list of contract checks over every cleaner; what each of them must do by itself is in a file of its own."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from made_evidence import N, copied, evidence, same, taught
from sklearn.metrics import roc_auc_score

from labelsieve.methods.parts.cleaners import Cleaner, ContrastiveCleaner, MixtureCleaner, PrototypeCleaner

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
def test_one_that_has_learnt_takes_up_another_size(make: Callable[[], Cleaner]) -> None:
    (cleaner, seen), other = taught(make), make()
    narrow, right = evidence(3)
    other.learn(replace(narrow, features=narrow.features[:, :-1]), right)
    other.load_state_dict(copied(cleaner))
    assert torch.equal(other.judge(seen), cleaner.judge(seen))


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
