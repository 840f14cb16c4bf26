"""ELR+: steps as the published code's, with memory and twins; ramps; what the memory finds."""

import json
import math
from pathlib import Path

import pytest
import torch
from tiny_run import built, pictures
from waves import assert_alike, fill, pixels, traces, waves

from labelsieve.methods.elr_plus import ElrPlus, elr_step, grown, kept, regulariser, remembered, weighed
from labelsieve.methods.net import Net, scale
from labelsieve.nets.small import SmallNet

RECORDED = json.loads((Path(__file__).parent / "published" / "elr_plus.json").read_text())
LABELS = torch.tensor([0, 1, 2, 3, 1, 2, 3, 0, 1, 2, 0, 3])
ROWS = torch.tensor([[3, 7, 1, 12, 19, 0], [7, 2, 5, 3, 11, 18]])


def test_the_regulariser_by_hand() -> None:
    logits = torch.log(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]))
    held = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    expected = (math.log(1 - (0.35 + 0.1)) + math.log(1 - 0.1)) / 2
    assert float(regulariser(logits, held)) == pytest.approx(expected, rel=1e-5)
    assert torch.isfinite(regulariser(torch.tensor([[80.0, -80.0, -80.0]]), torch.tensor([[1.0, 0.0, 0.0]])))


@pytest.mark.parametrize("form", ["plain", "weighed"])
def test_two_steps_are_the_published_ones(form: str) -> None:
    """Also with mixed labels weighed by the memory, as theirs are with 100 classes. The second step meets two rows again."""
    recorded = RECORDED[form]
    net, peer = published_net(0.0), published_net(5.0)
    table, weights = torch.zeros(20, 4), net.optimiser.weights
    assert net.twin is not None and peer.twin is not None
    net.train()
    peer.twin.network.train()
    for step, (rows, share) in enumerate(zip(ROWS, (0.7, 0.8))):  # they drew 0.3, and take the larger part
        pull, keep = 3.0 * grown(torch.tensor([step + 1]), 10)[0], kept(torch.tensor([step + 2]), 0.9, 6)[0]
        terms = elr_step(
            net,
            peer.twin,
            table,
            0.7,
            form == "weighed",
            pixels(6, 3, 8, 8, phase=10.0 + step),
            rows,
            LABELS[6 * step : 6 * step + 6],
            waves(6, phase=50.0 + step).argsort(),
            torch.tensor(share),
            pull,
            keep,
            torch.tensor(0.02),
        )
        loss = terms["labelled"] + pull * terms["early_learning"]
        assert loss.item() == pytest.approx(recorded["losses"][step], abs=1e-5)
        assert_alike(traces([weight.grad for weight in weights if weight.grad is not None]), recorded["gradients"][step])
    assert_alike(traces(weights), recorded["weights"])
    assert_alike(traces(list(net.twin.network.parameters())), recorded["twin"])
    assert torch.allclose(table, torch.tensor(recorded["memory"]), atol=1e-5)
    assert_alike(traces([buffer.float() for buffer in net.network.buffers()]), recorded["running"])
    assert_alike(traces([buffer.float() for buffer in peer.twin.network.buffers()]), recorded["peer"])


def published_net(phase: float) -> Net:
    """With the weights and normalisation that the published code was run with, as its twin."""
    bodies = [SmallNet(3, 4, width=4) for _ in range(2)]
    for body in bodies:
        fill(body, phase)
    mean, std = (scale(values, 3, "cpu") for values in ((0.5, 0.45, 0.4), (0.25, 0.2, 0.3)))
    return Net(0, bodies[0], mean, std, twin=bodies[1])


def test_twins_slow_down_as_published() -> None:
    """Along a ramp on CIFAR; on the web sets they are the mean of all steps at first."""
    phase = built(ElrPlus, ElrPlus.Config(ramp_steps=100), epochs=2).method.phases(1, None)  # type: ignore[arg-type]
    tensors = next(iter(phase)).tensors
    assert tensors["keep"][0].item() == pytest.approx(0.997 * math.exp(-5 * (1 - (8 + 2) / 40_000) ** 2), rel=1e-5)
    assert tensors["pull"][-1].item() == pytest.approx(3 * math.exp(-5 * (1 - 16 / 100) ** 2), rel=1e-5)
    assert kept(torch.tensor([2, 3, 100]), 0.9, 0).tolist() == pytest.approx([0.5, 2 / 3, 0.9])


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
