"""ELR+: a step against one written out in plain loops; memory, twins, ramps."""

import copy
import math

import pytest
import torch
from tiny_run import K, built, make, pictures

from labelsieve.methods.elr_plus import ElrPlus, elr_step, grown, regulariser, remembered, weighed

LR = torch.tensor(0.05)


def test_the_regulariser_by_hand() -> None:
    logits = torch.log(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]))
    held = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    expected = (math.log(1 - (0.35 + 0.1)) + math.log(1 - 0.1)) / 2
    assert float(regulariser(logits, held)) == pytest.approx(expected, rel=1e-5)
    assert torch.isfinite(regulariser(torch.tensor([[80.0, -80.0, -80.0]]), torch.tensor([[1.0, 0.0, 0.0]])))


@pytest.mark.parametrize("weighs", [True, False])
def test_two_steps_equal_the_slow_ones(weighs: bool) -> None:
    """Memory 0.7, pull 3, twins that keep 0.9; the batch's samples are 4, 9, ... of a table of 60."""
    net, peer, data = make(0, twin=True), make(1, twin=True), pictures()
    slow, slow_twin, own_twin = (copy.deepcopy(each) for each in (net.network, peer.twin.network, net.twin.network))  # type: ignore[union-attr]
    table, slow_table = torch.zeros(60, K), torch.zeros(60, K)
    velocity = [torch.zeros_like(weight) for weight in slow.parameters()]
    assert peer.twin is not None and net.twin is not None
    for module in (net.network, peer.twin.network, slow, slow_twin):
        module.train()
    for turn in range(2):
        generator = torch.Generator().manual_seed(turn)
        rows = torch.randperm(60, generator=generator)[:6]
        partner, share = torch.randperm(6, generator=generator), torch.tensor(0.8)
        inputs = data.images[rows], rows, data.labels[rows], partner, share
        terms = elr_step(net, peer.twin, table, 0.7, weighs, *inputs, torch.tensor(3.0), torch.tensor(0.9), LR)
        seen = (data.images[rows].float() / 255 - 0.5) / 0.25
        with torch.no_grad():
            said = slow_twin(seen)[0].softmax(1)
        labelled = regularised = torch.zeros(())
        for i in range(6):
            slow_table[rows[i]] = 0.7 * slow_table[rows[i]] + 0.3 * said[i]
        mixed = torch.stack([0.8 * seen[i] + 0.2 * seen[partner[i]] for i in range(6)])
        log_p = slow(mixed)[0].log_softmax(1)
        for i in range(6):
            j = int(partner[i])
            q = 0.8 * slow_table[rows[i]] + 0.2 * slow_table[rows[j]]
            y = torch.zeros(K)
            y[data.labels[rows[i]]] += 0.8
            y[data.labels[rows[j]]] += 0.2
            y = y * q / (y * q).sum() if weighs else y
            labelled = labelled - (y * log_p[i]).sum() / 6
            regularised = regularised + torch.log(1 - (q * log_p[i].exp().clamp(1e-4, 1 - 1e-4)).sum()) / 6
        gradients = torch.autograd.grad(labelled + 3 * regularised, list(slow.parameters()))
        with torch.no_grad():
            for weight, gradient, speed in zip(slow.parameters(), gradients, velocity):
                speed.copy_(0.9 * speed + gradient + 5e-4 * weight)
                weight -= 0.05 * speed
            for own, weight in zip(own_twin.parameters(), slow.parameters()):
                own.copy_(0.9 * own + 0.1 * weight)
        assert [float(value.detach()) for value in terms.values()] == pytest.approx(
            [float(labelled.detach()), float(regularised.detach())], rel=1e-4
        )
    torch.testing.assert_close(table, slow_table)
    for ours, theirs in ((net.network, slow), (net.twin.network, own_twin)):
        for one, other in zip(ours.parameters(), theirs.parameters()):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_labels_that_the_memory_does_not_know_stay() -> None:
    wanted, held = torch.tensor([[0.8, 0.2, 0.0], [0.0, 0.0, 1.0]]), torch.tensor([[0.1, 0.4, 0.5], [0.5, 0.5, 0.0]])
    assert weighed(wanted, held).tolist() == [pytest.approx([0.5, 0.5, 0]), [0, 0, 1]]


def test_the_ramp_grows_from_nearly_nothing_to_one() -> None:
    found = grown(torch.tensor([0, 5, 10, 11]), 10).tolist()
    assert found == pytest.approx([math.exp(-5), math.exp(-1.25), 1, 1])
    assert grown(torch.arange(2), 0).tolist() == [1, 1]


def test_of_samples_never_looked_at_the_network_speaks() -> None:
    table, probs = torch.tensor([[0.2, 0.2, 0.1], [0.0, 0.0, 0.0]]), torch.tensor([[1.0, 0, 0], [0.1, 0.3, 0.6]])
    assert remembered(table, probs).tolist() == [pytest.approx([0.4, 0.4, 0.2]), pytest.approx([0.1, 0.3, 0.6])]


def test_every_sample_is_remembered_by_what_the_other_networks_twin_says() -> None:
    run = built(ElrPlus, epochs=2)
    start = run.state()
    for _ in run.epochs():
        pass
    for r in (0, 1):
        sums = run.method.tables[f"memory{r}"].sum(1)
        assert bool((sums > 1 - 0.7**2 - 1e-4).all()), "looked at in both epochs"
        twin = run.nets[r].twin
        assert twin is not None and not torch.equal(twin.network.classifier.weight, start[f"{r}.twin.classifier.weight"])
        assert not torch.equal(twin.network.classifier.weight, run.nets[r].network.classifier.weight)


def test_it_finds_wrong_labels_by_its_memory() -> None:
    data = pictures(120)
    run = built(ElrPlus, ElrPlus.Config(twin_ramp_steps=100), data=data, epochs=14, lr_drop_epoch=10, lr=0.05)
    *_, last = run.epochs()
    assert last.verdict is not None and last.verdict.counts == "memory"
    true = torch.arange(120) % 3
    assert float((last.verdict.shares.argmax(1) == true).double().mean()) > 0.85
    right = data.labels == true
    assert float(((last.verdict.chance > 0.5) == right).double().mean()) > 0.85
