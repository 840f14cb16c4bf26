"""LongReMix: a step as the published code's, labels that stay clean, new networks half-way, and long epochs after it."""

import json
from pathlib import Path

import pytest
import torch
from tiny_run import Tiny, built, pictures, verdict
from waves import fill, pixels, traces, waves

from labelsieve.errors import UsageError
from labelsieve.methods.contract import Training
from labelsieve.methods.dividemix import mixed_step
from labelsieve.methods.longremix import LASTING, LongReMix
from labelsieve.methods.net import Net, scale
from labelsieve.methods.parts.streams import RandomBatches
from labelsieve.nets.small import SmallNet

RECORDED = json.loads((Path(__file__).parent / "published" / "longremix.json").read_text())
B, K = 4, 4


def run(**lengths: int) -> Tiny:
    return built(LongReMix, LongReMix.Config(warmup=2, ramp_epochs=2), **{"epochs": 20, **lengths})


def published_net(number: int, phase: float) -> Net:
    body = SmallNet(3, K, width=4)
    fill(body, phase)
    mean, std = (scale(values, 3, "cpu") for values in ((0.5, 0.45, 0.4), (0.25, 0.2, 0.3)))
    return Net(number, body, mean, std)


def test_two_steps_are_the_published_ones() -> None:
    """Two steps on one labelled and one unlabelled batch, which their second stage repeats."""
    net, peer = published_net(0, 0.0), published_net(1, 5.0)
    config = LongReMix.Config(guess_passes=4, temperature=0.5)
    prior = torch.full((K,), 1 / K)
    for step, share in enumerate((0.7, 0.8)):
        net.train()
        peer.network.eval()
        labelled, unlabelled, lambda_u = RECORDED["terms"][step]
        terms = mixed_step(
            net,
            peer,
            config,
            prior,
            torch.cat([pixels(B, 3, 8, 8, phase=phase) for phase in (10.0, 11.0, 12.0, 13.0)]),
            torch.arange(4),
            torch.tensor([1.0, 0.6, 0.9, 0.75]),
            waves(4 * B, phase=50.0 + step).argsort(),
            torch.tensor(share),
            torch.tensor(lambda_u),
            torch.tensor(0.02),
        )
        assert terms["labelled"].item() == pytest.approx(labelled, abs=1e-5)
        assert terms["unlabelled"].item() == pytest.approx(unlabelled, abs=1e-5)
        found = traces([weight.grad for weight in net.optimiser.weights if weight.grad is not None])
        assert torch.allclose(torch.tensor(found), torch.tensor(RECORDED["gradients"][step]), rtol=1e-5, atol=1e-5)
    assert torch.allclose(torch.tensor(traces(net.optimiser.weights)), torch.tensor(RECORDED["weights"]), atol=1e-5)


def test_a_label_is_of_high_confidence_once_it_was_clean_in_five_epochs_running() -> None:
    """Against every past epoch looked through, as they do it; and H is the largest such set, of equal ones the last."""
    method = run(epochs=60).method
    clean = waves(12, 60, 2, phase=0.4) > -0.75
    sets = []
    for epoch in range(12):
        method.remember(clean[epoch], epoch)
        past = clean[max(0, epoch - LASTING + 1) : epoch + 1]
        steady = past.all(0) if len(past) == LASTING else torch.zeros(60, 2, dtype=torch.bool)
        assert torch.equal(method.tables["streak"] >= LASTING, steady)
        sets.append(steady[:, 0])
    assert method.tables["core"].sum() == 0  # their choice is among the later half of the first run's epochs
    for epoch in range(12, 30):
        method.remember(clean[epoch % 12], epoch)
        sets.append(method.tables["streak"][:, 0] >= LASTING)
    counts = [int(each.sum()) for each in sets[15:30]]
    largest = max(range(15), key=lambda i: (counts[i], i))
    assert counts[largest] > 0 and torch.equal(method.tables["core"], sets[15 + largest])


def test_the_second_half_starts_from_the_first_weights_and_sees_the_whole_set() -> None:
    whole = run()
    first = {k: v.clone() for net in whole.nets for k, v in net.network.state_dict().items()}
    epochs = []
    for epoch in whole.epochs():
        epochs.append(epoch)
        if epoch.index == 9:
            assert not whole.method.again and whole.method.tables["core"].any()
            (phase, *_) = whole.method.phases(10, whole.engine)
            assert whole.method.again and phase.name == "warm-up"
            assert all(torch.equal(v, first[k]) for k, v in whole.nets[1].network.state_dict().items())
            assert all(not momentum.any() for net in whole.nets for momentum in net.optimiser.momenta)
            break
    assert [each.phase for each in epochs] == ["warm-up"] * 2 + ["mixture"] * 8
    rest = list(whole.epochs(11))
    assert [each.phase for each in rest] == ["warm-up"] + ["mixture"] * 8 + ["final"]
    assert all(len(trained.values) == 60 // 8 + 1 for each in rest[1:-1] for trained in each.trained)


def test_labels_of_high_confidence_are_clean_in_the_second_half() -> None:
    whole = run()
    *_, last = whole.epochs()
    core = whole.method.tables["core"]
    assert core.any() and (verdict(last).chance[core] == 1).all()


def test_rate_drops_half_way_through_the_second_half_alone() -> None:
    method = run().method
    method.training = Training(600, lr=0.02, lr_drop_epoch=300)
    assert [method.lr_at(epoch) for epoch in (0, 150, 299, 300, 449)] == [0.02] * 5
    assert method.lr_at(450) == method.lr_at(599) == pytest.approx(0.002)


def test_epochs_that_see_some_rows_are_refused() -> None:
    with pytest.raises(UsageError, match=r"training\.epoch_batches=0, or --method dividemix"):
        run(sampler=RandomBatches(3))  # type: ignore[arg-type]


def test_wrong_labels_come_first() -> None:
    data = pictures(120)
    whole = built(LongReMix, LongReMix.Config(warmup=2, ramp_epochs=2, lambda_u=0.0), data, epochs=16, lr=0.05)
    *_, last = whole.epochs()
    wrong = data.labels != torch.arange(120) % 3
    assert wrong[verdict(last).chance.argsort()[: int(wrong.sum())]].float().mean() > 0.8
