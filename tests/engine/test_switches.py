"""Every switch of the engine does what it says, seen on a CPU: equal results alone would also come of one that does nothing."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from labelsieve.config.resolve import resolve
from labelsieve.data.augment.strong import views_for
from labelsieve.engine.device import callers_settings_kept
from labelsieve.engine.fast import FastEngine, Speed
from labelsieve.engine.plain import PlainEngine
from labelsieve.methods.dividemix import Division
from labelsieve.methods.net import see
from labelsieve.runs.rows import rows_for
from labelsieve.train.build import parts_for
from methods.tiny_run import Tiny, pictures, tiny


def made(speed: Speed, contrastive: bool = False, **changes: Any) -> Tiny:
    run, data = tiny(cleaner="contrastive" if contrastive else "cpc-agn", **changes), pictures()
    run.engine = FastEngine(data, views_for(data.shape, True), "cpu", 16, speed)
    run.engine.adopt(run.method)
    return run


def noting(names: list[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """In the place of a compiler: notes which of the functions that it was given are called."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*inputs: Any) -> Any:
            names.append(function.__name__)
            return function(*inputs)

        return called

    return compiled


@pytest.mark.parametrize(("contrastive", "of_stage_one"), [(False, "descent"), (True, "contrastive_loss")])
def test_compile_is_for_the_networks_and_the_small_functions_of_both_stages(
    contrastive: bool, of_stage_one: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    monkeypatch.setattr("labelsieve.engine.fast.compiled", noting(called))
    for _ in made(Speed(), contrastive).epochs():
        pass
    assert called == []
    for _ in made(Speed(compile=True), contrastive).epochs():
        pass
    assert set(called) == {"see", "aims", "mixed", "vicinal_terms", of_stage_one}


@pytest.mark.parametrize(("compiles", "looks"), [(True, 3), (False, 6)])
def test_compiled_steps_make_one_pass_of_several_that_guess(compiles: bool, looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside them the peer guesses once, and the mixed pictures are looked at."""
    called: list[str] = []
    monkeypatch.setattr("labelsieve.engine.fast.compiled", noting([]))
    monkeypatch.setattr("labelsieve.engine.fast.see", noting(called)(see))
    run = made(Speed(compile=compiles), guess_passes=4)
    run.mix(0, Division(torch.ones(60), torch.arange(60) < 8), 2)
    assert len(called) == looks


@pytest.mark.parametrize(("precision", "type_seen"), [("float32", torch.float32), ("bf16", torch.bfloat16)])
def test_precision_is_that_of_the_convolutions_and_not_of_weights_and_logits(precision: str, type_seen: torch.dtype) -> None:
    run = made(Speed(precision))
    net = run.nets[0]
    seen: list[torch.dtype] = []
    for layer in net.network.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda layer, inputs, output: seen.append(output.dtype))
    evidence = run.engine.evidence(net)
    assert set(seen) == {type_seen}
    assert {evidence.losses.dtype, evidence.probs.dtype, evidence.features.dtype} == {torch.float32}
    assert {tensor.dtype for tensor in net.network.parameters()} == {torch.float32}


def test_the_last_of_a_pass_is_as_large_as_the_others() -> None:
    """60 pictures, 16 at a time: of another size, the networks would be compiled once more."""
    run = made(Speed())
    sizes: list[int] = []
    before = run.nets[0].see

    def noted(network: nn.Module, pixels: Tensor, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
        sizes.append(len(pixels))
        return before(network, pixels, mean, std)

    run.nets[0].see = noted
    assert len(run.engine.evidence(run.nets[0])) == 60 and sizes == [16] * 4


@pytest.mark.parametrize("asked", [True, False])
def test_deterministic_reaches_torch(asked: bool) -> None:
    with callers_settings_kept():
        config = resolve("digits", options={"data.limit": 200, "device": "cpu", "engine.deterministic": asked})
        engine = parts_for(config, rows_for(config)).engine
        assert torch.are_deterministic_algorithms_enabled() == asked
    assert type(engine) is PlainEngine
