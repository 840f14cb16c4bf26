"""A program that trains in passing finds torch as it was, in whichever words it set it."""

from collections.abc import Iterator

import pytest
import torch

from labelsieve.engine.device import callers_settings_kept

CUDNN = torch.backends.cudnn


@pytest.fixture(autouse=True)
def _as_torch_has_it() -> Iterator[None]:
    yield
    CUDNN.allow_tf32 = True


def rounding() -> tuple[str, str]:
    return CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision


@pytest.mark.parametrize("conv", ["ieee", "tf32"])
@pytest.mark.parametrize("rnn", ["ieee", "tf32"])
@pytest.mark.parametrize("inside", [True, False, None])
def test_precision_in_torchs_newer_words(conv: str, rnn: str, inside: bool | None) -> None:
    """Where a program says it so, reading the older switch fails; a run may set that one, or nothing."""
    CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision = conv, rnn
    with callers_settings_kept():
        if inside is not None:
            CUDNN.allow_tf32 = inside
    assert rounding() == (conv, rnn)


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("inside", [True, False, None])
def test_precision_by_the_older_switch(allowed: bool, inside: bool | None) -> None:
    CUDNN.allow_tf32 = allowed
    before = rounding()
    with callers_settings_kept():
        if inside is not None:
            CUDNN.allow_tf32 = inside
    assert CUDNN.allow_tf32 == allowed and rounding() == before
