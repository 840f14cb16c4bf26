"""`report` and `apply`, called as a shell would."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Shell
from runs.made_runs import made_run
from runs.reviewed import decide


@pytest.fixture
def run(tmp_path: Path, finished: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_a_report_lies_in_the_run_unless_told_otherwise(tmp_path: Path, run: Path, shell: Shell) -> None:
    answer = shell("report", run)
    assert answer.code == 0 and f"report: {run / 'report.html'}" in answer.out
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "data:image/png" in text and "http://" not in text and "https://" not in text
    assert "was wrong" in text or "was right" in text or "No label is listed" in text
    assert shell("report", run).code == 0  # an older report gives way
    assert shell("report", run, "--out", tmp_path / "page.html").code == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text


def test_a_report_takes_no_other_files_place(tmp_path: Path, run: Path, shell: Shell) -> None:
    mine = tmp_path / "thesis.html"
    mine.write_text("dear")
    answer = shell("report", run, "--out", mine)
    assert answer.code == 2 and "choose another --out" in answer.err and mine.read_text() == "dear"
    assert shell("report", run, "--out", tmp_path).code == 2


def test_a_report_without_its_data_has_no_pictures_and_says_why(tmp_path: Path, shell: Shell) -> None:
    ids = [f"{k:05d}" for k in range(40)]
    made_run(tmp_path / "run", f"arrays:{tmp_path / 'gone.npz'}", ids, ["a", "b"] * 20, {ids[0]: "b", ids[1]: "a"})
    answer = shell("report", tmp_path / "run")
    assert answer.code == 0 and "gone.npz: the run's data are no longer there; say where they are now with --data" in answer.out
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<img" not in text and "00001" in text and "no pictures here" in text


def test_a_report_on_other_data_than_the_runs_has_no_pictures(tmp_path: Path, run: Path, shell: Shell) -> None:
    images = np.zeros((48, 8, 8), np.uint8)
    np.savez(tmp_path / "other.npz", images=images, labels=(np.arange(48) + 1) % 3)
    answer = shell("report", run, "--data", f"arrays:{tmp_path / 'other.npz'}")
    assert answer.code == 0 and "have changed" in answer.out


def test_no_run_no_report(tmp_path: Path, shell: Shell) -> None:
    assert shell("report", tmp_path / "nowhere").code == 2
    assert shell("apply", tmp_path / "nowhere", "--out", tmp_path / "x.csv").code == 2


def test_apply_takes_what_people_decided_and_nothing_else(tmp_path: Path, run: Path, shell: Shell) -> None:
    out = tmp_path / "new" / "data.npz"
    nobody = shell("apply", run, "--out", out)
    assert nobody.code == 2 and "labelsieve review" in nobody.err and "--auto" in nobody.err and not out.parent.exists()
    with (run / "issues.csv").open(newline="") as file:
        suspicious = next(row for row in csv.DictReader(file) if row["suggested_label"] != row["given_label"])
    name, suggested = suspicious["id"], suspicious["suggested_label"]
    decide(run, {name: ("accept", suggested)})
    answer = shell("apply", run, "--out", out)
    assert answer.code == 0 and "1 relabelled, 0 dropped, 48 samples left" in answer.out, answer.err
    with (out.parent / "changes.csv").open(newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["id"], row["old"], row["new"]) == (name, suspicious["given_label"], suggested)
    with np.load(out) as arrays:
        assert dict(zip(arrays["ids"].tolist(), map(str, arrays["labels"].tolist())))[name] == suggested
    again = shell("apply", run, "--out", out)
    assert again.code == 2 and "nothing is written over" in again.err


def test_apply_auto_is_refused_while_a_caution_stands(tmp_path: Path, run: Path, shell: Shell) -> None:
    decide(run, {"00003": ("drop", None)})
    refused = shell("apply", run, "--out", tmp_path / "labels.csv", "--auto")
    assert refused.code == 1 and "while the run has a caution" in refused.err and "labelsieve review" in refused.err
    assert not (tmp_path / "labels.csv").exists()


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_apply_by_decisions(tmp_path: Path, run: Path, shell: Shell, mark: str) -> None:
    decisions = tmp_path / "mine.csv"
    decisions.write_text("id,action,label\n00003,drop,\n00004,relabel,0\n".replace(",", mark))
    answer = shell("apply", run, "--out", tmp_path / "labels.csv", "--decisions", decisions)
    assert answer.code == 0, answer.err
    with (tmp_path / "labels.csv").open(newline="") as file:
        labels = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert len(labels) == 47 and "00003" not in labels and labels["00004"] == "0"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--out"),
        (("--out", "x.csv", "--copy", "--symlink"), "exclude each other"),
        (("--out", "x.csv", "--decisions", "nowhere.csv"), "nowhere.csv: no such file"),
        (("--out", "folder", "--decisions", "decided.csv"), ".csv or .npz"),
    ],
)
def test_apply_names_what_is_wrong(
    tmp_path: Path, run: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "decided.csv").write_text("id,action\n00003,drop\n")
    answer = shell("apply", run, *words)
    assert answer.code in (1, 2) and said in answer.err
    assert {path.name for path in tmp_path.iterdir()} == {"run", "decided.csv"}
