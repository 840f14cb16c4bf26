"""Algorithm 1 on a tiny run: who learns from whom, in which order; a run taken up is the same run."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_run import Tiny, by, pictures, seen, tiny, verdict
from torch import Tensor

import labelsieve.methods
from labelsieve.config.schema import Config, override
from labelsieve.data.noisy_data import NoisyData, Truth
from labelsieve.methods import dividemix
from labelsieve.methods.contract import Phase
from labelsieve.methods.dividemix import Division, Judged
from labelsieve.methods.epochs import Diverged, Epoch, Trained, finite, learn
from labelsieve.runs.rows import rows_for
from labelsieve.train.build import parts_for


class Calls:
    """A log of what was called, in order."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int]] = []
        self.divisions: list[tuple[int, int, Division]] = []
        self.taught: list[tuple[int, Tensor]] = []


def spied(run: Tiny, monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls, real_mixed, real_evidence = Calls(), run.method.mixed, run.engine.evidence

    def mixed(net: Any, peer: Any, division: Division, *rest: Any) -> Phase:
        calls.log.append(("train", net.number))
        calls.divisions.append((net.number, peer.number, division))
        return real_mixed(net, peer, division, *rest)

    def evidence(net: Any, *rest: Any) -> Any:
        calls.log.append(("gather", net.number))
        return real_evidence(net, *rest)

    monkeypatch.setattr(run.method, "mixed", mixed)
    monkeypatch.setattr(run.engine, "evidence", evidence)
    for r, judge in enumerate(run.judges):
        if judge is not None:

            def learn(seen: Any, clean: Any = None, real: Any = judge.learn, number: int = r) -> None:
                calls.taught.append((number, clean.clone()))
                real(seen, clean)

            monkeypatch.setattr(judge, "learn", learn)
    return calls


def test_phases_come_in_order() -> None:
    epochs = list(tiny().epochs())
    assert [e.phase for e in epochs] == ["warm-up"] * 2 + ["mixture"] * 2 + ["prototypes"] * 2 + ["final"]
    assert [e.index for e in epochs] == [*range(7)]
    assert [len(e.trained) for e in epochs] == [2] * 6 + [0]
    assert all(by(e, "loss") and by(e, "prototype") and seen(e) for e in epochs[2:])


def test_without_prototypes_the_mixture_divides_to_the_end() -> None:
    epochs = list(tiny(prototypes=False).epochs())
    assert [e.phase for e in epochs] == ["warm-up"] * 2 + ["mixture"] * 4 + ["final"]
    assert all(by(e, "prototype") == () for e in epochs)


def test_plain_epochs_divide_for_the_record_and_train_as_the_warm_up_does() -> None:
    run, long = tiny(mixed=False), tiny(warmup=6)
    epochs, expected = list(run.epochs()), list(long.epochs())
    assert [e.phase for e in epochs] == ["warm-up"] * 2 + ["plain"] * 4 + ["final"]
    assert all(by(e, "loss") and by(e, "prototype") and seen(e) for e in epochs[2:])
    for epoch, other in zip(epochs[:6], expected[:6]):
        assert all(torch.equal(a.values, b.values) for a, b in zip(epoch.trained, other.trained))
    for one, other in zip(run.nets, long.nets):
        state, same = one.network.state_dict(), other.network.state_dict()
        assert all(torch.equal(value, same[name]) for name, value in state.items())


def test_networks_that_have_caught_up_go_on_mixed() -> None:
    run, long = tiny(mixed=False, caught_up=1.0), tiny()  # never more than all labels are contradicted
    epochs, expected = list(run.epochs()), list(long.epochs())
    assert [e.phase for e in epochs] == [e.phase for e in expected]
    for one, other in zip(run.nets, long.nets):
        state, same = one.network.state_dict(), other.network.state_dict()
        assert all(torch.equal(value, same[name]) for name, value in state.items())


def test_once_begun_mixing_goes_on_and_late_it_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contradictions of epochs 2 to 5; mixing may begin while half of the epochs at the full rate, 2 to 7, are ahead."""

    def phases(shares: list[float], start: int = 0, before: Tiny | None = None) -> tuple[list[str], Tiny]:
        run = tiny(lr_drop_epoch=8, mixed=False, caught_up=0.1)
        if before is not None:
            run.load(before.state())
        monkeypatch.setattr(dividemix, "contradicted", lambda judged: shares.pop(0))
        return [epoch.phase for epoch in run.epochs(start)][:-1], run

    mixed = ["mixture", "mixture", "prototypes"]
    begun, _ = phases([0.1])  # only asked until it has begun
    assert begun[2:] == ["mixture", "mixture", "prototypes", "prototypes"]
    assert phases([0.2, 0.1])[0][2:] == ["plain", *mixed[1:], "prototypes"]
    late, _ = phases([0.2, 0.2, 0.2])  # epoch 5 is too late
    assert late[2:] == ["plain"] * 4
    _, half = phases([0.1])
    assert phases([], start=4, before=half)[0] == ["prototypes", "prototypes"]  # a run taken up knows that it has begun


def test_told_to_be_plain_to_the_end_epochs_are_so_after_mixed_ones_too() -> None:
    """As in a branch that parts from a run which mixes."""
    run = tiny(mixed=False)
    run.method.has_mixed = True
    assert [epoch.phase for epoch in run.epochs()] == ["warm-up"] * 2 + ["plain"] * 4 + ["final"]


def test_prototypes_that_judge_first_and_begin_late_learn_before_their_first_division() -> None:
    """As in a branch that has prototypes of a run that had none."""
    run = tiny(judge_first=True)
    assert [len(by(epoch, "prototype")) for epoch in run.epochs(start=4)] == [2, 2, 2]


def test_of_draws_each_network_counts_its_own() -> None:
    """What one contradicts in its rows has nothing to do with what the other sees in others."""
    run = tiny()
    *_, last = run.epochs()
    one = seen(last)[0]
    right, wrong = (replace(one, probs=torch.eye(one.classes)[(one.labels + step) % one.classes]) for step in (0, 1))
    rows = (torch.arange(60), torch.arange(60))
    for share, mixes in ((0.5, True), (0.49, False)):
        run.method.settle(replace(run.method.c, mixed=False, caught_up=share))
        run.method.has_mixed = False
        assert run.method.mixes(2, Judged((right, wrong), {}, rows)) == mixes
        assert run.method.mixes(2, Judged((right, right), {}))


def test_prototypes_learn_from_the_peers_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ruling 1: X^GMM(r) is the peer's, also in the final division, and judged after learning."""
    run = tiny(mixture_threshold=0.4)
    calls = spied(run, monkeypatch)
    divided = [epoch for epoch in run.epochs() if epoch.verdict is not None]
    assert len(calls.taught) == 2 * len(divided) == 10
    differed = False
    for epoch, pair in zip(divided, zip(calls.taught[::2], calls.taught[1::2])):
        for number, clean in pair:
            assert torch.equal(clean, by(epoch, "loss")[1 - number] > 0.4)
            differed |= not torch.equal(clean, by(epoch, "loss")[number] > 0.4)
    assert differed  # or this test could not tell the peer's from the own


@pytest.mark.parametrize("prototypes", [True, False])
def test_each_network_trains_on_the_peers_division(prototypes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny(prototypes, tau=0.55, mixture_threshold=0.45)
    calls = spied(run, monkeypatch)
    trained = [epoch for epoch in run.epochs() if epoch.phase in ("mixture", "prototypes")]
    assert [pair[:2] for pair in calls.divisions] == [(0, 1), (1, 0)] * len(trained)
    for epoch, pair in zip(trained, zip(calls.divisions[::2], calls.divisions[1::2])):
        chances = by(epoch, "prototype" if epoch.phase == "prototypes" else "loss")
        threshold = 0.55 if epoch.phase == "prototypes" else 0.45
        for _, peer, division in pair:
            assert torch.equal(division.w, chances[peer])
            assert torch.equal(division.clean, chances[peer] > threshold)
        assert not torch.equal(chances[0], chances[1])


def test_both_divisions_are_made_before_either_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny()
    calls = spied(run, monkeypatch)
    list(run.epochs())
    one_epoch = [("gather", 0), ("gather", 1), ("train", 0), ("train", 1)]
    assert calls.log == one_epoch * 4 + one_epoch[:2]


def test_the_threshold_is_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny(tau=0.5)
    calls = spied(run, monkeypatch)
    chance = torch.tensor([0.5, 0.500001] * 30)
    for judge in run.judges:
        monkeypatch.setattr(judge, "judge", lambda seen: chance)
    list(run.epochs())
    assert calls.divisions[-1][2].clean.tolist() == [False, True] * 30


def test_evidence_is_gathered_before_training_in_eval_mode_and_plain() -> None:
    run = tiny()
    network = run.nets[0].network
    for epoch in run.epochs():
        if epoch.phase == "final":
            network.eval()
            data = pictures()
            with torch.no_grad():
                logits, v = network((data.images.float() / 255 - 0.5) / 0.25)
            losses = torch.nn.functional.cross_entropy(logits, data.labels, reduction="none")
            torch.testing.assert_close(seen(epoch)[0].losses, losses, rtol=0, atol=1e-5)
            torch.testing.assert_close(seen(epoch)[0].features, v, rtol=0, atol=1e-5)
            torch.testing.assert_close(seen(epoch)[0].probs, logits.softmax(1), rtol=0, atol=1e-5)


@pytest.mark.parametrize("chance", [0.0, 1.0], ids=["nothing clean", "everything clean"])
def test_an_empty_half_does_not_stop_a_run(chance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny()
    for cleaner in (*run.mixtures, *run.judges):
        monkeypatch.setattr(cleaner, "judge", lambda seen: torch.full((60,), chance))
    epochs = list(run.epochs())
    assert epochs[-1].phase == "final"
    steps = 1 if chance == 0 else 8  # the likeliest batch of 8, or ceil(60 / 8)
    assert [len(each.values) for each in epochs[4].trained] == [steps, steps]


def test_the_learning_rate_drops_for_prototypes_too() -> None:
    """By the same factor as the networks' rate."""
    run = tiny(lr=0.04)
    run.method.first_rates = [0.02, 0.02]
    found = [(epoch.phase, round(run.judges[0].lr, 6)) for epoch in run.epochs()]
    assert found[2:] == [("mixture", 0.02)] * 2 + [("prototypes", 0.002)] * 2 + [("final", 0.002)]
    assert [run.method.lr_at(epoch) for epoch in range(6)] == [0.04] * 4 + [0.004] * 2
    assert run.method.rates(3, 2).tolist() == pytest.approx([0.04, 0.04])


def assert_same_state(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


def test_the_same_seed_gives_the_same_weights_and_another_does_not() -> None:
    torch.manual_seed(1)
    first, second, third = tiny(), tiny(), tiny(seed=4)
    list(first.epochs())
    torch.manual_seed(2)  # nothing draws from the global generator
    before = torch.get_rng_state()
    list(second.epochs())
    list(third.epochs())
    assert torch.equal(before, torch.get_rng_state())
    assert_same_state(first.state(), second.state())
    name = "0.network.classifier.weight"
    assert not torch.equal(first.state()[name], third.state()[name])
    assert not torch.equal(first.state()[name], first.state()["1.network.classifier.weight"])


@pytest.mark.parametrize(
    ("memory", "changes"),
    [(1, {}), (3, {}), (1, {"prototype_teacher": "own"}), (3, {"judge_first": True}), (1, {"prototype_views": "weak"})],
)
def test_a_run_taken_up_at_any_epoch_is_the_unbroken_run(memory: int, changes: dict[str, Any]) -> None:
    whole = tiny(memory=memory, **changes)
    saved: dict[int, dict[str, Tensor]] = {0: whole.state()}
    last = None
    for epoch in whole.epochs():
        saved[epoch.index + 1] = whole.state()
        last = epoch
    assert last is not None
    for start in range(7):
        again = tiny(memory=memory, **changes)
        again.load(saved[start])
        final = list(again.epochs(start))[-1]
        assert_same_state(again.state(), saved[7])
        assert torch.equal(by(final, "prototype")[0], by(last, "prototype")[0]), start


@pytest.mark.parametrize("cleaner", ["cpc-awr", "contrastive"])
def test_other_true_labels_give_the_same_weights(cleaner: str) -> None:
    """Trap 5, held by doing: a run around other true labels trains and cleans alike, to the last bit."""
    settings = {
        "data.noise": "sym:0.4",
        "data.limit": 60,
        "cleaner": cleaner,
        "device": "cpu",
        "engine.threads": 1,
    }
    settings |= {
        "training.epochs": 3,
        "training.warmup": 1,
        "training.batch": 16,
        "training.warmup_batch": 16,
    }
    rows = rows_for(override(Config(), settings))
    assert rows.truth is not None
    moved = replace(rows, truth=Truth(rows.truth.labels.roll(1)))
    assert not torch.equal(rows.truth.labels, moved.truth.labels)  # type: ignore[union-attr]
    found = []
    for one in (rows, moved):
        parts = parts_for(override(Config(), settings), one)
        final = list(learn(parts.method, parts.engine))[-1]
        found.append(Tiny(parts.method, parts.engine).state() | {"q": by(final, "prototype")[0]})
    assert_same_state(found[0], found[1])


def spoil(run: Tiny, number: int) -> None:
    with torch.no_grad():
        run.nets[number].network.classifier.weight.fill_(float("inf"))  # type: ignore


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("after", [0, 3])
def test_a_loss_that_is_no_number_says_where(after: int, number: int) -> None:
    run = tiny()
    epochs = run.epochs()
    for _ in range(after):
        next(epochs)
    spoil(run, number)
    with pytest.raises(Diverged) as caught:
        next(epochs)
    # a peer without finite guesses spoils the first network's first step
    assert (caught.value.epoch, caught.value.step) == (after, 0)
    assert caught.value.network == (number if after == 0 else 0)
    assert f"epoch {after + 1}, step 1 of" in str(caught.value)


def test_diverged_names_the_first_bad_step() -> None:
    bad = torch.ones(5, 3)
    bad[3, 1] = float("nan")
    left = [Trained((number,), ("a", "b", "c"), values) for number, values in enumerate((torch.ones(5, 3), bad))]
    with pytest.raises(Diverged, match="network 2 is not finite at epoch 3, step 4 of 5") as caught:
        finite(left, 2)
    assert (caught.value.epoch, caught.value.network, caught.value.step) == (2, 1, 3)


def test_it_learns() -> None:
    """Fourteen epochs find most wrong labels of pictures whose kind is plain to see."""
    data = pictures(120)
    run = tiny(data=data, epochs=14, warmup=4, prototype_warmup=3, lr_drop_epoch=10, lambda_u=0.0)
    final = list(run.epochs())[-1]
    true = torch.arange(120) % 3
    q = verdict(final).chance
    assert float(((q > 0.5) == (data.labels == true)).double().mean()) > 0.9


def test_noisy_data_has_nowhere_to_keep_the_truth() -> None:
    assert set(NoisyData.__dataclass_fields__) == {"images", "labels", "ids", "classes", "looks"}
    assert not any("true" in name or "truth" in name for name in Epoch.__dataclass_fields__)


def test_nothing_that_trains_or_cleans_names_the_truth() -> None:
    """Trap 5, held by structure: no file names `Truth` or imports the measuring module."""
    package = Path(labelsieve.methods.__file__ or "").parent.parent
    for room in ("methods", "engine", "nets"):
        for path in (package / room).rglob("*.py"):
            if path.stem == "diagnostics":  # it measures, and nothing below imports it
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            named |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom):
                    named |= {alias.name for alias in node.names} | {(node.module or "").rpartition(".")[2]}
            assert not named & {"Truth", "truth", "Collection", "diagnostics"}, path
