"""The tables: their size, their ranges, and what an upright picture is spared."""

import pytest

from labelsieve.data.augment.policies import (
    AMOUNT_OF_MAGNITUDE,
    AUTOAUGMENT_CIFAR10,
    AUTOAUGMENT_IMAGENET,
    OPERATIONS,
    POLICIES,
    UPRIGHT,
    Edit,
)

STEPS = {name: [step for pair in recipe.policy for step in pair] for name, recipe in POLICIES.items()}


def test_autoaugment_has_25_sub_policies() -> None:
    assert len(AUTOAUGMENT_CIFAR10) == len(AUTOAUGMENT_IMAGENET) == 25


def test_all_14_operations_can_be_reached() -> None:
    """AutoAugment's CIFAR-10 table has all but ShearX, the ImageNet one supplies it."""
    assert len(OPERATIONS) == 14
    assert {step.operation for step in STEPS["autoaugment-cifar10"]} == set(OPERATIONS) - {"ShearX"}
    assert "ShearX" in {step.operation for step in STEPS["autoaugment-imagenet"]}


@pytest.mark.parametrize(
    ("operation", "none", "most"),
    [
        ("ShearX", 0, 0.3),
        ("TranslateY", 0, 150 / 331),
        ("Rotate", 0, 30),
        ("Posterize", 8, 4),
        ("Solarize", 256, 0),
        ("Sharpness", 0, 0.9),
    ],
)
def test_magnitudes_run_over_the_papers_ranges(operation: str, none: float, most: float) -> None:
    amount_of = AMOUNT_OF_MAGNITUDE[operation]
    assert [amount_of(0), amount_of(9)] == pytest.approx([none, most])


def test_posterize_keeps_the_bits_of_the_linear_range() -> None:
    assert [AMOUNT_OF_MAGNITUDE["Posterize"](magnitude) for magnitude in range(10)] == [
        8,
        8,
        7,
        7,
        6,
        6,
        5,
        5,
        4,
        4,
    ]


def test_a_line_of_the_table_says_what_the_paper_says() -> None:
    assert AUTOAUGMENT_CIFAR10[1] == (
        Edit("Rotate", 0.7, pytest.approx(20 / 3)),
        Edit("TranslateX", 0.3, 150 / 331),
    )
    assert AUTOAUGMENT_CIFAR10[4] == (Edit("AutoContrast", 0.5), Edit("Equalize", 0.9))


def test_upright_pictures_stay_readable() -> None:
    reach = {}
    for step in STEPS["upright"]:
        reach[step.operation] = max(step.amount, reach.get(step.operation, 0))
    assert set(reach) == {*OPERATIONS[:5], "Contrast", "Brightness", "Sharpness"}
    assert reach["Rotate"] <= 20
    assert reach["TranslateX"] <= 1 / 8 and reach["TranslateY"] <= 1 / 8
    assert len(set(UPRIGHT)) == len(UPRIGHT)
