"""What scikit-learn's users hand to NoisyLabelClassifier, and what it leaves as it was."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from api.made import blobs, stripes
from labelsieve import NoisyLabelClassifier
from labelsieve.data.arrays import as_bytes
from labelsieve.errors import ToolError
from labelsieve.runs.folder import RunFolder

VECTORS, GIVEN, TRUTH = blobs(60)
QUICK: dict[str, Any] = {"epochs": 1, "random_state": 0}


def fitted(X: Any, y: Any, **told: Any) -> NoisyLabelClassifier:
    return NoisyLabelClassifier(**(QUICK | told)).fit(X, y)


def test_numbers_of_numpys_as_searches_draw_them() -> None:
    grid = {"epochs": np.arange(1, 3), "lr": np.array([0.02], dtype=np.float32), "batch_size": [np.int64(16)]}
    assert GridSearchCV(NoisyLabelClassifier(random_state=0), grid, cv=2, error_score="raise").fit(VECTORS, GIVEN).best_score_ > 0


def test_cleaners_are_searched_among_like_any_parameter() -> None:
    grid = {"cleaner": ["cpc-agn", "gmm-awr"]}
    found = GridSearchCV(NoisyLabelClassifier(epochs=2, random_state=0), grid, cv=2, error_score="raise").fit(VECTORS, GIVEN)
    best = found.best_estimator_
    assert clone(best).get_params()["cleaner"] == best.cleaner == found.best_params_["cleaner"]


@pytest.mark.parametrize(("told", "cleaner"), [({}, "cpc-awr"), ({"method": "augdmix"}, "gmm-agn")])
def test_without_a_cleaner_it_is_the_methods_own(tmp_path: Path, told: dict[str, Any], cleaner: str) -> None:
    for given, used in ((None, cleaner), ("gmm-awr", "gmm-awr")):
        run = tmp_path / used
        fitted(VECTORS, GIVEN, cleaner=given, run_dir=run, **told)
        assert RunFolder.open(run).read_config().cleaner == used


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"epochs": "2"}, "epochs='2' is no whole number"),
        ({"epochs": 2.5}, "epochs=2.5 is no whole number"),
        ({"batch_size": 0}, "batch_size=0 is too few"),
        ({"warmup": -1}, "warmup=-1 is too few"),
        ({"settings": "training.beta=4"}, "give a dict"),
    ],
)
def test_arguments_are_named_as_they_are_called_here(told: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fitted(VECTORS, GIVEN, **told)


def test_a_device_of_torchs() -> None:
    assert fitted(VECTORS, GIVEN, device=torch.device("cpu")).model_.device.type == "cpu"


@pytest.mark.parametrize(
    "names",
    [
        ["cat/1.png", "dog/2.png"],
        [Path("cat/1"), Path("dog/2")],
        np.array(["1.JPG", "2.JPG"]),
        "pictures",
    ],
)
def test_names_of_files_are_told_from_samples(names: Any) -> None:
    with pytest.raises(ValueError, match=r"names of files are read by the command `labelsieve train`.*np.stack"):
        fitted(names, ["cat", "dog"])
    model = NoisyLabelClassifier()
    model.model_ = None  # type: ignore[assignment]
    with pytest.raises(ValueError, match="X holds text"):
        model.predict(names)


def test_columns_of_names_are_told_from_other_text() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"path": ["a.png", "b.png"]}, index=[7, 8])
    for names in (frame, frame["path"]):
        with pytest.raises(ValueError, match="X holds text"):
            fitted(names, ["cat", "dog"])
    with pytest.raises(ValueError, match="red"):
        fitted(pd.DataFrame({"colour": ["red", "blue"] * 30, "width": 1.0}), GIVEN)


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_a_gap_among_labels_is_named(gap: Any) -> None:
    labels = np.array(["cat", "dog", gap] * 20, dtype=object)
    with pytest.raises(ValueError, match="row 2 has no label"):
        fitted(VECTORS, labels)


@pytest.mark.parametrize(
    "samples", [torch.from_numpy(VECTORS).bfloat16(), torch.from_numpy(VECTORS).requires_grad_(), VECTORS > 1]
)
def test_vectors_of_every_form(samples: Any) -> None:
    assert fitted(samples, torch.from_numpy(GIVEN)).predict(samples).shape == (60,)


def test_columns_that_float32_cannot_tell_apart_are_named() -> None:
    offset = VECTORS.astype(np.float64)
    offset[:, 1] += 1e9
    with pytest.warns(UserWarning, match=r"column 1 .*\(1 such columns\); subtract the mean"):
        fitted(offset, GIVEN)


def test_black_and_white_pictures() -> None:
    images, labels = stripes()
    assert fitted(images > 100, labels, epochs=4).score(images > 100, labels) > 0.9


def test_whole_numbers_beyond_a_byte_are_refused() -> None:
    """They were cut to their lowest byte, in silence."""
    images, labels = stripes(16)
    with pytest.raises(ValueError, match="largest value is"):
        fitted(images.astype(np.uint32) * 256, labels)
    with pytest.raises(ValueError, match="largest value is"):
        fitted(images, labels).predict(images.astype(np.int64) + 256)


def test_sixteen_bits_are_taken_as_when_fitted() -> None:
    images, labels = stripes(16)
    model = fitted(images, labels)
    wide = fitted(images.astype(np.uint16) * 257, labels)
    assert np.array_equal(wide.predict_proba(images[:3].astype(np.uint16) * 257), model.predict_proba(images[:3]))
    with pytest.raises(ValueError, match="has the value"):
        model.predict(images.astype(np.uint16) * 257)


def test_a_little_over_one_is_not_nearly_black() -> None:
    """Resizing takes floats beyond 1; as 0..255 they would all be black."""
    images, labels = stripes(16)
    bright = images / images.max()
    assert fitted(bright * 1.0005, labels).form_.top == 1
    with pytest.raises(ValueError, match=r"1\.02.*clip pictures to 0\.\.1"):
        fitted(bright * 1.02, labels)
    with pytest.raises(ToolError, match="clip pictures"):
        as_bytes(bright[:, None] * 1.02, 1.02, "images")


def test_dark_pictures_are_warned_of() -> None:
    images, labels = stripes(16)
    model = fitted(images, labels)
    with pytest.warns(UserWarning, match="multiply them by 255"):
        model.predict(images / 255)


def test_settings_that_the_cleaner_does_not_read_are_told_as_on_the_command_line() -> None:
    unread = "settings: cleaning.tau, cleaning.passes: the cleaner gmm-agn does not read that"
    with pytest.warns(UserWarning, match=unread) as caught:
        fitted(VECTORS, GIVEN, method="augdmix", settings={"passes": 2, "cleaning.tau": 0.6, "training.beta": 2})
    assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="with gmm-awr it would do nothing"):
        fitted(VECTORS, GIVEN, cleaner="gmm-awr", settings={"cleaning.prototype_memory": 3})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(VECTORS, GIVEN, settings={"passes": 2, "cleaning.tau": 0.6})


def test_kernels_are_the_callers_again() -> None:
    fitted(VECTORS, GIVEN, settings={"engine.deterministic": True})
    assert not torch.are_deterministic_algorithms_enabled() and not torch.backends.cudnn.deterministic


def test_pictures_of_another_shape_are_told_as_pictures() -> None:
    """scikit-learn's check takes a picture's rows for features: "X has 5 features, but ... is expecting 8"."""
    X, y = stripes(12)
    model = fitted(X, y)
    for other in (X[:, :5], X[:, :, :5], list(X[:, :5]), X[:, :5].tolist(), X.reshape(12, -1)):
        with pytest.raises(ValueError, match=r"samples of shape \(.*, but this classifier was fitted on \(8, 8\)"):
            model.predict(other)
