"""What every method promises, whatever it does: one list of checks over all of them."""

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from kernel_list import graphs_on_a_cpu
from tiny_run import Tiny, built, pictures
from torch import Tensor

from labelsieve.data.augment.strong import views_for
from labelsieve.data.augment.vectors import vector_views
from labelsieve.data.noisy_data import NoisyData, Truth
from labelsieve.engine.fast import FastEngine, Speed
from labelsieve.engine.plain import PlainEngine
from labelsieve.errors import UsageError
from labelsieve.methods.contract import Facts, Phase, Verdict
from labelsieve.methods.epochs import Epoch
from labelsieve.methods.net import Net, scale
from labelsieve.methods.registry import METHODS
from labelsieve.nets.small import Mlp

EVERY = sorted(METHODS)
EPOCHS = 4


def tiny(name: str, data: NoisyData | None = None, **lengths: Any) -> Tiny:
    """The method with a short warm-up, if it has one."""
    kind = METHODS[name]
    known = {field.name for field in fields(kind.Config)}
    short = {key: value for key, value in {"warmup": 1, "prototype_warmup": 1}.items() if key in known}
    return built(kind, kind.Config(**short), data, **{"epochs": EPOCHS, "lr_drop_epoch": 3} | lengths)


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


def trained(run: Tiny, start: int = 0) -> list[Epoch]:
    return list(run.epochs(start))


@pytest.mark.parametrize("name", EVERY)
def test_it_is_the_same_by_seed(name: str) -> None:
    torch.manual_seed(1)
    first, second, other = tiny(name), tiny(name), tiny(name, seed=4)
    trained(first)
    torch.manual_seed(2)  # nothing draws from the global generator
    before = torch.get_rng_state()
    trained(second)
    trained(other)
    assert torch.equal(before, torch.get_rng_state())
    assert same(first.state(), second.state()) and not same(first.state(), other.state())


@pytest.mark.parametrize("name", EVERY)
def test_it_goes_on_after_any_epoch_as_if_it_had_not_stopped(name: str) -> None:
    whole = tiny(name)
    saved = [whole.state()]
    for _ in whole.epochs():
        saved.append(whole.state())
    for start in range(EPOCHS + 1):
        again = tiny(name)
        again.load(saved[start])
        *_, last = again.epochs(start)
        assert last.phase == "final" and same(again.state(), saved[-1]), start


@pytest.mark.parametrize("name", EVERY)
def test_recorded_steps_are_the_plain_ones(name: str) -> None:
    """Also under a learning rate that changes every step, for which nothing is recorded anew."""
    data = pictures()
    plain, recorded = (tiny(name, data, schedule="cosine") for _ in range(2))
    recorded.engine = FastEngine(data, views_for(data.shape, True), "cpu", 512, Speed(capture=True))
    recorded.engine.adopt(recorded.method)
    with graphs_on_a_cpu():
        epochs = recorded.epochs()
        kept = [[id(step) for _, step in recorded.engine._recorded.values()] for _ in epochs]
    trained(plain)
    assert same(plain.state(), recorded.state())
    assert kept[-1] == kept[-2] and kept[-1]


@pytest.mark.parametrize("name", EVERY)
def test_steps_have_one_shape_and_named_terms(name: str) -> None:
    run = tiny(name)
    shapes: dict[tuple[object, ...], set[object]] = {}
    prepare = run.engine.prepare

    def prepared(phase: Phase) -> Any:
        step = prepare(phase)
        assert phase.name and phase.steps > 0 and all(len(tensor) == phase.steps for tensor in phase.tensors.values())

        def called(*inputs: Tensor) -> Tensor:
            key = (phase.step.__name__, *(net.number for net in phase.nets))
            shapes.setdefault(key, set()).add(tuple(tuple(value.shape) for value in inputs))
            found: Tensor = step(*inputs)
            assert len(step.terms) == len(found) and all(step.terms)
            called.terms = step.terms  # type: ignore[attr-defined]
            return found

        return called

    run.engine.prepare = prepared  # type: ignore[method-assign]
    epochs = trained(run)
    assert shapes and all(len(seen) == 1 for seen in shapes.values())
    assert all(bool(torch.isfinite(each.values).all()) for epoch in epochs for each in epoch.trained)
    assert all(len(each.terms) == each.values.shape[1] for epoch in epochs for each in epoch.trained)


def checked(verdict: Verdict, run: Tiny) -> None:
    """A chance for every sample and net, by every opinion, and shares of all classes."""
    count, classes = len(run.engine.labels), run.method.facts.classes
    assert len(verdict.seen) == len(verdict.clean) == len(run.nets) and verdict.opinions.keys() == verdict.thresholds.keys()
    for chances in verdict.opinions.values():
        assert [tuple(each.shape) for each in chances] == [(count,)] * len(run.nets)
        assert all(bool(((each >= 0) & (each <= 1)).all()) for each in chances)
    assert verdict.chance.shape == (count,) and verdict.shares.shape == (count, classes)
    assert torch.allclose(verdict.shares.sum(1), torch.ones(count), atol=1e-4)
    assert verdict.beliefs and all(belief.shape == (count,) for belief in verdict.beliefs)
    assert verdict.rows == ()


@pytest.mark.parametrize("name", EVERY)
def test_there_is_a_verdict_on_every_sample(name: str) -> None:
    run = tiny(name)
    *_, last = run.epochs()
    assert last.verdict is not None
    checked(last.verdict, run)
    pinned = built(METHODS[name], run.method.c, pinned=torch.arange(60) % 3 == 0, epochs=EPOCHS)
    *_, last = pinned.epochs()
    assert last.verdict is not None and bool((last.verdict.chance[::3] == 1).all())


@pytest.mark.parametrize("name", EVERY)
def test_too_few_samples_are_refused_where_their_nearest_are_asked(name: str) -> None:
    """The message names a method that takes them, and that one does."""
    for samples, classes in ((10, 3), (25, 3), (25, 13)):
        run = tiny(name, pictures(samples))
        run.method.facts = replace(run.method.facts, names=tuple(map(str, range(classes))))
        if METHODS[name].by_nearest and (samples == 10 or classes == 13):
            with pytest.raises(UsageError, match=rf"method {re.escape(name)} .* {samples} samples .* --method cpc"):
                run.method.check_data()
        elif name != "ncr" or classes == 3:  # whose batches have no room for 13 classes
            run.method.check_data()
    assert not METHODS["cpc"].by_nearest


@pytest.mark.parametrize("kind", ["one label", "all alike", "at random", "two classes"])
@pytest.mark.parametrize("name", EVERY)
def test_it_survives_partitions_that_are_empty_or_full_and_two_classes(name: str, kind: str) -> None:
    """No noise to find where pictures are all the same; nothing to divide where all labels are; nothing to learn at random."""
    data = pictures()
    if kind == "all alike":
        data = replace(data, images=data.images[:1].expand_as(data.images).clone())
    elif kind == "at random":  # as good as all are wrong
        data = data.relabelled(torch.randint(3, (60,), generator=torch.Generator().manual_seed(1)))
    elif kind == "one label":
        data = data.relabelled(torch.zeros(60, dtype=torch.int64))
    else:
        data = replace(data, labels=data.labels % 2, classes=("no", "yes"))
    run = tiny(name, data) if kind != "two classes" else two_classes(name, data)
    *_, last = run.epochs()
    assert last.verdict is not None
    checked(last.verdict, run)
    assert all(bool(torch.isfinite(value).all()) for value in run.state().values())


def two_classes(name: str, data: NoisyData) -> Tiny:
    """K = 2; the networks of `tiny_run` know three."""
    run = tiny(name, data)
    run.method.build(lambda number, **known: vector_net(number, 3 * 8 * 8, 2, **known))
    return run


class Flat(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.classifier = inner.classifier

    def forward(self, x: Tensor) -> Any:
        return self.inner(x.flatten(1))


def vector_net(number: int, dimensions: int, classes: int, *, flat: bool = True, **known: Any) -> Net:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(number)
        made = [Mlp(dimensions, classes) for _ in range(2)]
        bodies = [Flat(one) if flat else one for one in made]
        heads = {key: head(made[0].classifier.in_features) for key, head in (known.get("heads") or {}).items()}
    mean, std = (scale((value,), 1, "cpu").view(1, 1, 1, 1) * 255 for value in (0.5, 0.25))
    if not flat:
        mean, std = torch.zeros(1, dimensions), torch.ones(1, dimensions)
    twin = bodies[1] if known.get("twin") else None
    return Net(number, bodies[0], mean, std, heads=heads, twin=twin, nesterov=known.get("nesterov", False))


@pytest.mark.parametrize("name", EVERY)
def test_it_works_on_vectors(name: str) -> None:
    """Where it does not, it says so, and this list is where it is written down."""
    assert METHODS[name].takes_vectors
    generator = torch.Generator().manual_seed(0)
    data = replace(pictures(), images=torch.randn(60, 7, generator=generator))
    run = tiny(name)
    run.method.facts = replace(run.method.facts, vectors=True)
    run.method.build(lambda number, **known: vector_net(number, 7, 3, flat=False, **known))
    run.engine = PlainEngine(data, vector_views([0.0] * 7, [1.0] * 7))
    *_, last = run.epochs()
    assert last.verdict is not None
    checked(last.verdict, run)


def held_by(value: object, depth: int = 6) -> Iterator[object]:
    """Everything that can be reached from an object by its attributes and entries."""
    yield value
    if depth == 0 or isinstance(value, (Tensor, str, bytes, int, float, type, torch.nn.Module)):
        return
    inside: list[object] = list(value.values()) if isinstance(value, dict) else []
    inside += list(value) if isinstance(value, (list, tuple)) else []
    inside += list(vars(value).values()) if hasattr(value, "__dict__") else []
    for each in inside:
        yield from held_by(each, depth - 1)


@pytest.mark.parametrize("name", EVERY)
def test_true_labels_are_out_of_reach(name: str) -> None:
    run = tiny(name)
    trained(run)
    reached = [*held_by(run.method), *held_by(run.engine)]
    assert not any(isinstance(each, Truth) for each in reached)
    true = torch.arange(60) % 3
    assert not any(isinstance(each, Tensor) and each.shape == true.shape and torch.equal(each.long(), true) for each in reached)
    assert not any("true" in field.name or "truth" in field.name for field in fields(Facts))
