"""Studies that are no verbs end as verbs do: one line that names what is missing and what to do, before anything is trained."""

import sys
from pathlib import Path

import numpy as np
import pytest

from labelsieve.config.resolve import resolve
from labelsieve.terminal.console import as_command
from runs.tiny import whole
from studies import bounds, judges, known_noise, plain_loop, scores_study


def ended(main: object, words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["study", *words])
    with pytest.raises(SystemExit) as stopped:
        as_command(main)  # type: ignore[arg-type]
    return int(stopped.value.code or 0)


@pytest.fixture
def arrays(tmp_path: Path) -> str:
    """Pictures of which neither the true labels nor a test set are known."""
    labels = np.arange(200) % 4
    np.savez(tmp_path / "a.npz", images=np.random.default_rng(0).integers(0, 255, (200, 16, 16), np.uint8), labels=labels)
    return f"arrays:{tmp_path / 'a.npz'}"


@pytest.mark.parametrize("study", [bounds, judges, plain_loop])
def test_unknown_truth_is_said_before_training(
    study: object, arrays: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [arrays, "--table", str(tmp_path / "t.csv")]
    words += ["--until", "3"] if study is plain_loop else ["--out", str(tmp_path / "run")]
    assert ended(study.main, words, monkeypatch) == 1  # type: ignore[attr-defined]
    said = capsys.readouterr().err
    told = ("no test pictures", "use data with") if study is bounds else ("true labels are not known", "--noise sym:0.2")
    assert said.startswith("error: ") and all(words in said for words in told)
    assert "Traceback" not in said and not (tmp_path / "t.csv").exists()


def test_what_is_misspelt_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(plain_loop.main, ["digitz", "--table", str(tmp_path / "t.csv"), "--until", "1"], monkeypatch) == 2
    assert 'did you mean "digits"' in capsys.readouterr().err


def test_the_plain_loop_overwrites_nothing_and_needs_wrong_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    assert ended(plain_loop.main, ["digits", "--table", str(table), "--until", "1"], monkeypatch) == 1
    assert "no label is wrong here" in capsys.readouterr().err and not table.exists()
    table.write_text("mine")
    words = ["digits", "--noise", "sym:0.2", "--table", str(table), "--until", "1"]
    assert ended(plain_loop.main, words, monkeypatch) == 2
    assert "t.csv: that file exists, and nothing is overwritten" in capsys.readouterr().err and table.read_text() == "mine"


def test_vectors_are_not_for_the_plain_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "v.npz", features=np.zeros((300, 5), np.float32), labels=np.arange(300) % 3)
    words = [f"embeddings:{tmp_path / 'v.npz'}", "--noise", "sym:0.2", "--table", str(tmp_path / "t.csv"), "--until", "1"]
    assert ended(plain_loop.main, words, monkeypatch) == 1
    assert "takes pictures" in capsys.readouterr().err


@pytest.mark.parametrize("study", [bounds, judges, known_noise, scores_study])
def test_draws_of_samples_are_refused_before_training(
    study: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They ended in a traceback after the warm-up or, with all of the training done, at the end."""
    words = ["digits", "--noise", "sym:0.4", "--out", str(tmp_path / "out"), "--set", "training.epoch_batches=3"]
    words += ["--table", str(tmp_path / "t.csv")] if study in (bounds, judges) else []
    assert ended(study.main, words, monkeypatch) == 2  # type: ignore[attr-defined]
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("error: training.epoch_batches is 3") and said.endswith("use --set training.epoch_batches=0")
    assert not (tmp_path / "t.csv").exists() and not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("study", [bounds, judges])
def test_a_run_that_is_done_is_told_and_leaves_no_table(
    study: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["training.epochs=2", "training.warmup=1", "data.limit=200", "engine.threads=1", "device=cpu"]
    whole(tmp_path / "run", resolve("digits", options={"data.noise": "sym:0.4"}, settings=settings))
    words = ["digits", "--noise", "sym:0.4", "--out", str(tmp_path / "run"), "--table", str(tmp_path / "t.csv")]
    words += [word for setting in settings for word in ("--set", setting)]
    assert ended(study.main, words, monkeypatch) in (1, 2)  # type: ignore[attr-defined]
    said = " ".join(capsys.readouterr().err.split())
    assert "this run is done" in said and said.endswith("name another --out") and not (tmp_path / "t.csv").exists()


def test_judges_that_would_learn_nothing_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["digits", "--noise", "sym:0.4", "--out", str(tmp_path / "run"), "--table", str(tmp_path / "t.csv"), "--until", "2"]
    words += ["--set", "training.epochs=4", "--set", "training.warmup=2", "--set", "data.limit=200"]
    assert ended(judges.main, words, monkeypatch) == 2
    assert "--until 2: the next epoch that judges can learn from is 3" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_noise_of_a_file_has_a_trail_too(tmp_path: Path) -> None:
    """Its path was taken for folders, which were not there when the training was over."""
    settings = ["training.epochs=3", "training.warmup=1", "data.limit=200", "engine.threads=1", "device=cpu"]
    whole(tmp_path / "run", resolve("digits", options={"data.noise": "sym:0.4"}, settings=settings))
    noise = f"file:{tmp_path / 'run' / 'noise.npz'}"
    scores_study.main("digits", tmp_path / "study", [noise], seeds=1, settings=settings)
    assert [path.name for path in (tmp_path / "study").iterdir()] == [
        "trail-" + noise.replace(":", "-").replace("/", "-") + "-0.npz"
    ]
