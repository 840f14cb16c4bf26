"""ProMix: steps and selection as the published code's; batches of which all or nothing is chosen; masks; what users meet."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_run import built, pictures, verdict
from torch import Tensor, nn
from waves import assert_alike, evidence_by_formula, fill, pixels, traces, waves

from labelsieve.methods.contract import Phase, Training
from labelsieve.methods.net import Net, scale
from labelsieve.methods.promix import Chosen, ProMix, grown, masked, pairs, promix_step, ranked_waves, smallest
from labelsieve.nets.small import SmallNet

RECORDED = json.loads((Path(__file__).parent / "published" / "promix.json").read_text())
B, K, WIDTH, SIDE = 8, 4, 4, 8
LABELS = torch.tensor([0, 1, 2, 3, 1, 2, 3, 0, 1, 2, 0, 3, 0, 1, 2, 3])
SHARES, AREAS = torch.tensor([[0.7, 0.6], [0.8, 0.9]]), torch.tensor([[0.3, 0.55], [0.8, 0.45]])
PRIORS = torch.tensor([[[0.3, 0.2, 0.4, 0.1], [0.1, 0.2, 0.3, 0.4]], [[0.25, 0.25, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1]]])
BY_LOSS = {"early": (([0, 2, 5], [1, 2, 4, 7]), ([0, 7], [0, 3, 5, 6])), "late": (([0, 2, 5], [1, 2, 4, 7]), ([0, 7], [0, 3, 5]))}


def published_nets() -> tuple[Net, Net]:
    """With the weights and normalisation that the published code was run with; the second are near the first."""
    mean, std = (scale(values, 3, "cpu") for values in ((0.5, 0.45, 0.4), (0.25, 0.2, 0.3)))
    nets = []
    for number in range(2):
        body, second = SmallNet(3, K, width=WIDTH), nn.Linear(4 * WIDTH, K)
        fill(body, 5.0 * number), fill(second, 5.0 * number + 2)
        nets.append(Net(number, body, mean, std, heads={"second": second}))
    with torch.no_grad():
        for one, other in zip(nets[0].optimiser.weights, nets[1].optimiser.weights):
            other.copy_(0.8 * one + 0.2 * other)
    return nets[0], nets[1]


def drawn(step: int) -> tuple[Tensor, Tensor]:
    """Numbers that order partners, and ranked pixels."""
    ranks = waves(4, SIDE**2, phase=70.0 + step).argsort(1).argsort(1) / SIDE**2
    return (waves(2, 4, B, phase=60.0 + step) + 1) / 2, ranks.view(2, 2, SIDE, SIDE)


def rows(mask: Tensor) -> list[int]:
    found: list[int] = torch.nonzero(mask).flatten().tolist()
    return found


@pytest.mark.parametrize("name", ["early", "late"])
def test_two_steps_are_the_published_ones(name: str) -> None:
    """Early, sure labels join those of small losses. Late, what both networks predict does, until half of the batch is chosen."""
    nets, priors, recorded = published_nets(), PRIORS.clone(), RECORDED[name]
    late = name == "late"
    c = ProMix.Config(tau=recorded["tau"], debias_rate=0.9, filled=0.5 if late else 0.9)
    weights = [weight for net in nets for weight in net.optimiser.weights]
    for step, by_loss in enumerate(BY_LOSS[name]):
        for net in nets:
            net.train()
        selected = torch.zeros(B, 2)
        for r in range(2):
            selected[list(by_loss[r]), r] = 1
        partners, ranks = drawn(step)
        terms = promix_step(
            *nets,
            priors,
            c,
            *(pixels(B, 3, SIDE, SIDE, phase=phase + step) for phase in (10, 20)),
            LABELS[step * B : (step + 1) * B],
            selected,
            partners,
            SHARES,
            weight=torch.tensor(1.0 if late else 0.5),
            unchosen=torch.tensor(0.0 if late else 0.1 * 25 / 100),
            guessing=torch.tensor(float(late)),
            lr=torch.tensor(0.02),
            areas=AREAS,
            masks=ranks,
        )
        expected = dict(zip(("cross_entropy", "strong", "mixed", "masked", "unchosen"), recorded["terms"][step]))
        assert {name: value.item() for name, value in terms.items()} == pytest.approx(expected, abs=1e-5)
        assert_alike(traces([weight.grad for weight in weights if weight.grad is not None]), recorded["gradients"][step])
        first, second, first_others, second_others = recorded["priors"][step]
        assert torch.allclose(priors, torch.tensor([[first, first_others], [second, second_others]]), atol=1e-5)
    assert_alike(traces(weights), recorded["weights"])
    # Not the variances: of a batch filled up with itself, the correction for its size is another.
    names = [name for net in nets for name, _ in net.network.named_buffers()]
    running = traces([buffer.float() for net in nets for buffer in net.network.buffers()])
    same = [at for at, name in enumerate(names) if not name.endswith("running_var")]
    assert_alike([running[at] for at in same], [recorded["running"][at] for at in same])


def test_late_steps_choose_what_neither_loss_nor_surety_would() -> None:
    """So the recorded steps tell the guesses, too."""
    assert 1 in RECORDED["late"]["chosen"][1][1] and 1 not in RECORDED["early"]["chosen"][1][1]


@pytest.mark.parametrize("recorded", RECORDED["selections"], ids=lambda each: f"rho{each['rho']}")
def test_small_losses_are_chosen_as_published(recorded: dict[str, Any]) -> None:
    seen = evidence_by_formula()
    assert rows(smallest(seen.losses, seen.labels, seen.classes, recorded["rho"])) == recorded["chosen"]


def test_a_small_class_gives_all_of_its_labels_and_a_large_one_its_share() -> None:
    labels = torch.tensor([0] * 7 + [1] * 2 + [2] * 3)
    losses = torch.tensor([7.0, 6, 5, 4, 3, 2, 1, 9, 8, 0.3, 0.1, 0.2])
    assert rows(smallest(losses, labels, 4, 0.9)) == [4, 5, 6, 7, 8, 9, 10, 11]  # ceil(0.9 * 12 / 4) = 3 of each
    assert rows(smallest(losses, labels, 4, 0.01)) == [6, 8, 10]


def step_on(selected: Tensor, **changes: Any) -> tuple[dict[str, Tensor], Tensor, tuple[Net, Net]]:
    nets, priors = published_nets(), PRIORS.clone()
    for net in nets:
        net.train()
    partners, ranks = drawn(0)
    known = {"areas": AREAS, "masks": ranks, "guessing": torch.tensor(0.0)} | changes
    terms = promix_step(
        *nets,
        priors,
        ProMix.Config(tau=1.0),
        *(pixels(B, 3, SIDE, SIDE, phase=phase) for phase in (10, 20)),
        LABELS[:B],
        selected,
        partners,
        SHARES,
        weight=torch.tensor(1.0),
        unchosen=torch.tensor(0.1),
        lr=torch.tensor(0.02),
        **known,
    )
    return dict(terms), priors, nets


@pytest.mark.parametrize("all_chosen", [True, False])
def test_a_batch_of_which_all_or_nothing_is_chosen_does_without_the_other_terms(all_chosen: bool) -> None:
    """Published, the mean over nothing: losses and pi are NaN from then on."""
    terms, priors, nets = step_on(torch.full((B, 2), float(all_chosen)))
    missing = ["unchosen"] if all_chosen else ["cross_entropy", "strong", "mixed", "masked"]
    assert all((value == 0) == (name in missing) for name, value in terms.items())
    stays = 1 if all_chosen else 0
    assert torch.equal(priors[:, stays], PRIORS[:, stays]) and not torch.equal(priors[:, 1 - stays], PRIORS[:, 1 - stays])
    assert all(bool(torch.isfinite(tensor).all()) for net in nets for tensor in net.tensors())


def test_chosen_pictures_meet_chosen_pictures_only() -> None:
    used = torch.tensor([0.0, 1, 1, 0, 1, 0, 0, 0])
    first, second = pairs(used, torch.tensor([0.1, 0.9, 0.2, 0.3, 0.5, 0.0, 0.7, 0.8]))
    assert first.tolist() == [1, 2, 4, 1, 2, 4, 1, 2] and second.tolist() == [2, 4, 1, 2, 4, 1, 2, 4]
    first, second = pairs(torch.zeros(4), torch.tensor([0.4, 0.3, 0.2, 0.1]))
    assert first.tolist() == [0, 1, 2, 3] and second.tolist() == [3, 2, 1, 0]


def test_masks_are_blobs_of_the_area_that_is_asked_for() -> None:
    ranks = ranked_waves(50, torch.Generator().manual_seed(0))
    for area in (0.0, 0.25, 0.6, 1.0):
        mask = ranks < area
        assert torch.equal(mask.flatten(1).sum(1), torch.full((50,), -(-area * 1024 // 1)).long())
    mask = ranks < 0.5
    edges = (mask[:, 1:] != mask[:, :-1]).float().mean() + (mask[:, :, 1:] != mask[:, :, :-1]).float().mean()
    assert edges < 0.25  # of pixels that are drawn one by one, half differ from each neighbour: 1
    assert len({tuple(each.flatten().tolist()) for each in mask}) == 50


@pytest.mark.parametrize("size", [8, 32, 40])
def test_a_masked_picture_has_every_pixel_of_one_or_the_other(size: int) -> None:
    net, _ = published_nets()
    seen: list[Tensor] = []
    net.see = lambda network, pictures, *_: (seen.append(pictures), (torch.zeros(2, K), torch.zeros(2, 4 * WIDTH)))[1]  # type: ignore[func-returns-value]
    black_and_white = torch.stack((torch.zeros(3, size, size), torch.full((3, size, size), 200.0))).to(torch.uint8)
    its = Chosen(torch.tensor([0, 1]), torch.ones(2))
    ranks = ranked_waves(1, torch.Generator().manual_seed(1))[0]
    masked(net, 0, black_and_white, its, torch.tensor([0.9, 0.1]), torch.tensor(0.4), ranks, torch.zeros(K))
    assert set(seen[0].unique().tolist()) == {0, 200}
    assert float((seen[0][0] == 0).float().mean()) == pytest.approx(0.4, abs=0.1)
    assert torch.equal(seen[0][0].float() + seen[0][1].float(), torch.full((3, size, size), 200.0))


def phase_at(method: ProMix, epoch: int) -> Phase:
    return method.training_on(torch.ones(60, 2, dtype=torch.bool), epoch)


def test_weights_grow_and_guesses_begin_as_published() -> None:
    """600 epochs: weights grow for 50, what is not chosen for 100 and counts no more after it, guesses come after 350."""
    method = built(ProMix, epochs=600).method
    expected = {0: (0.0, 0.0, 0), 25: (0.5, 0.025, 0), 50: (1, 0.05, 0), 99: (1, 0.099, 0), 100: (1, 0, 0), 350: (1, 0, 0),
                351: (1, 0, 1), 599: (1, 0, 1)}  # fmt: skip
    for epoch, (weight, unchosen, guessing) in expected.items():
        tensors = phase_at(method, epoch).tensors
        found = [float(tensors[name][0]) for name in ("weight", "unchosen", "guessing")]
        assert found == pytest.approx([weight, unchosen, guessing], abs=1e-6), epoch
    assert grown(0, 0) == 1.0


def test_the_rate_is_the_published_one() -> None:
    settings = ProMix.cells["cifar10-sym50"].settings
    method = built(ProMix, epochs=600).method
    method.training = Training(600, lr=settings["training.lr"], schedule="cosine",
                               lr_drop_factor=settings["training.lr_drop_factor"])  # fmt: skip
    least = 0.05 * 0.1**3
    for epoch in (0, 1, 300, 599):
        theirs = least + (0.05 - least) * (1 + torch.cos(torch.tensor(torch.pi * epoch / 600)).item()) / 2
        assert method.rates(epoch, 3).tolist() == pytest.approx([theirs] * 3, rel=1e-5)


def test_wrong_labels_come_first() -> None:
    """On three kinds of picture with a third of the labels wrong, a few epochs tell most of them."""
    data = pictures(240)
    run = built(ProMix, data=data, epochs=8, lr=0.05, batch=16)
    epochs = list(run.epochs())
    assert [each.phase for each in epochs[:3]] == ["warm-up", "chosen", "chosen"]
    last, true = verdict(epochs[-1]), torch.arange(240) % 3
    wrong = data.labels != true
    doubted = last.chance.argsort()[: int(wrong.sum())]
    assert wrong[doubted].float().mean() > 0.9
    assert (last.shares.argmax(1)[wrong] == true[wrong]).float().mean() > 0.9


def test_common_classes_are_held_back_in_what_is_suggested() -> None:
    run = built(ProMix)
    seen = tuple(run.engine.evidence(net) for net in run.nets)
    before = run.method.said(seen).shares[:, 0].mean()
    run.method.priors[:, 0] = torch.tensor([0.8, 0.1, 0.1])
    assert run.method.said(seen).shares[:, 0].mean() < before
