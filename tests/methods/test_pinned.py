"""Labels that are surely right: always labelled, always with weight 1, and part of what the prototypes learn from."""

from typing import Any

import pytest
import torch
from tiny_run import by, pictures, tiny
from torch import Tensor

from labelsieve.methods.contract import Phase
from labelsieve.methods.dividemix import Division
from labelsieve.methods.parts.evidence import pin, taken

PINNED = torch.arange(60) % 7 == 0


def divided(
    monkeypatch: pytest.MonkeyPatch, pinned: Tensor | None, **changes: Any
) -> tuple[list[Division], list[Tensor], list[Any]]:
    """Every division that was trained on, every mask the prototypes learnt from, every epoch."""
    run = tiny(pinned=pinned, **changes)
    divisions: list[Division] = []
    taught: list[Tensor] = []
    real_mixed = run.method.mixed

    def mixed(net: Any, peer: Any, division: Division, *rest: Any) -> Phase:
        divisions.append(division)
        return real_mixed(net, peer, division, *rest)

    monkeypatch.setattr(run.method, "mixed", mixed)
    for judge in run.judges:

        def watched(seen: Any, clean: Any = None, real: Any = judge.learn) -> None:
            taught.append(clean.clone())
            real(seen, clean)

        monkeypatch.setattr(judge, "learn", watched)
    return divisions, taught, list(run.epochs())


@pytest.mark.parametrize("threshold", [0.5, 1.0])
def test_pinned_labels_are_always_clean_with_weight_one(monkeypatch: pytest.MonkeyPatch, threshold: float) -> None:
    divisions, taught, epochs = divided(monkeypatch, PINNED, tau=threshold, mixture_threshold=threshold)
    assert len(divisions) == 8 and len(taught) == 10
    for division in divisions:
        assert bool(division.clean[PINNED].all()) and bool((division.w[PINNED] == 1).all())
    assert all(bool(mask[PINNED].all()) for mask in taught)
    for epoch in epochs[2:]:
        assert all(bool((chance[PINNED] == 1).all()) for chance in (*by(epoch, "loss"), *by(epoch, "prototype")))
    if threshold == 1:  # nothing else can be clean, so the pinned ones are all that is labelled
        assert all(torch.equal(division.clean, PINNED) for division in divisions)


def test_pinned_rows_are_planned_as_labelled_only() -> None:
    run = tiny()
    division = Division(pin(torch.zeros(60), PINNED), taken(torch.zeros(60), 0.5, PINNED))
    plan = run.method.plan(run.nets[0], division, 3)
    assert set(plan.labelled.flatten().tolist()) == set(torch.nonzero(PINNED).flatten().tolist())
    assert not set(plan.unlabelled.flatten().tolist()) & set(plan.labelled.flatten().tolist())


def test_without_pins_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """None and an empty mask are the same run as before, bit for bit."""
    plain, empty = tiny(), tiny(pinned=torch.zeros(60, dtype=torch.bool))
    for run in (plain, empty):
        for _ in run.epochs():
            pass
    assert all(torch.equal(value, empty.state()[name]) for name, value in plain.state().items())


def test_some_of_the_pins_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would pass without a pin: some pinned labels would otherwise be taken for wrong."""
    labels = pictures().labels
    assert len(labels) == len(PINNED)
    divisions, _, _ = divided(monkeypatch, None)
    assert any(not bool(division.clean[PINNED].all()) for division in divisions)
