"""Makes layers that draw while they train, such as dropout, draw by a given seed for a while.

They can be given no generator: they draw from torch's own, which belong to the process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch

# Whoever seeds torch's generators, or builds a network, which draws from them, holds this: two threads that train would have
# each other's draws.
torchs_own = RLock()


@contextmanager
def layers_drawing_from(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """Inside, layers on that device begin at this generator's seed; the caller's random state comes back afterwards."""
    on_gpu = device.type == "cuda"
    with torchs_own:
        before = torch.get_rng_state(), torch.cuda.get_rng_state(device) if on_gpu else None
        torch.default_generator.manual_seed(generator.initial_seed())
        if on_gpu:
            number = torch.cuda.current_device() if device.index is None else device.index
            torch.cuda.default_generators[number].manual_seed(generator.initial_seed())
    try:
        yield
    finally:
        with torchs_own:
            torch.set_rng_state(before[0])
            if before[1] is not None:
                torch.cuda.set_rng_state(before[1], device)
