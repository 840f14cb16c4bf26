"""Randomness without state: every draw belongs to a name (epoch, network, purpose), never to what was drawn before.

So a run can be taken up at any epoch, on any machine, and draws what it would have drawn: nothing to save, nothing to restore.
"""

import torch


def seeded(seed: int, *key: int) -> torch.Generator:
    """A CPU generator that depends on the seed and the key alone, so that a stream can be taken up anywhere."""
    mixed = int(seed) & 0xFFFFFFFFFFFFFFFF  # numpy's integers have no room for these
    for part in key:
        # splitmix64's finaliser: neighbouring keys give unrelated streams
        mixed = (mixed + 0x9E3779B97F4A7C15 * (int(part) + 1)) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
    return torch.Generator().manual_seed(mixed & 0x7FFFFFFFFFFFFFFF)


# What a draw is for. The numbers are part of every run's identity: never renumber, only add.
WEIGHTS, PROTOTYPES, WARM_UP_ORDER, WARM_UP_VIEWS, PLAN, WEAK, STRONG, DRAW, LAYERS, WEAK_FEATURES, CLEANER = range(11)
