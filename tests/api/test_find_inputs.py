"""What people hand to find_label_issues: frames, tensors of any precision, outliers, offsets, gaps in labels."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
import torch

from api.made import blobs
from labelsieve import find_label_issues
from labelsieve.errors import UsageError
from labelsieve.methods.parts.scaling import FARTHEST, compact

pd = pytest.importorskip("pandas")
VECTORS, GIVEN, TRUTH = blobs()
WRONG = GIVEN != TRUTH


@pytest.mark.parametrize(
    "features",
    [
        torch.from_numpy(VECTORS).bfloat16(),
        torch.from_numpy(VECTORS).half().requires_grad_(),
        pd.DataFrame(VECTORS).astype("Float64"),
        VECTORS.astype(object),
        VECTORS.astype(np.float64) + 1e9,
        VECTORS.astype(np.float64) * 1e25,
        np.asfortranarray(VECTORS)[:, ::-1],
    ],
    ids=["bfloat16", "half", "nullable", "objects", "offset", "huge", "reversed"],
)
def test_features_of_every_form(features: Any) -> None:
    found = find_label_issues(features, GIVEN)
    assert WRONG[found.order[: WRONG.sum()]].mean() > 0.9


def test_probabilities_in_bfloat16() -> None:
    assert len(find_label_issues(VECTORS, GIVEN, probs=torch.eye(3)[GIVEN].bfloat16())) == 300


@pytest.mark.parametrize("size", [1e5, 1e20, -1e30])
def test_a_broken_row_does_not_blur_the_others(size: float) -> None:
    """One embedding of another scale made half of all labels look wrong."""
    features = VECTORS.copy()
    features[7] = size
    found = find_label_issues(features, GIVEN)
    assert WRONG[found.order[: WRONG.sum()]].mean() > 0.9
    assert WRONG[found.is_label_issue].mean() > 0.9


def test_ordinary_rows_are_scaled_by_their_own_mean_and_spread() -> None:
    rows = np.random.default_rng(0).normal(3, 2, (500, 4))
    rows[:, 3] = np.arange(500) == 0  # rare, and no mistake
    expected = np.clip((rows - rows.mean(0)) / rows.std(0), -FARTHEST, FARTHEST)
    torch.testing.assert_close(compact(rows).double(), torch.from_numpy(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": sparse.csr_matrix(VECTORS)}, "toarray"),
        ({"features": ["a.png"] * 300}, "give the vectors"),
        ({"features": VECTORS[:0], "labels": []}, "there are no rows"),
        ({"labels": pd.DataFrame({"label": GIVEN, "other": GIVEN})}, r"DataFrame of shape \(300, 2\)"),
        ({"labels": 5}, "this is int"),
        ({"labels": pd.Series(["a", pd.NA, "b"] * 100, dtype="string")}, "row 1 has no label"),
        ({"classes": [0, 1, 2, 2]}, "2 is there 2 times"),
        ({"seed": 1.5}, "no whole number"),
    ],
)
def test_what_cannot_be_used_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        find_label_issues(**({"features": VECTORS, "labels": GIVEN} | change))


def test_numpys_whole_numbers() -> None:
    found = find_label_issues(VECTORS, pd.Series(GIVEN, dtype="Int64"), seed=np.int64(3))  # type: ignore[arg-type]
    assert found.classes.tolist() == [0, 1, 2] and found.classes.dtype.kind == "i"
    assert np.array_equal(found.label_score, find_label_issues(VECTORS, GIVEN, seed=3).label_score)


def test_a_table_can_be_read_and_compared() -> None:
    found = find_label_issues(VECTORS, np.array(["cat", "dog", "owl"])[GIVEN])
    lines = repr(found).splitlines()
    assert "300 samples, 3 classes" in lines[0] and len(lines) == 6 + len(found.cautions)
    assert found == found and found != find_label_issues(VECTORS, GIVEN)
