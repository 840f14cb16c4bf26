"""A stream's seed is part of every run's identity: a run taken up by a later labelsieve must draw what it would have drawn."""

import numpy as np
import pytest

from labelsieve.engine.plain import LOOK
from labelsieve.methods.epochs import CHUNK
from labelsieve.methods.parts import streams

WORD = 2**64


def splitmix(seed: int, key: tuple[int, ...]) -> int:
    """Published constants, in numpy's 64 bits: they wrap around by themselves."""
    with np.errstate(over="ignore"):
        mixed = np.uint64(seed % WORD)
        for part in key:
            mixed = mixed + np.uint64(0x9E3779B97F4A7C15) * np.uint64(part + 1)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed = mixed ^ (mixed >> np.uint64(31))
    return int(mixed) % 2**63


@pytest.mark.parametrize("key", [(0,), (7, 3, 1, 0), (0, 1), (1, 0), (4, 449, 1, 12)])
@pytest.mark.parametrize("seed", [0, 1, 10**15, 2**63 - 1])
def test_a_stream_has_the_seed_that_it_always_had(seed: int, key: tuple[int, ...]) -> None:
    assert streams.seeded(seed, *key).initial_seed() == splitmix(seed, key)


def test_purposes_keep_their_numbers() -> None:
    names = [
        "WEIGHTS",
        "PROTOTYPES",
        "WARM_UP_ORDER",
        "WARM_UP_VIEWS",
        "PLAN",
        "WEAK",
        "STRONG",
        "DRAW",
        "LAYERS",
        "WEAK_FEATURES",
    ]
    assert [getattr(streams, name) for name in [*names, "CLEANER"]] == [*range(11)]


def test_as_many_steps_and_samples_share_a_draw_as_always() -> None:
    assert (CHUNK, LOOK) == (32, 4096)
