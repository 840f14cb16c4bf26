"""The rules on columns made by hand: each kind, each action, each threshold from both sides, each sentence."""

from dataclasses import replace

import numpy as np
import pytest

from labelsieve.issues import rules
from labelsieve.issues.rules import Signs, actions, kinds, reasons

FINE = {"score": 0.95, "doubted": False, "differs": False, "agree": True, "confidence": 0.9, "second_confidence": 0.05}
FINE |= {"excused": False}
WRONG = FINE | {"score": 0.02, "doubted": True, "differs": True, "agree": True, "confidence": 0.9, "second_confidence": 0.05}
STRANGE = FINE | {"score": 0.1, "doubted": True, "differs": True, "agree": True, "confidence": 0.2, "second_confidence": 0.19}
NAMES = ("cat", "dog", "fox")
CODES = np.array([[0, 0], [1, 1], [2, 2]])  # of each sample its given, suggested and second class


def signs(*rows: dict[str, object], best: float = 0.9) -> Signs:
    """Columns of these samples, and of a fine one at the end, which says how sure the networks usually are."""
    whole = [*rows, FINE]
    columns = {name: np.array([row[name] for row in whole]) for name in FINE}
    return Signs(**columns, best_chance=np.array([row.get("best", best) for row in whole], float))


def judged(row: dict[str, object], **more: object) -> tuple[str, str]:
    made = signs(row | more)
    kind = kinds(made)
    return str(kind[0]), str(actions(made, kind)[0])


@pytest.mark.parametrize(
    ("row", "more", "expected"),
    [
        (FINE, {}, ("fine", "keep")),
        (WRONG, {}, ("mislabelled", "relabel")),
        (WRONG, {"agree": False}, ("mislabelled", "review")),
        (WRONG, {"score": rules.RELABEL_SCORE}, ("mislabelled", "relabel")),
        (WRONG, {"score": rules.RELABEL_SCORE + 0.01}, ("mislabelled", "review")),
        (WRONG, {"confidence": rules.RELABEL_CONFIDENCE}, ("mislabelled", "relabel")),
        (WRONG, {"confidence": rules.RELABEL_CONFIDENCE - 0.01}, ("mislabelled", "review")),
        (WRONG, {"second_confidence": 0.45}, ("ambiguous", "review")),
        (WRONG, {"second_confidence": 0.44}, ("mislabelled", "relabel")),
        (STRANGE, {"best": 0.5}, ("like none", "drop")),
        (STRANGE, {"best": 0.51}, ("ambiguous", "review")),
        (STRANGE, {"best": 0.1, "confidence": 0.3}, ("ambiguous", "review")),  # a third of the usual 0.9
        (STRANGE, {"best": 0.1, "confidence": 0.29}, ("like none", "drop")),
        (STRANGE, {"best": 0.1, "doubted": False, "differs": False}, ("fine", "keep")),
        (STRANGE, {"best": 0.1, "differs": False}, ("like none", "review")),  # the networks would give this label, too
        (STRANGE, {"best": np.nan}, ("ambiguous", "review")),  # without prototypes nothing is like none
        (FINE, {"differs": True, "score": 1.0}, ("fine", "keep")),  # trusted by the user
        (FINE, {"differs": True}, ("ambiguous", "review")),  # the score trusts what the networks do not say
        (FINE, {"doubted": True, "score": 0.3}, ("ambiguous", "review")),  # the networks say what the score doubts
    ],
)
def test_each_case(row: dict[str, object], more: dict[str, object], expected: tuple[str, str]) -> None:
    assert judged(row, **more) == expected


@pytest.mark.parametrize("row", [WRONG, STRANGE, FINE, WRONG | {"doubted": False}, FINE | {"doubted": True}])
def test_what_is_excused_is_kept(row: dict[str, object]) -> None:
    assert judged(row | {"excused": True}) == ("fine", "keep")


def test_only_fine_labels_say_what_is_usual() -> None:
    alone = signs(STRANGE | {"best": 0.1})
    arrays = {name: value[:1] for name, value in vars(alone).items() if name != "alone"}
    without = Signs(**arrays)
    assert kinds(without).tolist() == ["like none"]  # no fine label: the usual confidence is taken as 1


def test_kinds_and_actions_are_among_the_named_ones() -> None:
    draws = np.random.default_rng(0)
    count = 500
    made = Signs(
        draws.random(count),
        draws.random(count) < 0.5,
        draws.random(count) < 0.5,
        draws.random(count) < 0.5,
        0.05 + 0.95 * draws.random(count),
        0.3 * draws.random(count),
        draws.random(count),
        draws.random(count) < 0.1,
    )
    kind = kinds(made)
    action = actions(made, kind)
    assert set(kind) <= set(rules.KINDS) and set(action) <= set(rules.ACTIONS)
    relabelled = action == "relabel"
    assert relabelled.any() and (made.agree & made.differs & made.doubted)[relabelled].all()
    assert (action == "drop").any() and ((action == "drop") == ((kind == "like none") & made.differs)).all()
    assert ((action == "keep") == (kind == "fine")).all()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (FINE, 'Fits "cat" (score 0.95).'),
        (
            WRONG | {"excused": True},
            'Rather "dog" (0.90), but such doubts are wrong more often than labels are here (score 0.02).',
        ),
        (FINE | {"excused": True}, 'Fits "cat" (score 0.95).'),
        (WRONG, 'Looks like "dog" (0.90), not like "cat" (score 0.02).'),
        (WRONG | {"agree": False}, "but opinions differ."),
        (WRONG | {"confidence": 0.5}, "but that is not sure."),
        (WRONG | {"score": 0.4}, "but the score is not low enough to relabel it unseen."),
        (WRONG | {"second_confidence": 0.6}, 'Between "dog" (0.90) and "fox" (0.60); given is "cat" (score 0.02).'),
        (STRANGE | {"best": 0.1}, 'Looks like none of the classes; closest is "dog" (0.20).'),
        (FINE | {"differs": True}, 'Most like "dog" (0.90), but the score supports "cat" (0.95).'),
        (FINE | {"doubted": True, "score": 0.3}, 'Most like "cat" (0.90), but its score is low (0.30)'),
    ],
)
def test_reasons_say_what_decided(row: dict[str, object], words: str) -> None:
    made = signs(row)
    kind = kinds(made)
    said = reasons(made, kind, actions(made, kind), NAMES, CODES)[0]
    assert words in said and said.endswith(".") and len(said) < 120


def test_a_reason_is_one_line_whatever_classes_are_called() -> None:
    made = signs(WRONG)
    said, _ = reasons(made, kinds(made), actions(made, kinds(made)), ("cat\n", "dog\r\nor\twolf", "fox"), CODES)
    assert '"dog or wolf"' in said and "\n" not in said


def test_signs_can_be_replaced_without_touching_the_rest() -> None:
    made = replace(signs(WRONG), agree=np.array([False, True]))
    assert actions(made, kinds(made)).tolist() == ["review", "keep"]


def test_a_label_that_networks_confirm_is_doubted_by_what_is_usual() -> None:
    """Contradicted: by the threshold. Confirmed: by it too, or by half of the usual score where all scores are low."""
    differs = np.array([True, True, False, False, False])
    usual = np.array([0.5, 0.51, 0.95, 0.5, 0.48])  # of the confirmed: 0.5, so that 0.25 counts
    assert rules.doubted(usual, 0.5, differs).tolist() == [True, False, False, False, False]
    high = np.array([0.5, 0.51, 0.99, 0.96, 0.47])  # 0.96, and the threshold is above 0.48
    assert rules.doubted(high, 0.5, differs).tolist() == [True, False, False, False, True]
    assert rules.doubted(high, 0.4, differs).tolist() == [False] * 5
    assert rules.doubted(high, 0.5, np.ones(5, bool)).tolist() == [True, False, False, False, True]  # nothing is confirmed
