"""Recorded steps on a CPU, by a graph's double: whole runs end with the plain engine's numbers, bit for bit."""

import gc
import weakref
from typing import Any

import pytest
import torch
from kernel_list import graphs_on_a_cpu
from torch import Tensor, nn

from labelsieve.data.augment.strong import views_for
from labelsieve.engine.fast import TRIALS, Captured, CapturedPass, FastEngine, Speed
from labelsieve.errors import ToolError
from labelsieve.methods.parts.streams import RandomBatches
from methods.tiny_run import Tiny, pictures, tiny


class Dropping(nn.Module):
    """A network that draws while it trains."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        result: tuple[Tensor, Tensor] = self.inner(nn.functional.dropout(x, 0.3, self.training))
        return result


def made(capture: bool, n: int = 60, kind: str = "cpc", precision: str = "float32", **changes: Any) -> Tiny:
    data = pictures(n)
    run = tiny(data=data, cleaner="contrastive" if kind == "contrastive" else "cpc-agn", **changes)
    if kind == "dropout":
        for net in run.nets:
            drawing = Dropping(net.network)
            net.network = drawing
    if capture or precision != "float32":
        run.engine = FastEngine(data, views_for(data.shape, True), "cpu", 512, Speed(precision, capture=capture))
        run.engine.adopt(run.method)
    return run


def trained(run: Tiny, start: int = 0, stop: int = 99) -> dict[str, Tensor]:
    """The state after the epochs from `start` to before `stop`."""
    with graphs_on_a_cpu():
        for epoch in run.epochs(start):
            if epoch.index + 1 >= stop:
                break
    return run.state()


def assert_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


@pytest.mark.parametrize("n", [60, 128, 150])  # 4, 8 and 10 batches of stage 1, where up to 8 are one graph
@pytest.mark.parametrize("kind", ["cpc", "contrastive", "dropout"])
def test_a_recorded_run_is_the_plain_one(n: int, kind: str) -> None:
    """Over a warm-up, divisions of many sizes, a learning rate that drops, and both kinds of division."""
    assert_equal(trained(made(True, n, kind)), trained(made(False, n, kind)))


def test_a_recorded_run_guesses_view_by_view_as_the_plain_one() -> None:
    assert_equal(trained(made(True, guess_passes=4)), trained(made(False, guess_passes=4)))


@pytest.mark.parametrize(
    "changes",
    [
        {"sampler": RandomBatches(4)},
        {"norm_devices": 2, "guess_passes": 4},
        {"train_unlabelled": False},
        {"strong_views": False},
        {"mixed": False, "caught_up": 0.9},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_every_kind_of_epoch_is_recorded_as_it_is(changes: dict[str, Any]) -> None:
    assert_equal(trained(made(True, 150, **changes)), trained(made(False, 150, **changes)))


def test_recorded_steps_in_bf16_are_those_that_are_not_recorded() -> None:
    """What autocast keeps of rounded weights must not outlive a pass: replays would go on with it."""
    assert_equal(trained(made(True, precision="bf16")), trained(made(False, precision="bf16")))


def test_everything_is_recorded() -> None:
    run = made(True)
    trained(run)
    engine = run.engine
    assert isinstance(engine, FastEngine)
    steps = [step for _, step in engine._recorded.values()]
    assert sorted(type(step).__name__ for step in steps) == ["CapturedPass"] * 2 + ["CapturedStep"] * 4
    singles = [step.single if isinstance(step, CapturedPass) else step for step in steps]
    assert all(isinstance(step, Captured) and step.graph is not None for step in singles)


@pytest.mark.parametrize("kind", ["cpc", "contrastive", "dropout"])
def test_a_state_put_back_between_recorded_steps_is_where_they_go_on(kind: str) -> None:
    """Epochs 3 and 4 twice: the second time by graphs that were recorded before the state came back."""
    run = made(True, kind=kind)
    trained(run, 0, 3)
    saved = run.state()
    first = trained(run, 3, 5)
    addresses = [tensor.data_ptr() for tensor in changing(run)]
    run.load(saved)
    assert [tensor.data_ptr() for tensor in changing(run)] == addresses
    assert_equal(trained(run, 3, 5), first)


def changing(run: Tiny) -> list[Tensor]:
    """Every tensor that a recorded step reads and another step changes."""
    judges = [tensor for judge in run.judges for tensor in judge._tensors()]  # type: ignore[attr-defined]
    return [tensor for net in run.nets for tensor in net.tensors()] + judges


@pytest.mark.parametrize("start", [1, 3])
def test_a_run_taken_up_draws_as_one_that_recorded_its_steps_long_before(start: int) -> None:
    """Trial runs draw too: what dropout draws next must not depend on when a step was recorded."""
    whole, broken = made(True, kind="dropout"), made(True, kind="dropout")
    before = trained(made(True, kind="dropout"), 0, start)
    broken.load(before)
    assert_equal(trained(broken, start), trained(whole))


def test_an_earlier_runs_steps_are_gone_when_the_next_one_begins() -> None:
    """In one process, such as a sweep's or a notebook's: they would hold the device's memory until Python happens to collect."""
    run = made(True)
    trained(run, 0, 3)
    engine = weakref.ref(run.engine)
    gc.disable()
    try:
        del run
        assert engine() is not None, "they hold each other"
        made(True)
        assert engine() is None
    finally:
        gc.enable()


def test_stage_one_makes_no_step_on_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """128 rows are 8 batches of 16: one graph, and nothing is left for single steps."""
    run, sizes = made(True, 128), list[int]()
    for judge in run.judges:
        inner = judge.inner

        def counted(*args, inner=inner):  # type: ignore[no-untyped-def]
            sizes.append(len(args[2][0]))
            return inner(*args)

        judge.inner = counted
    with graphs_on_a_cpu():
        run.method.stage_one(2, run.engine)
    assert set(sizes) == {16}


def test_steps_are_recorded_on_the_device_of_their_inputs() -> None:
    """Streams are made on the current device, which need not be the one that a user chose, such as cuda:1."""
    step = Captured(lambda x: x + 1, list)
    with graphs_on_a_cpu() as current:
        assert step(torch.ones(3)).tolist() == [2, 2, 2] and step(torch.zeros(3)).tolist() == [1, 1, 1]
    assert current == [torch.device("cpu")]


def test_a_step_that_cannot_be_recorded_says_how_to_go_on() -> None:
    calls: list[int] = []

    def step(x: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) > TRIALS:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nand much more")
        return x

    with graphs_on_a_cpu(), pytest.raises(ToolError, match=r"\(.*is capturing\); .*--set engine\.capture=false$"):
        Captured(step, list)(torch.ones(2))


def test_a_tensor_bound_anew_is_noticed_by_the_double() -> None:
    """What these tests rest on: replays go on with the memory that was recorded."""
    held = {"weight": torch.ones(2)}
    step = Captured(lambda x: x * held["weight"], list)
    with graphs_on_a_cpu():
        step(torch.ones(2))
        held["weight"].fill_(3)
        assert step(torch.ones(2)).tolist() == [3, 3]
        held["weight"] = torch.full((2,), 5.0)
        assert step(torch.ones(2)).tolist() == [3, 3]
