"""What a run decides from the noise it finds: settings by rule, given ones kept, and the same after a resume."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from labelsieve.config.resolve import resolve
from labelsieve.config.schema import override
from labelsieve.methods.parts.estimate import NoiseEstimate, least_clean_for, mixed_epochs_for
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.train.build import training_for
from labelsieve.train.decide import NoiseDecision, decide, decided, lambda_by, left_open
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import arrays_file, pictures, tiny_config


def evidence(wrong: float, count: int = 2100, classes: int = 3, known: float = 1.0) -> Evidence:
    """Tight clusters, a share of the labels moved to the next class; the network knows the truth of a share `known`."""
    g = torch.Generator().manual_seed(0)
    truth = torch.arange(count) % classes
    features = torch.eye(classes)[truth] + 0.05 * torch.randn(count, classes, generator=g)
    moved = torch.rand(count, generator=g) < wrong
    labels = torch.where(moved, (truth + 1) % classes, truth)
    says = torch.where(torch.rand(count, generator=g) < known, truth, (truth + 1) % classes)
    return Evidence(labels, torch.rand(count, generator=g), 0.1 + torch.eye(classes)[says], features)


def test_clean_labels_are_taken_as_clean_whatever_room_few_votes_leave(tmp_path: Path) -> None:
    config = resolve(arrays_file(tmp_path / "a.npz"))
    found = decide(config, [evidence(0.0, count=400)])
    assert found.estimate.high > 0.03 and found.least_clean == least_clean_for(found.estimate.firm) > 0.99
    before = {name: value for name, value in found.facts()["estimate"].items() if name != "firm_high"}
    assert NoiseDecision.from_facts(found.facts() | {"estimate": before}).estimate.firm == found.estimate.high, "an older run's"


@pytest.mark.parametrize(
    ("share", "epochs"), [(0.0, 20), (0.049, 20), (0.05, 30), (0.24, 30), (0.25, 50), (0.74, 50), (0.75, 70), (1.0, 70)]
)
def test_the_more_wrong_labels_the_more_epochs(share: float, epochs: int) -> None:
    assert mixed_epochs_for(share) == epochs


def test_ones_own_data_take_epochs_and_all_that_hangs_on_them_from_the_noise(tmp_path: Path) -> None:
    config = resolve(arrays_file(tmp_path / "a.npz"), settings=["training.warmup=4", "training.lr_drop=0.5"])
    assert config.training.epochs is None and left_open(config)
    few, many = (decide(config, [evidence(wrong)]) for wrong in (0.1, 0.4))
    assert (few.epochs, many.epochs) == (34, 54) and "34 epochs" in few.words()
    training, own = training_for(config, many.epochs), decided(config, many)
    assert (training.epochs, training.lr_drop_epoch, own.prototype_warmup, own.lambda_u) == (54, 27, 3, 0)
    given = override(config, {"training.epochs": 9, "training.lambda_u": 7})
    assert decide(given, [evidence(0.4)]).epochs == 9 and decided(given, decide(given, [evidence(0.4)])).lambda_u == 7


@pytest.mark.parametrize(
    ("share", "low", "classes", "expected"),
    [(0.56, 0.51, 10, 25), (0.56, 0.4, 10, 0), (0.81, 0.7, 10, 50), (0.3, 0.2, 100, 25), (0.5, 0.4, 100, 150)],
)
def test_noise_that_may_as_well_be_low_counts_as_low(share: float, low: float, classes: int, expected: float) -> None:
    assert lambda_by(NoiseEstimate(share, low, share + 0.05, (share,) * classes)) == expected


def test_clean_data_are_hardly_divided_and_given_settings_stay(tmp_path: Path) -> None:
    assert [least_clean_for(high) for high in (0.0, 0.05, 0.2, 0.5, 0.9)] == pytest.approx([1, 0.9, 0.6, 0, 0])
    config = resolve(arrays_file(tmp_path / "a.npz"))
    found = decide(config, [evidence(0.0)])
    assert found.least_clean > 0.95 and decided(config, found).least_clean == found.least_clean
    assert decide(override(config, {"cleaning.least_clean": 0.3}), [evidence(0.0)]).least_clean == 0.3


def test_labels_that_may_all_be_right_are_learnt_as_they_are_by_networks_that_lag_behind(tmp_path: Path) -> None:
    config = resolve(arrays_file(tmp_path / "a.npz"))
    poor = decide(config, [evidence(0.0, known=0.8)])
    assert not poor.mixed and not decided(config, poor).mixed and "plain epochs go on" in poor.words()
    # Nothing to catch up on; labels that are surely wrong; too few to tell what was learnt from what was learnt by heart.
    for other in (evidence(0.0), evidence(0.2, known=0.8), evidence(0.0, count=600, known=0.8)):
        found = decide(config, [other])
        assert found.mixed and decided(config, found).mixed and "plain" not in found.words()
    assert decided(config, poor).caught_up == poor.estimate.firm
    assert decided(override(config, {"training.mixed": False}), poor).caught_up < 0  # to the end
    told = override(config, {"training.mixed": True})
    assert decide(told, [evidence(0.0, known=0.8)]).mixed
    assert not decide(override(config, {"training.mixed": False}), [evidence(0.3)]).mixed


@pytest.mark.parametrize(("wrong", "extreme"), [(0.65, False), (0.9, True)])
def test_where_hardly_a_label_is_right_the_mixture_remembers_and_asks_for_more(
    tmp_path: Path, wrong: float, extreme: bool
) -> None:
    """Uniform over ten classes, the true one included: 59 and 81 % wrong, where the rule begins at 78 %."""
    seen = evidence(0.0, count=10_000, classes=10)
    drawn = torch.randint(10, (10_000,), generator=torch.Generator().manual_seed(1))
    seen = replace(seen, labels=torch.where(torch.arange(10_000) % 100 < 100 * wrong, drawn, seen.labels))
    config = resolve(arrays_file(tmp_path / "a.npz"))
    found = decide(config, [seen])
    assert (found.mixture_threshold, found.mixture_memory) == ((0.6, 5) if extreme else (0.5, 1))
    assert decided(config, found).mixture_threshold == found.mixture_threshold
    draws = decide(override(config, {"training.epoch_batches": 10}), [seen])
    assert (draws.mixture_threshold, draws.mixture_memory) == (found.mixture_threshold, 1)  # other samples' losses are no past
    given = decide(override(config, {"cleaning.mixture_threshold": 0.7, "cleaning.mixture_memory": 3}), [seen])
    assert (given.mixture_threshold, given.mixture_memory) == (0.7, 3)


def test_what_was_decided_is_said_without_the_rough_estimate() -> None:
    said = NoiseDecision(NoiseEstimate(0.3, 0.1, 0.35, (0.3, 0.3)), 25, 0.5, 1, 40, epochs=40).words()
    assert said == "the warm-up is over; the run takes 40 epochs"


def test_a_run_taken_up_goes_on_to_the_epochs_that_were_decided(tmp_path: Path) -> None:
    source = arrays_file(tmp_path / "a.npz", **pictures(48))
    run = start(tmp_path / "run", tiny_config(source, training__warmup=1, training__epochs="none", data__noise="none"))
    *_, last = each_epoch(run, stop=lambda: run.epoch >= 2)
    assert run.decision is not None
    assert last.epochs == run.decision.epochs == 1 + mixed_epochs_for(run.decision.estimate.share)
    again = resume(run.folder.path)
    assert again.config.training.epochs is None
    assert again.parts.method.training == run.parts.method.training and again.parts.method.c == run.parts.method.c
    assert again.parts.method.training.epochs == run.decision.epochs
