"""NoisyLabelClassifier: scikit-learn's own list of checks, and what is ours: pictures, issues, run folders."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from api.made import blobs, stripes
from labelsieve import NoisyLabelClassifier
from labelsieve.issues.estimate import UNKNOWN_WORDS
from labelsieve.predict.model import load_model
from labelsieve.runs.folder import RunFolder

NAMES = np.array(["cat", "dog", "owl"])

# Checks of scikit-learn that this classifier need not pass, each with its reason. There are none.
EXCEPTIONS: dict[str, str] = {}


@pytest.mark.slow  # some fifty checks, most of which train several times
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([NoisyLabelClassifier(epochs=6, random_state=0)], expected_failed_checks=lambda _: EXCEPTIONS)
def test_scikit_learns_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def fitted() -> tuple[NoisyLabelClassifier, Any, Any, Any]:
    vectors, given, truth = blobs()
    return NoisyLabelClassifier(epochs=10, random_state=0).fit(vectors, NAMES[given]), vectors, given, truth


def test_it_classifies_better_than_it_was_taught(fitted: tuple[NoisyLabelClassifier, Any, Any, Any]) -> None:
    model, vectors, given, truth = fitted
    assert model.classes_.tolist() == NAMES.tolist() and model.n_features_in_ == 6
    assert model.score(vectors, NAMES[truth]) > 0.95 > (given == truth).mean()
    shares = model.predict_proba(vectors)
    assert shares.shape == (300, 3)
    assert np.array_equal(model.classes_[shares.argmax(1)], model.predict(vectors))


def test_it_says_which_labels_are_wrong(fitted: tuple[NoisyLabelClassifier, Any, Any, Any]) -> None:
    model, _, given, truth = fitted
    wrong = given != truth
    assert model.clean_probability_[wrong].mean() < 0.2 < 0.8 < model.clean_probability_[~wrong].mean()
    frame = model.label_issues_
    assert frame["given_label"].tolist() == NAMES[given].tolist()
    assert wrong[frame["is_label_issue"]].mean() > 0.9


def test_nothing_is_written_and_nothing_global_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    vectors, given, _ = blobs(40)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    NoisyLabelClassifier(epochs=2, random_state=0).fit(vectors, given)
    assert list(tmp_path.iterdir()) == []
    assert torch.get_num_threads() == threads and torch.equal(torch.get_rng_state(), state)


def test_cautions_are_told_alike_with_and_without_a_folder(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = rng.integers(0, 3, 300)
    vectors = rng.normal(size=(300, 6)).astype(np.float32) + 0.1 * np.eye(3, 6, dtype=np.float32)[given]  # hardly told apart
    plain = NoisyLabelClassifier(epochs=3, random_state=0).fit(vectors, given)
    kept = NoisyLabelClassifier(epochs=3, random_state=0, run_dir=tmp_path / "run").fit(vectors, given)
    assert plain.cautions_[0] == UNKNOWN_WORDS and "300 samples are few" in plain.cautions_[1]
    assert plain.cautions_ == kept.cautions_ == tuple(json.loads((tmp_path / "run" / "estimate.json").read_text())["cautions"])


def test_a_run_folder_holds_the_same_model(tmp_path: Path) -> None:
    vectors, given, _ = blobs(60)
    settings = {"epochs": 3, "random_state": 0}
    plain = NoisyLabelClassifier(**settings).fit(vectors, NAMES[given])
    kept = NoisyLabelClassifier(run_dir=tmp_path / "run", **settings).fit(vectors, NAMES[given], ids=[f"n{i}" for i in range(60)])
    assert np.array_equal(plain.clean_probability_, kept.clean_probability_)
    said = json.loads((tmp_path / "run" / "estimate.json").read_text())["cautions"]
    assert any("60 samples are few" in words for words in said)
    assert said == list(kept.cautions_) == list(plain.cautions_) == list(plain.issues_.cautions)
    assert f"caution: {said[0]}" in repr(plain.issues_)
    model = load_model(tmp_path / "run", torch.device("cpu"))
    assert model.classes == tuple(NAMES)
    np.testing.assert_allclose(model.probabilities(torch.from_numpy(vectors)), kept.predict_proba(vectors), atol=1e-5)
    assert (tmp_path / "run" / "issues.csv").is_file()
    assert kept.label_issues_["id"][0] == "n0"


@pytest.mark.parametrize("form", ["bytes", "0..1", "0..255", "NHWC", "NCHW"])
def test_pictures_of_every_form(form: str) -> None:
    images, labels = stripes()
    X = {
        "bytes": images,
        "0..1": images / 255,
        "0..255": images.astype(np.float64),
        "NHWC": np.repeat(images[..., None], 3, 3),
        "NCHW": np.repeat(images[:, None], 3, 1),
    }[form]
    model = NoisyLabelClassifier(epochs=4, random_state=0).fit(X, labels)
    assert model.score(X, labels) > 0.9
    assert model.predict_proba(X[:1]).shape == (1, 2)
    with pytest.raises(ValueError):
        model.predict(X[:, :, :4])


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, (0.5, "none")),
        ({"settings": {"training.beta": 4, "views.policy": "auto"}}, (4.0, "auto")),
        ({"network": "small-wide"}, (4.0, "auto")),
    ],
)
def test_pictures_are_mixed_as_by_the_command_line(tmp_path: Path, told: dict[str, Any], expected: tuple[float, str]) -> None:
    images, labels = stripes(24)
    images = images.repeat(2, 1).repeat(2, 2)  # 16 px
    NoisyLabelClassifier(epochs=2, random_state=0, run_dir=tmp_path / "run", **told).fit(images, labels)
    config = RunFolder.open(tmp_path / "run").read_config()
    assert (config.training.beta, config.views.policy) == expected


def test_vectors_are_mixed_as_published(tmp_path: Path) -> None:
    vectors, given, _ = blobs(40)
    NoisyLabelClassifier(epochs=2, random_state=0, run_dir=tmp_path / "run").fit(vectors, given)
    config = RunFolder.open(tmp_path / "run").read_config()
    assert (config.training.beta, config.views.policy) == (4.0, "auto")


def test_bright_pictures_are_not_taken_for_dark_ones() -> None:
    images, labels = stripes(16)
    model = NoisyLabelClassifier(epochs=1, random_state=0).fit(images / 255, labels)
    with pytest.raises(ValueError, match="from 0 to 1"):
        model.predict(images.astype(np.float64))


def test_in_a_pipeline_and_cloned() -> None:
    vectors, given, truth = blobs(120)
    pipe = make_pipeline(StandardScaler(), NoisyLabelClassifier(epochs=6, random_state=0))
    assert clone(pipe).fit(vectors, given).score(vectors, truth) > 0.9


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "cpcc"}, "did you mean"),
        ({"cleaner": "cpc-awk"}, 'cleaner "cpc-awk" is not known .did you mean "cpc-awr"'),
        ({"cleaner": 3}, '"cleaner" must be text'),
        ({"settings": {"training.lrr": 1}}, "is not known"),
        ({"network": "small"}, "these are vectors"),
        ({"batch_size": 500}, "fewer than one batch.*in Python batch_size="),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], words: str) -> None:
    vectors, given, _ = blobs(30)
    with pytest.raises(ValueError, match=words):
        NoisyLabelClassifier(**settings).fit(vectors, given)


def test_ids_must_be_different() -> None:
    vectors, given, _ = blobs(30)
    with pytest.raises(ValueError, match="30 different names"):
        NoisyLabelClassifier(epochs=1).fit(vectors, given, ids=["a"] * 30)


def test_a_data_frames_index_names_the_samples() -> None:
    pandas = pytest.importorskip("pandas")
    vectors, given, _ = blobs(30)
    frame = pandas.DataFrame(vectors, index=[f"img{i}" for i in range(30)])
    model = NoisyLabelClassifier(epochs=1, random_state=0).fit(frame, given)
    assert model.label_issues_["id"].tolist() == frame.index.tolist()


def test_no_epochs_are_refused() -> None:
    vectors, given, _ = blobs(60)
    with pytest.raises(ValueError, match="epochs=0 trains nothing"):
        NoisyLabelClassifier(epochs=0).fit(vectors, given)
