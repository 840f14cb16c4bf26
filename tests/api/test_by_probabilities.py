"""find_label_issues(pred_probs=..., labels=...): called as cleanlab is, and in the forms that our users hold."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from labelsieve import find_label_issues
from labelsieve.errors import UsageError

TRUTH = np.arange(300) % 3
PROBS = np.full((300, 3), 0.05) + 0.85 * np.eye(3)[TRUTH]
GIVEN = np.where(np.arange(300) < 30, (TRUTH + 1) % 3, TRUTH)
NAMES = np.array(["cat", "dog", "owl"])


def test_wrong_labels_come_first() -> None:
    found = find_label_issues(pred_probs=PROBS, labels=NAMES[GIVEN])
    assert sorted(found.order[:30].tolist()) == list(range(30))
    assert found.is_label_issue.sum() == 30 and found.is_label_issue[:30].all()
    assert np.array_equal(found.suggested_label, NAMES[TRUTH]) and found.classes.tolist() == NAMES.tolist()
    assert np.isnan(found.clean_by_prototype).all() and len(found.to_frame()) == 300


def test_forms_say_the_same() -> None:
    found = find_label_issues(pred_probs=PROBS, labels=GIVEN)
    frame = pd.DataFrame(PROBS, columns=NAMES, index=np.arange(300) + 5)
    named = find_label_issues(pred_probs=frame[["owl", "cat", "dog"]], labels=NAMES[GIVEN])
    assert np.array_equal(named.label_score, found.label_score) and named.id[0] == 5
    tensor = find_label_issues(labels=torch.from_numpy(GIVEN), pred_probs=torch.from_numpy(PROBS))
    assert np.array_equal(tensor.label_score, found.label_score)
    assert np.array_equal(find_label_issues(probs=PROBS, labels=GIVEN).order, found.order)


def test_a_class_that_nobody_gave_keeps_its_column() -> None:
    found = find_label_issues(pred_probs=PROBS, labels=np.where(GIVEN == 1, 0, GIVEN))
    assert found.classes.tolist() == [0, 1, 2] and (found.suggested_label[TRUTH == 1] == 1).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pred_probs": PROBS * 3}, "row 0 adds up to 3, not to 1"),
        ({"pred_probs": np.where(PROBS > 0.5, np.nan, PROBS)}, "row 0 has nan"),
        ({"pred_probs": PROBS[:, :2]}, "2 is outside 0 to 1"),
        ({"pred_probs": PROBS[:200]}, r"the shape is \(200, 3\)"),
        ({"labels": np.where(GIVEN == 1, 7, GIVEN)[:299]}, "the shape is"),
        ({"labels": None}, "or pred_probs=... and labels="),
        ({"probs": PROBS}, "two names for one thing"),
        ({"labels": np.zeros(300, int), "classes": [0]}, "at least two"),
        ({"labels": PROBS, "features": GIVEN, "pred_probs": None}, "as if exchanged.*pred_probs="),
    ],
)
def test_what_cannot_be_used_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        find_label_issues(**({"pred_probs": PROBS, "labels": GIVEN} | change))


def test_columns_in_another_order_than_the_sorted_names_are_told() -> None:
    order = np.argsort(NAMES)[[1, 2, 0]]
    with pytest.warns(UserWarning, match=r"column 2 goes with 'cat', not column 0.*classes="):
        find_label_issues(pred_probs=PROBS[:, order], labels=NAMES[GIVEN])
    found = find_label_issues(pred_probs=PROBS[:, order], labels=NAMES[GIVEN], classes=NAMES[order].tolist())
    assert found.order.tolist() == find_label_issues(pred_probs=PROBS, labels=GIVEN).order.tolist()
