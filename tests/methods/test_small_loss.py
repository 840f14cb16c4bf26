"""The mixture as a cleaner: normalised losses, memory, classes that cannot be fitted, losses that are not finite."""

from dataclasses import replace

import pytest
import torch
from made_evidence import K, N, evidence
from torch import Tensor

from labelsieve.methods.parts.cleaners import Evidence, MixtureCleaner
from labelsieve.methods.parts.mixture import fit


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


def test_normalisation_may_be_over_each_class() -> None:
    """Every class from 0 to 1, so that the variance that is added to each component weighs alike in all of them."""
    seen, _ = evidence()
    losses = seen.losses * (1 + 4 * seen.labels) + 10 * seen.labels
    losses[5] = torch.inf
    cleaner = MixtureCleaner(True, memory=2, own_range=True)
    for scale in (1.0, 2.0):
        cleaner.learn(replace(seen, losses=scale * losses))
    assert cleaner.past_ is not None and cleaner.past_.shape == (2, N)
    finite = torch.isfinite(losses)
    for k in range(K):
        own = (seen.labels == k) & finite
        torch.testing.assert_close(cleaner.past_[:, own], normalised(losses[own]).expand(2, -1), rtol=0, atol=1e-7)
    assert cleaner.excluded_ == 1
    again = MixtureCleaner(True, memory=2, own_range=True)
    again.load_state_dict(cleaner.state_dict())
    assert torch.equal(again.judge(replace(seen, losses=losses)), cleaner.judge(replace(seen, losses=losses)))
    # What is added to variances is all that a class's range decides: without it the posteriors are those of the whole set's.
    with_range, without = (MixtureCleaner(True, reg_covar=1e-12, max_iter=1, own_range=own) for own in (True, False))
    for one in (with_range, without):
        one.learn(seen)
    torch.testing.assert_close(with_range.judge(seen), without.judge(seen), rtol=0, atol=1e-4)


@pytest.mark.parametrize("own_range", [False, True])
def test_a_class_that_was_not_there_counts_as_clean(own_range: bool) -> None:
    seen, _ = evidence()
    there = seen.labels != 2
    cleaner = MixtureCleaner(True, own_range=own_range)
    cleaner.learn(Evidence(seen.labels[there], seen.losses[there], seen.probs[there], seen.features[there]))
    assert cleaner.unfitted_ == [2]
    assert bool((cleaner.judge(seen)[~there] == 1).all()) and not bool((cleaner.judge(seen)[there] == 1).all())


def test_a_class_that_was_not_learnt_from_is_judged_as_without_a_range_of_its_own() -> None:
    """Of a large set an epoch draws some rows; at the end every row is judged, those of classes that were not drawn, too."""
    seen, _ = evidence()
    drawn = seen.labels != 2
    some = replace(
        seen, labels=seen.labels[drawn], losses=seen.losses[drawn], probs=seen.probs[drawn], features=seen.features[drawn]
    )
    aware, agnostic = MixtureCleaner(True, own_range=True), MixtureCleaner(own_range=True)
    for cleaner in (aware, agnostic):
        cleaner.learn(some)
        assert cleaner.range_ is not None and bool(cleaner.range_.isfinite().all())
    assert bool((aware.judge(seen)[~drawn] == 1).all())  # ruling 9: without a mixture all count as clean
    assert bool((agnostic.judge(seen)[~drawn] > 0.5).any())
    nothing = MixtureCleaner(True, own_range=True)
    nothing.learn(replace(seen, losses=torch.full((N,), torch.nan)))
    assert not nothing.judge(seen).isnan().any()


def test_a_range_from_before_there_was_one_a_class_is_read() -> None:
    seen, _ = evidence()
    cleaner, again = MixtureCleaner(), MixtureCleaner()
    cleaner.learn(seen)
    state = cleaner.state_dict()
    again.load_state_dict(state | {"range": state["range"].flatten()})
    assert torch.equal(again.judge(seen), cleaner.judge(seen))


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
