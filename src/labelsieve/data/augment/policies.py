"""Policies: which operations, how likely, how strong. A strong view draws one sub-policy, of two steps.

The AutoAugment tables are those of the paper's appendix (Cubuk et al., 2019). `UPRIGHT` is our own, for
digits, letters and whatever else must not be mirrored, inverted or recoloured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from labelsieve.data.augment.edits import GEOMETRIC, TONAL

OPERATIONS = (*GEOMETRIC, *TONAL)
FACTORS = ("Contrast", "Color", "Brightness", "Sharpness")
SIGNED = frozenset((*GEOMETRIC, *FACTORS))  # half the time the amount is taken negative


@dataclass(frozen=True)
class Edit:
    """One operation, done with a probability.

    `amount` is the shear, the shift as a share of the picture's size, the turn in degrees, the bits kept, the
    threshold, or how far the factor lies from 1.
    """

    operation: str
    probability: float
    amount: float = 0.0


Policy = tuple[tuple[Edit, Edit], ...]


@dataclass(frozen=True)
class Recipe:
    """A policy, the grey of what comes from outside the picture, and the way pixels are looked up."""

    policy: Policy
    fill: int
    resample: str


# AutoAugment's magnitudes 0..9 lie evenly on these ranges.
AMOUNT_OF_MAGNITUDE: dict[str, Callable[[int], float]] = {
    "ShearX": lambda magnitude: magnitude / 9 * 0.3,
    "ShearY": lambda magnitude: magnitude / 9 * 0.3,
    "TranslateX": lambda magnitude: magnitude / 9 * 150 / 331,
    "TranslateY": lambda magnitude: magnitude / 9 * 150 / 331,
    "Rotate": lambda magnitude: magnitude / 9 * 30,
    "Posterize": lambda magnitude: round(8 - magnitude / 9 * 4),
    "Solarize": lambda magnitude: 256 - magnitude / 9 * 256,
    **dict.fromkeys(FACTORS, lambda magnitude: magnitude / 9 * 0.9),
}


def _parsed(table: str) -> Policy:
    """A policy from lines of `operation probability magnitude, operation probability magnitude`."""
    return tuple(_sub_policy(line) for line in table.strip().splitlines())


def _sub_policy(line: str) -> tuple[Edit, Edit]:
    first, second = (_step(*words.split()) for words in line.split(","))
    return first, second


def _step(operation: str, probability: str, magnitude: str = "0") -> Edit:
    amount_of = AMOUNT_OF_MAGNITUDE.get(operation)
    return Edit(operation, float(probability), amount_of(int(magnitude)) if amount_of else 0.0)


# AutoContrast, Equalize and Invert have no magnitude.
AUTOAUGMENT_CIFAR10 = _parsed("""
    Invert 0.1, Contrast 0.2 6
    Rotate 0.7 2, TranslateX 0.3 9
    Sharpness 0.8 1, Sharpness 0.9 3
    ShearY 0.5 8, TranslateY 0.7 9
    AutoContrast 0.5, Equalize 0.9
    ShearY 0.2 7, Posterize 0.3 7
    Color 0.4 3, Brightness 0.6 7
    Sharpness 0.3 9, Brightness 0.7 9
    Equalize 0.6, Equalize 0.5
    Contrast 0.6 7, Sharpness 0.6 5
    Color 0.7 7, TranslateX 0.5 8
    Equalize 0.3, AutoContrast 0.4
    TranslateY 0.4 3, Sharpness 0.2 6
    Brightness 0.9 6, Color 0.2 8
    Solarize 0.5 2, Invert 0.0
    Equalize 0.2, AutoContrast 0.6
    Equalize 0.2, Equalize 0.6
    Color 0.9 9, Equalize 0.6
    AutoContrast 0.8, Solarize 0.2 8
    Brightness 0.1 3, Color 0.7 0
    Solarize 0.4 5, AutoContrast 0.9
    TranslateY 0.9 9, TranslateY 0.7 9
    AutoContrast 0.9, Solarize 0.8 3
    Equalize 0.8, Invert 0.1
    TranslateY 0.7 9, AutoContrast 0.9
""")

AUTOAUGMENT_IMAGENET = _parsed("""
    Posterize 0.4 8, Rotate 0.6 9
    Solarize 0.6 5, AutoContrast 0.6
    Equalize 0.8, Equalize 0.6
    Posterize 0.6 7, Posterize 0.6 6
    Equalize 0.4, Solarize 0.2 4
    Equalize 0.4, Rotate 0.8 8
    Solarize 0.6 3, Equalize 0.6
    Posterize 0.8 5, Equalize 1.0
    Rotate 0.2 3, Solarize 0.6 8
    Equalize 0.6, Posterize 0.4 6
    Rotate 0.8 8, Color 0.4 0
    Rotate 0.4 9, Equalize 0.6
    Equalize 0.0, Equalize 0.8
    Invert 0.6, Equalize 1.0
    Color 0.6 4, Contrast 1.0 8
    Rotate 0.8 8, Color 1.0 2
    Color 0.8 8, Solarize 0.8 7
    Sharpness 0.4 7, Invert 0.6
    ShearX 0.6 5, Equalize 1.0
    Color 0.4 0, Equalize 0.6
    Equalize 0.4, Solarize 0.2 4
    Solarize 0.6 5, AutoContrast 0.6
    Invert 0.6, Equalize 1.0
    Color 0.6 4, Contrast 1.0 8
    Equalize 0.8, Equalize 0.6
""")

# Each operation with a mild and a firm amount. A shear leaves the first row or column where it is, as with
# Pillow, so it also shifts: 0.2 moves the picture's middle by a tenth of its size.
_MOVES = {
    "Rotate": (8.0, 16.0),
    "ShearX": (0.1, 0.2),
    "ShearY": (0.1, 0.2),
    "TranslateX": (1 / 16, 1 / 8),
    "TranslateY": (1 / 16, 1 / 8),
}
_TONES = {"Contrast": (0.3, 0.6), "Brightness": (0.2, 0.4), "Sharpness": (0.5, 0.9)}


def _upright() -> Policy:
    """Every firm move with every mild tone, every mild move with every firm tone, every two mild moves."""
    firm_moves = [
        (Edit(move, 0.8, firm), Edit(tone, 0.5, mild)) for move, (_, firm) in _MOVES.items() for tone, (mild, _) in _TONES.items()
    ]
    firm_tones = [
        (Edit(move, 0.8, mild), Edit(tone, 0.5, firm)) for move, (mild, _) in _MOVES.items() for tone, (_, firm) in _TONES.items()
    ]
    pairs = [(Edit(one, 0.8, _MOVES[one][0]), Edit(other, 0.8, _MOVES[other][0])) for one, other in combinations(_MOVES, 2)]
    return (*firm_moves, *firm_tones, *pairs)


UPRIGHT = _upright()

POLICIES = {
    "autoaugment-cifar10": Recipe(AUTOAUGMENT_CIFAR10, fill=128, resample="nearest"),
    "autoaugment-imagenet": Recipe(AUTOAUGMENT_IMAGENET, fill=128, resample="nearest"),
    "upright": Recipe(UPRIGHT, fill=0, resample="bilinear"),
}
