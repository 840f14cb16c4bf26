"""What `bench` calls an epoch is what training does in one, and its ceiling leaves no trace."""

import pytest
import torch

from engine.kernel_list import graphs_on_a_cpu
from labelsieve.benchmark import speed
from labelsieve.benchmark.speed import Clock, ceiling, epoch, made_rows
from labelsieve.config.presets import cifar10_sym
from labelsieve.config.schema import Config, override
from labelsieve.engine.fast import FastEngine, Speed
from labelsieve.methods.dividemix import Division
from labelsieve.runs.rows import Rows
from labelsieve.train.build import Parts, parts_for

SMALL = {"device": "cpu", "network": "small", "training.batch": 4, "training.warmup_batch": 4, "engine.threads": 1}


def parts_of(rows: Rows, **changes: object) -> Parts:
    """`__` stands for the dot: views__crop=6."""
    said = {key.replace("__", "."): value for key, value in changes.items()}
    return parts_for(override(Config(), cifar10_sym(0.5) | SMALL | said), rows)


def test_an_epoch_waits_for_the_division_that_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As training does: the host plans the first steps only then, and that time belongs to the epoch."""
    order: list[str] = []
    parts, trained = parts_of(made_rows(16, 2, (3, 8, 8))), speed.run
    found = parts.method.divided
    monkeypatch.setattr(parts.method, "divided", lambda *args: (order.append("divided"), found(*args))[1])
    monkeypatch.setattr(speed, "run", lambda *args: (order.append("trained"), trained(*args))[1])
    epoch(parts, Division(torch.ones(16), torch.arange(16) < 8))
    assert order == ["divided", "trained", "trained"]


def test_the_ceiling_is_captured_where_steps_are_and_leaves_weights_and_engine_as_they_were() -> None:
    rows = made_rows(16, 2, (3, 8, 8))
    parts = parts_of(rows)
    engine = FastEngine(rows.data, parts.engine.views, "cpu", 8, Speed(capture=True))
    parts = Parts(parts.method, engine)
    net = parts.method.nets[0]
    before = [tensor.detach().clone() for tensor in net.tensors()]
    with graphs_on_a_cpu() as current:
        rates = ceiling(parts, rows, Clock(engine.device), repeats=1)
    assert len(current) == 2 and min(rates.values()) > 0, "a step that trains and one that looks were recorded"
    assert all(torch.equal(now, then) for now, then in zip(net.tensors(), before))
    assert not engine._recorded, "their memory goes with them"


def test_the_ceiling_is_that_of_what_networks_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crops, where views are such: of whole pictures, less would be done in a second, and an epoch seem faster than the limit."""
    rows = made_rows(24, 2, (3, 8, 8))
    parts = parts_of(rows, views__crop=6)
    shapes: list[tuple[int, ...]] = []
    see = parts.method.nets[0].see
    monkeypatch.setattr(
        parts.method.nets[0], "see", lambda network, x, *scale: (shapes.append(tuple(x.shape)), see(network, x, *scale))[1]
    )
    ceiling(parts, rows, Clock(parts.engine.device), repeats=1)
    assert set(shapes) == {(16, 3, 6, 6), (24, 3, 6, 6)}


@pytest.mark.parametrize(("method", "strong"), [("cpc", 2), ("dividemix", 0)])
def test_only_views_that_an_epoch_makes_are_timed(method: str, strong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = parts_of(made_rows(24, 2, (3, 8, 8)), method=method)
    made: list[str] = []
    for kind in ("weak", "strong"):
        monkeypatch.setattr(parts.engine, kind, lambda rows, generator, kind=kind: made.append(kind))
    speed._views(parts, 8)
    assert (made.count("weak"), made.count("strong")) == (2, strong)
