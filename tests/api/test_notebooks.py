"""What notebooks do: run a cell again, interrupt it, switch torch's settings for all cells, look at what comes out."""

import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest
import torch

from api.made import blobs, stripes
from labelsieve import NoisyLabelClassifier, find_label_issues
from labelsieve.api.labels import BadInput
from labelsieve.errors import UsageError
from labelsieve.train import loop as train
from labelsieve.train import start


def quick(**told: Any) -> NoisyLabelClassifier:
    return NoisyLabelClassifier(**{"epochs": 4, "random_state": 0} | told)


def test_an_interrupted_fit_leaves_the_earlier_one_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, given, _ = blobs(90)
    model = quick().fit(vectors, np.array(["ant", "bee", "cat"])[given])
    before = model.predict(vectors)

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("labelsieve.api.classifier.each_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(vectors[:, :3], given > 0)
    assert model.n_features_in_ == 6 and (model.predict(vectors) == before).all()
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(vectors, np.zeros(90))
    assert (model.predict(vectors) == before).all()


@pytest.mark.parametrize("random_state", [0, None])
def test_a_fit_that_was_interrupted_in_its_folder_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, random_state: int | None
) -> None:
    vectors, given, _ = blobs(90)
    told = {"epochs": 6, "random_state": random_state, "settings": {"output.checkpoint_seconds": 0}}
    model, seen = quick(run_dir=tmp_path / "run", **told), list[int]()
    whole = train._recorded

    def interrupted(run: Any, measure: Any, epoch: Any) -> Any:
        seen.append(epoch.index)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return whole(run, measure, epoch)

    monkeypatch.setattr(train, "_recorded", interrupted)
    try:
        model.fit(vectors, given)
    except KeyboardInterrupt as error:
        kept = error  # as a notebook does, with all frames
    assert kept.__traceback__ is not None
    model.fit(vectors, given)
    assert seen[4] == seen[3] > 0  # not from the start, and the epoch that was lost again
    if random_state is not None:
        assert (quick(**told).fit(vectors, given).predict_proba(vectors) == model.predict_proba(vectors)).all()
    with pytest.raises(BadInput, match="is done; choose another run_dir"):
        model.fit(vectors, given)


def test_other_settings_or_samples_do_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, given, _ = blobs(90)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(train, "_recorded", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quick(run_dir=tmp_path / "run").fit(vectors, given)
    with pytest.raises(BadInput, match=r"other settings \(training.epochs: 4 there, 5 here\)"):
        quick(epochs=5, run_dir=tmp_path / "run").fit(vectors, given)
    with pytest.raises(BadInput, match="a run on other data; choose another run_dir"):
        quick(run_dir=tmp_path / "run").fit(2 * vectors, given)
    quick(run_dir=tmp_path / "run").fit(vectors, given)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(BadInput, match="is not a run; choose another run_dir"):
        quick(run_dir=tmp_path / "mine").fit(vectors, given)


def as_set() -> tuple[Any, ...]:
    modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    return *modes, torch.get_default_dtype(), torch.get_default_device()


@pytest.mark.parametrize("setting", ["no_grad", "inference_mode", "float64", "meta"])
def test_torchs_settings_for_other_cells_do_not_matter_and_stay(setting: str) -> None:
    vectors, given, _ = blobs(90)
    plain = quick().fit(vectors, given).predict_proba(vectors), find_label_issues(vectors, given).label_score
    contexts = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode, "meta": lambda: torch.device("meta")}
    try:
        if setting == "float64":
            torch.set_default_dtype(torch.float64)
        with contexts.get(setting, torch.enable_grad)():
            before = as_set()
            assert (quick().fit(vectors, given).predict_proba(vectors) == plain[0]).all()
            assert (find_label_issues(vectors, given).label_score == plain[1]).all()
            assert as_set() == before
    finally:
        torch.set_default_dtype(torch.float32)


def test_progress_is_plain_lines_and_silent_unless_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vectors, given, _ = blobs(90)
    quick().fit(vectors, given)
    assert capsys.readouterr() == ("", "")
    said = []
    for run_dir in (None, tmp_path / "run"):
        quick(verbose=True, run_dir=run_dir).fit(vectors, given)
        said.append(capsys.readouterr().out.splitlines())
    assert said[0] == said[1] and len(said[0]) == 4
    assert said[0][0].startswith("epoch 1/4  warm-up  loss ") and said[0][-1].startswith("epoch 4/4  ")
    assert all(line.isprintable() for line in said[0])


def test_a_table_is_shown_as_one() -> None:
    vectors, given, _ = blobs(90)
    shown = find_label_issues(vectors, np.array(["<b>", "a&b", "cat"])[given])._repr_html_()
    assert shown.count("<tr>") == 11 and "&lt;b&gt;" in shown and "<b>'" not in shown and "a&amp;b" in shown
    assert "90 samples, 3 classes" in shown and "Caution: 90 samples are few" in shown
    assert "color" not in shown and "style" not in shown  # the page's own, light or dark


def test_networks_are_reached_without_an_import_of_their_own() -> None:
    code = "import labelsieve; labelsieve.nets.register; assert 'nets' in dir(labelsieve)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_type_hints_take_arrays_and_columns() -> None:
    for call, name in ((find_label_issues, "ids"), (find_label_issues, "classes"), (NoisyLabelClassifier.fit, "ids")):
        told = get_origin(get_args(get_type_hints(call)[name])[0])
        assert all(isinstance(given, told) for given in (np.arange(3), ["a"], pd.Series([1]), pd.Index([1])))


def test_help_names_every_parameter() -> None:
    text = NoisyLabelClassifier.__doc__ or ""
    told = text[text.index("Parameters") : text.index("Attributes")]
    assert all(name in told for name in NoisyLabelClassifier().get_params())
    images, labels = stripes(16)
    fitted = [name for name in vars(quick(epochs=1).fit(images, labels)) if name.endswith("_")]
    assert {name for name in fitted if name not in text} == {"form_", "model_"}


def test_the_command_line_says_that_a_fits_data_are_in_no_file(tmp_path: Path) -> None:
    images, labels = stripes(16)
    quick(epochs=1, run_dir=tmp_path / "run").fit(images, labels)
    with pytest.raises(UsageError, match="the same fit with the same run_dir"):
        start.resume(tmp_path / "run")
    np.savez(tmp_path / "mine.npz", images=images, labels=labels)
    assert start.resume(tmp_path / "run", source=f"arrays:{tmp_path / 'mine.npz'}").done


def test_a_label_that_is_suggested_itself_is_not_called_another() -> None:
    """Of clean data the first of the list are such; "0, looks like 0" is no sentence."""
    vectors, _, truth = blobs(90)
    found = find_label_issues(vectors, truth)
    assert not found.is_label_issue.any() and "looks like" not in repr(found) and "no other suggested (score" in repr(found)
