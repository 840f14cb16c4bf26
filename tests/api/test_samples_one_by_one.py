"""Pictures as loops give them, labels as columns hold them, and what a caller's frame says of its own order."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from api.made import blobs, stripes
from labelsieve import NoisyLabelClassifier, find_label_issues
from labelsieve.api.labels import BadInput
from labelsieve.predict.model import load_model

IMAGES, LABELS = stripes(40)
PICTURES = [Image.fromarray(image) for image in IMAGES]


def quick() -> NoisyLabelClassifier:
    return NoisyLabelClassifier(epochs=2, random_state=0)


@pytest.mark.parametrize(
    "samples",
    [
        PICTURES,
        tuple(PICTURES),
        pd.Series(PICTURES, index=np.arange(40) + 7),
        pd.Series(list(IMAGES)),
        list(torch.from_numpy(IMAGES)),
        [picture.convert("P") for picture in PICTURES],
        [picture.convert("RGB") for picture in PICTURES],
    ],
    ids=["pillow", "tuple", "series of pictures", "series of arrays", "tensors", "palette", "colours"],
)
def test_pictures_one_by_one(samples: Any) -> None:
    model = quick().fit(samples, LABELS)
    assert model.score(samples, LABELS) == 1.0
    if not isinstance(samples[7 if hasattr(samples, "iloc") else 0], Image.Image) or len(model.form_.shape) == 2:
        assert (model.predict_proba(samples) == quick().fit(IMAGES, LABELS).predict_proba(IMAGES)).all()


def test_pictures_of_several_sizes_are_told() -> None:
    with pytest.raises(BadInput, match=r"X: sample 3 has the shape \(9, 9\), sample 0 \(8, 8\).*resize"):
        quick().fit([*PICTURES[:3], PICTURES[3].resize((9, 9)), *PICTURES[4:]], LABELS)
    with pytest.raises(BadInput, match="X is a TensorDataset; give samples and labels apart"):
        quick().fit(TensorDataset(torch.from_numpy(IMAGES), torch.from_numpy(LABELS)), LABELS)


@pytest.mark.parametrize("kind", ["Int64", "UInt8", "int64[pyarrow]", "boolean", "bool[pyarrow]"])
def test_labels_that_may_have_gaps_stay_what_they_are(kind: str) -> None:
    labels = pd.Series(LABELS, dtype="Int64").astype(kind)  # type: ignore[call-overload]
    classes = quick().fit(IMAGES, labels).classes_
    assert classes.dtype == (bool if "bool" in kind else np.int64) and classes.tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["Int64", "float64", "object"])
def test_the_row_without_a_label_is_named(kind: str) -> None:
    with pytest.raises(BadInput, match="y: row 3 has no label"):
        quick().fit(IMAGES, pd.Series([0, 1, 0, None, *LABELS[4:]], dtype=kind))  # type: ignore[call-overload]


@pytest.mark.parametrize("form", ["column", "frame", "tensors", "floats"])
def test_labels_in_other_forms_are_the_same_labels(form: str) -> None:
    vectors, given, _ = blobs(90)
    forms = {"column": given[:, None], "frame": pd.DataFrame({"label": given}), "tensors": list(torch.tensor(given))}
    found = find_label_issues(vectors, forms.get(form, given.astype(float)))
    assert found.classes.tolist() == [0, 1, 2] and found.classes.dtype.kind in "if"
    assert (found.label_score == find_label_issues(vectors, given).label_score).all()


def test_calls_in_another_order_and_one_hot_rows_are_told() -> None:
    vectors, given, _ = blobs(90)
    with pytest.raises(BadInput, match=r"call find_label_issues\(features, labels\)"):
        find_label_issues(given, vectors)
    with pytest.raises(BadInput, match=r"argmax\(1\)"):
        find_label_issues(vectors, np.eye(3)[given])


def test_probabilities_in_a_frame_go_by_the_names_of_its_columns() -> None:
    vectors, given, truth = blobs(90)
    names, shares = np.array(["ant", "bee", "cat"]), 0.8 * np.eye(3)[truth] + 0.2 / 3
    plain = find_label_issues(vectors, names[given], shares)
    turned = pd.DataFrame(shares[:, ::-1], columns=names[::-1])
    assert (find_label_issues(vectors, names[given], turned).label_score == plain.label_score).all()
    numbered = find_label_issues(vectors, names[given], pd.DataFrame(shares))
    assert (numbered.label_score == plain.label_score).all()


def test_tables_in_different_orders_are_warned_of() -> None:
    vectors, given, _ = blobs(90)
    frame, labels = pd.DataFrame(vectors, index=[f"i{k}" for k in range(90)]), pd.Series(given)
    labels.index = frame.index
    for joined in (find_label_issues, quick().fit):
        with pytest.warns(UserWarning, match=r"labels.loc\[samples.index\]") as caught:
            joined(frame, labels[::-1])
        assert caught[0].filename == __file__  # the caller's line
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_label_issues(frame, labels)
        find_label_issues(frame, labels.reset_index(drop=True))


def test_a_runs_model_is_loaded_by_a_plain_path(tmp_path: Path) -> None:
    model = NoisyLabelClassifier(epochs=2, random_state=0, run_dir=str(tmp_path / "run")).fit(IMAGES, LABELS)
    loaded = load_model(str(tmp_path / "run")).probabilities(torch.from_numpy(IMAGES).unsqueeze(1))
    assert np.allclose(loaded.numpy(), model.predict_proba(IMAGES), atol=1e-5)
