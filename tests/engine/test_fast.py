"""The fast engine against the plain one: the same weights after 20 steps, in float32."""

import os

import pytest
import torch

from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.engine.device import callers_settings_kept
from labelsieve.engine.fast import Captured, CapturedPass, Speed, be_deterministic, compiled, speed_for
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.ce import plain_epoch
from labelsieve.methods.dividemix import Division
from labelsieve.methods.epochs import inputs_of, run
from labelsieve.runs.rows import Rows, rows_for
from labelsieve.train.build import Parts, parts_for

SAMPLES = 640


def config_for(device: str, *settings: str) -> Config:
    options = {"data.noise": "sym:0.4", "data.limit": SAMPLES, "device": device}
    return resolve(
        "digits", options=options, settings=["engine.precision=float32", "training.lr=0.0005", "training.lambda_u=25", *settings]
    )


def rows() -> Rows:
    return rows_for(config_for("cpu"))


def twenty_steps(parts: Parts) -> dict[str, torch.Tensor]:
    """10 steps of warm-up and 10 of mixed training on network 1, then stage 1: everything that is ever captured."""
    method, engine = parts.method, parts.engine
    first, second = method.nets
    run(plain_epoch(method, first, 0, False), engine, method.training.seed, 0)
    division = Division(torch.linspace(0, 1, SAMPLES), torch.arange(SAMPLES) < SAMPLES - 1)
    run(method.mixed(first, second, division, 12, engine, "mixture"), engine, method.training.seed, 12)
    seen, judge = engine.evidence(first), method.helpers()[0]
    judge.learn(seen, (torch.arange(SAMPLES) % 3 > 0).to(seen.losses.device))
    state = first.state_dict() | {f"judge.{name}": value for name, value in judge.state_dict().items()}
    return {name: value.detach().cpu().double() for name, value in state.items()}


def farthest(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], momenta: bool = False) -> float:
    """The largest relative distance of any weight or statistic; of momenta, sums of gradients that nearly cancel, on demand."""
    assert one.keys() == other.keys()
    keys = [key for key in one if ("momentum" in key) == momenta]
    return max(float((one[k] - other[k]).norm() / other[k].norm().clamp_min(1e-3)) for k in keys)


def assert_same(fast: dict[str, torch.Tensor], plain: dict[str, torch.Tensor]) -> None:
    """Rounding leaves 7e-5 and 1.5e-3 on an H200; a momentum of 0.899 would leave 5e-3 and 1e-2, a temperature of 0.505 6e-4.

    At a rate of 0.005 rounding alone grew to 3e-3 in some shapes: steps that are far apart in nothing but their last bits
    part from each other as fast as the rate lets them.
    """
    assert farthest(fast, plain) < 2e-4
    assert farthest(fast, plain, momenta=True) < 5e-3


@pytest.mark.slow
@pytest.mark.parametrize(("passes", "devices"), [(1, 1), (4, 1), (4, 2)])
def test_compiled_steps_equal_plain_steps_on_a_cpu(passes: int, devices: int) -> None:
    norms = (f"training.guess_passes={passes}", f"training.norm_devices={devices}")
    plain = twenty_steps(parts_for(config_for("cpu", *norms), rows()))
    fast = twenty_steps(parts_for(config_for("cpu", *norms, "engine.compile=true"), rows()))
    assert_same(fast, plain)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("compiled", "how"),
    [
        ("false", ["training.guess_passes=1"]),
        ("true", ["training.guess_passes=1"]),
        ("true", ["training.guess_passes=4"]),
        ("false", ["training.guess_passes=4", "training.norm_devices=2"]),
        ("true", ["training.guess_passes=4", "training.norm_devices=2"]),
        ("true", ["cleaner=contrastive"]),
    ],
)
def test_captured_steps_equal_plain_steps_on_a_gpu(compiled: str, how: list[str]) -> None:
    plain = twenty_steps(parts_for(config_for("cuda", *how, "engine.compile=false", "engine.capture=false"), rows()))
    fast = twenty_steps(parts_for(config_for("cuda", *how, f"engine.compile={compiled}", "engine.capture=true"), rows()))
    assert_same(fast, plain)


@pytest.mark.gpu
def test_recording_a_step_changes_nothing() -> None:
    parts = parts_for(config_for("cuda"), rows())
    net = parts.method.nets[0]
    net.train()
    before = [tensor.detach().clone() for tensor in net.tensors()]
    phase = plain_epoch(parts.method, net, 0, False)
    step = parts.engine.prepare(phase)
    assert isinstance(step, Captured)
    step._record(next(inputs_of(phase, slice(0, 1), parts.engine, (0, 0, 0, 0, 0))))
    for tensor, value in zip(net.tensors(), before):
        assert torch.equal(tensor.detach(), value)


def test_a_pass_makes_every_step_once_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """11 batches: eight in one go, three by themselves, whatever a recorded step is."""
    made: list[list[int]] = []

    def step(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        assert torch.equal(rows.float(), weight)
        made.append(rows.tolist())
        return rows.sum()

    monkeypatch.setattr("labelsieve.engine.fast.Captured", lambda step, state: step)
    rows = torch.arange(44)
    CapturedPass(step, list)((rows, rows.float()), 4)
    assert made == [rows[i : i + 4].tolist() for i in range(0, 44, 4)]


def test_a_function_is_compiled_for_more_shapes_than_torch_would_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may train on several data sets: each has shapes of its own, and none may run uncompiled in silence."""
    forms: list[object] = []

    def backend(graph: torch.fx.GraphModule, inputs: object) -> object:
        forms.append(inputs)
        return graph.forward

    compile_with = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: compile_with(function, dynamic=dynamic, backend=backend))
    before = torch._dynamo.config.recompile_limit
    double = compiled(lambda x: 2 * x)
    for rows in range(2, before + 6):
        assert torch.equal(double(torch.ones(rows)), torch.full((rows,), 2.0))
    assert len(forms) == before + 4
    assert torch._dynamo.config.recompile_limit == before, "the caller's setting is left alone"


def test_what_cannot_be_compiled_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def backend(graph: object, inputs: object) -> object:
        raise OSError("Python.h: no such file")

    compile_with = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: compile_with(function, dynamic=dynamic, backend=backend))
    with pytest.raises(ToolError, match=r"Python\.h.*; use --set engine\.compile=false, or, .* in its config\.yaml$"):
        compiled(lambda x: x + 1)(torch.ones(2))


@pytest.mark.parametrize(
    ("tools", "named", "there"),
    [(["triton", "gcc"], None, True), (["triton", "clang"], None, True), (["triton"], None, False), (["gcc"], None, False)]
    + [(["triton", "gcc"], "mycc", False), (["triton", "mycc"], "mycc", True)],
)
def test_networks_are_compiled_by_themselves_where_all_tools_are_there(
    tools: list[str], named: str | None, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in tools else None)
    monkeypatch.setattr("shutil.which", lambda name: name if name in tools else None)
    monkeypatch.setenv("CC", named) if named else monkeypatch.delenv("CC", raising=False)
    cuda = torch.device("cuda")
    assert speed_for(cuda, "auto", None, None) == Speed("bf16", compile=there, capture=True)
    assert speed_for(cuda, "auto", True, None).compile and not speed_for(torch.device("cpu"), "auto", None, None).compile


def test_capture_needs_cuda() -> None:
    with pytest.raises(UsageError, match="CUDA"):
        parts_for(config_for("cpu", "engine.capture=true"), rows())


def test_tf32_needs_cuda() -> None:
    with pytest.raises(UsageError, match="tf32, which needs a CUDA device"):
        parts_for(config_for("cpu", "engine.precision=tf32"), rows())


@pytest.mark.gpu
def test_tf32_trains_close_to_float32() -> None:
    try:
        plain = twenty_steps(parts_for(config_for("cuda"), rows()))
        assert not torch.backends.cudnn.allow_tf32
        rounded = twenty_steps(parts_for(config_for("cuda", "engine.precision=tf32"), rows()))
        assert torch.backends.cudnn.allow_tf32
    finally:
        torch.backends.cudnn.allow_tf32 = True  # as torch has it
    assert 0 < farthest(rounded, plain) < 0.05


def test_bf16_on_a_cpu_trains_close_to_float32() -> None:
    plain = twenty_steps(parts_for(config_for("cpu"), rows()))
    low = twenty_steps(parts_for(config_for("cpu", "engine.precision=bf16"), rows()))
    assert 0 < farthest(low, plain) < 0.5
    assert all(value.isfinite().all() for value in low.values())


def test_deterministic_tells_cublas_too_and_a_callers_environment_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it torch warns at every product that it may not repeat."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    with callers_settings_kept():
        be_deterministic()
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8" and torch.are_deterministic_algorithms_enabled()
        assert torch.backends.cudnn.deterministic and not torch.backends.cudnn.benchmark
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    with callers_settings_kept():
        be_deterministic()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8", "the user's own choice stands"
    assert not torch.are_deterministic_algorithms_enabled()
