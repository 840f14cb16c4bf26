"""Sieve: its mixtures by hand, its step against a plain loop, and that its slow twin judges and becomes the model."""

import pytest
import torch
import torch.nn.functional as F
from tiny_run import built, pictures, verdict
from waves import pixels

from labelsieve.methods.parts.streams import seeded
from labelsieve.methods.sieve import Sieve, boxes, mixed, sieve_step, within
from labelsieve.results.outcome import model_tensors

B, K = 4, 3
LABELS = torch.tensor([0, 2, 1, 0])
PARTNER = torch.tensor([5, 0, 7, 2, 1, 3, 6, 4])


def test_first_half_is_blended_and_the_second_gets_a_box() -> None:
    views = pixels(2 * B, 3, 8, 8)
    box = torch.tensor([0.25, 0.75, 0.0, 0.5])  # rows 2 to 5, columns 0 to 3: a quarter of the picture
    made, wanted = mixed(views, LABELS, PARTNER, torch.tensor(0.7), box, K, True)
    assert torch.allclose(made[1], 0.7 * views[1].float() + 0.3 * views[0].float())
    expected = views[6].float()
    assert torch.equal(made[6], expected)  # its partner is itself
    expected = views[4].float()
    expected[:, 2:6, :4] = views[1].float()[:, 2:6, :4]
    assert torch.equal(made[4], expected)
    assert torch.allclose(wanted[1], torch.tensor([0.3, 0.0, 0.7]))  # label 2, blended with label 0
    assert torch.allclose(wanted[4], torch.tensor([0.75, 0.0, 0.25]))  # label 0, a quarter of label 2


def test_without_boxes_all_are_blended() -> None:
    views = pixels(2 * B, 3, 8, 8)
    made, wanted = mixed(views, LABELS, PARTNER, torch.tensor(0.6), torch.rand(4), K, False)
    assert torch.allclose(made, 0.6 * views.float() + 0.4 * views[PARTNER].float())
    one_hot = F.one_hot(LABELS, K).float().repeat(2, 1)
    assert torch.allclose(wanted, 0.6 * one_hot + 0.4 * one_hot[PARTNER])


def test_pixels_are_inside_by_their_middle() -> None:
    assert within(torch.tensor(0.25), torch.tensor(0.7), 4).tolist() == [False, True, True, False]
    assert not within(torch.tensor(0.5), torch.tensor(0.5), 4).any()


def test_boxes_have_any_area_and_stay_inside() -> None:
    found = boxes(20_000, seeded(0, 1))
    assert found.amin() >= 0 and found.amax() <= 1
    inner = found[(found > 0).all(1) & (found < 1).all(1)]  # nothing of them was cut off
    assert torch.allclose(inner[:, 1] - inner[:, 0], inner[:, 3] - inner[:, 2], atol=1e-5)  # as wide as high
    # A box of side s at a place drawn evenly stays within the picture with chance (1 - s)^2, where s^2 is drawn evenly.
    assert len(inner) / len(found) == pytest.approx(1 / 6, abs=0.01)


def test_a_step_is_that_of_a_plain_loop() -> None:
    """Loss terms, weights and twin after one step, beside what torch's own functions and optimiser make of the same."""
    method, other = (built(Sieve).method for _ in range(2))
    net, plain = method.nets[0], other.nets[0]
    config = Sieve.Config(sure=0.4, guesses=0.5, consistency=2.0)
    strong, weak, varied = (pixels(n, 3, 8, 8, phase=float(n + i)) for i, n in enumerate((2 * B, B, B)))
    share, box, keep, lr = torch.tensor(0.8), torch.tensor([0.1, 0.6, 0.2, 0.9]), torch.tensor(0.9), torch.tensor(0.02)
    for each in (net, plain):
        each.train()
        each.twin.network.train()
        each.twin.heads.train()
    terms = sieve_step(net, net.twin, K, config, True, strong, weak, varied, LABELS, PARTNER, share, box, keep, lr)

    weights = [*plain.network.parameters(), *plain.heads.parameters()]
    start = [weight.detach().clone() for weight in weights]
    descent = torch.optim.SGD(weights, lr=0.02, momentum=0.9, weight_decay=5e-4)
    seen = lambda eye, x: eye.network((x.float() - eye.mean) / eye.std)  # noqa: E731
    with torch.no_grad():
        said, v = seen(plain.twin, weak)
        aim, shares = plain.twin.heads["projector"](v), said.softmax(1)
    made, wanted = mixed(strong, LABELS, PARTNER, share, box, K, True)
    logits, v = seen(plain, torch.cat((made, varied.float())))
    labelled = F.cross_entropy(logits[: 2 * B], wanted)
    logits, v = logits[2 * B :], v[2 * B :]
    ahead = plain.heads["predictor"](plain.heads["projector"](v))
    consistency = -sum(F.cosine_similarity(a, b, dim=0) for a, b in zip(ahead, aim)) / B
    sure = [i for i in range(B) if shares[i].max() > 0.4]
    assert sure
    guessed = sum(F.cross_entropy(logits[i : i + 1], shares[i : i + 1].argmax(1)) for i in sure) / B
    (labelled + 2 * consistency + 0.5 * guessed).backward()
    descent.step()

    expected = [value.item() for value in (labelled, consistency, guessed)]
    assert [value.item() for value in terms.values()] == pytest.approx(expected, abs=1e-5)
    moved = zip(net.optimiser.weights, weights, strict=True)
    assert all(torch.allclose(ours, theirs, atol=1e-6) for ours, theirs in moved)
    twins = [*net.twin.network.parameters(), *net.twin.heads.parameters()]
    followed = [0.9 * before + 0.1 * now for before, now in zip(start, weights)]
    assert all(torch.allclose(ours, theirs, atol=1e-6) for ours, theirs in zip(twins, followed, strict=True))


def test_the_twin_becomes_the_model() -> None:
    run = built(Sieve)
    for _ in run.epochs():
        pass
    net = run.nets[0]
    kept = model_tensors(run.method)
    twin = {f"0.network.{name}": value for name, value in net.twin.network.state_dict().items()}
    assert kept.keys() == twin.keys() and all(torch.equal(value, twin[name]) for name, value in kept.items())
    assert not torch.equal(kept["0.network.classifier.weight"], net.network.classifier.weight)


@pytest.mark.parametrize(("classes", "asked", "used"), [(10, 0.0, 0.9), (49, 0.0, 0.9), (100, 0.0, 0.8), (100, 0.95, 0.95)])
def test_what_relabels_follows_the_number_of_classes(classes: int, asked: float, used: float) -> None:
    method = built(Sieve, Sieve.Config(theta_r=asked)).method
    object.__setattr__(method.facts, "names", tuple(map(str, range(classes))))
    assert method.theta_r == used


def test_the_twin_slows_down_to_what_is_asked() -> None:
    run = built(Sieve, Sieve.Config(twin=0.95))
    keeps = [torch.cat([phase.tensors["keep"] for phase in run.method.phases(epoch, run.engine) if hasattr(phase, "tensors")])
             for epoch in (0, 40)]  # fmt: skip
    assert keeps[0][0] == pytest.approx(0.1) and keeps[0].diff().min() > 0
    assert keeps[1].tolist() == pytest.approx([0.95] * len(keeps[1]))


def test_wrong_labels_come_first() -> None:
    """On three kinds of picture with a third of the labels wrong, a few epochs tell most of them."""
    data = pictures(240)
    run = built(Sieve, data=data, epochs=10, lr=0.05)
    last = verdict(list(run.epochs())[-1])
    wrong = data.labels != torch.arange(240) % 3
    doubted = last.chance.argsort()[: int(wrong.sum())]
    assert wrong[doubted].float().mean() > 0.9
    assert (last.shares.argmax(1)[wrong] == (torch.arange(240) % 3)[wrong]).float().mean() > 0.9
