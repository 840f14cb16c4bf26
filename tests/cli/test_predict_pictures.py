"""`predict` on pictures of which some, or all, cannot be used; and `export` after the data changed."""

import csv
import io
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Shell
from cli.own import QUICK, broken, folder, striped


@pytest.fixture
def run(tmp_path: Path, shell: Shell) -> Path:
    answer = shell("train", folder(tmp_path / "mine"), "--out", tmp_path / "run", *QUICK)
    assert answer.code == 0, answer.err
    return tmp_path / "run"


def test_what_is_passed_over_is_not_what_was_looked_at(tmp_path: Path, shell: Shell, run: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    for k in range(3):
        striped(k, k).save(new / f"{k}.png")
    broken(new / "broken.png")
    (new / "notes.txt").write_text("not a picture")
    answer = shell("predict", run, new, "--out", tmp_path / "out.csv")
    assert answer.code == 0, answer.err
    assert "1 of 4 pictures could not be read" in answer.err and "passed over" in answer.err
    assert answer.err.splitlines()[-1] == f"predictions for 3 of 4 pictures: {tmp_path / 'out.csv'}" and not answer.out
    assert len(list(csv.DictReader((tmp_path / "out.csv").open(newline="")))) == 4


def test_names_that_a_spreadsheet_computes_are_told(
    tmp_path: Path, shell: Shell, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    striped(0, 0).save(tmp_path / "=cmd.png")
    monkeypatch.chdir(tmp_path)
    answer = shell("predict", run, "=cmd.png", "--out", "out.csv")
    assert 'note: the path "=cmd.png" looks like a formula to a spreadsheet' in answer.err and "out.csv" in answer.err
    assert "formula" not in shell("predict", run, "=cmd.png", "--out", "out.jsonl").err


def test_folders_behind_links_are_followed_where_that_is_allowed(tmp_path: Path, shell: Shell, run: Path) -> None:
    """As `train` reads such a folder: what it needed to be told works here, too, and is named."""
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "cat").symlink_to(tmp_path / "mine" / "cat")
    refused = shell("predict", run, linked)
    assert refused.code == 1 and "links out of the data" in refused.err and "--set pictures.outside=true" in refused.err
    allowed = shell("predict", run, linked, "--set", "pictures.outside=true")
    assert allowed.code == 0 and len(allowed.out.splitlines()) == 21, allowed.err
    striped(0, 0).save(linked / "lone.png")
    some = shell("predict", run, linked)
    assert some.code == 0 and len(some.out.splitlines()) == 2 and "--set pictures.outside=true" in some.err
    lone = shell("predict", run, linked / "lone.png", "--set", "pictures.outside=true")
    assert lone.code == 2 and "none of the paths leads to one" in lone.err


@pytest.mark.parametrize("end", ["\n", "\r\n", "\0"])
def test_names_may_come_from_standard_input(
    tmp_path: Path, shell: Shell, run: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    names = [tmp_path / "mine" / "cat" / "0.png", tmp_path / "mine" / "dog" / "1.png"]
    text = "".join(f"{name}{end}" for name in names)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    answer = shell("predict", run, "-", tmp_path / "mine" / "cat" / "2.png")
    assert answer.code == 0, answer.err
    seen = [row["path"] for row in csv.DictReader(io.StringIO(answer.out))]
    assert seen == [*map(str, names), str(tmp_path / "mine" / "cat" / "2.png")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    empty = shell("predict", run, "-")
    assert empty.code == 2 and "standard input holds no names" in empty.err


def test_a_named_file_that_cannot_be_read_is_told_to_scripts(tmp_path: Path, shell: Shell, run: Path) -> None:
    """As `cat` does: all others are there, and the command did not do all that it was asked for."""
    cat, cut = tmp_path / "mine" / "cat", broken(tmp_path / "cut.png")
    answer = shell("predict", run, cat, cut, "--out", tmp_path / "out.csv")
    assert answer.code == 3 and "predictions for 20 of 21 pictures" in answer.err
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 22
    whole = shell("predict", run, cat, "--out", tmp_path / "whole.csv")
    assert whole.code == 0 and whole.err.splitlines() == [f"predictions for 20 pictures: {tmp_path / 'whole.csv'}"]
    assert shell("predict", run, cat).err == ""  # what goes to a pipe needs no line about itself


def test_where_nothing_could_be_read_no_file_is_left(tmp_path: Path, shell: Shell, run: Path) -> None:
    answer = shell("predict", run, broken(tmp_path / "only.png"), "--out", tmp_path / "out.csv")
    assert answer.code == 1 and "none of the 1 pictures could be read" in answer.err
    assert not (tmp_path / "out.csv").exists()


def test_an_export_is_not_put_among_the_pictures(tmp_path: Path, shell: Shell, run: Path) -> None:
    """Where it would be a class of the next run."""
    answer = shell("export", run, "--to", "huggingface", "--out", tmp_path / "mine" / "export")
    assert answer.code == 2 and "it lies inside the data" in answer.err and not (tmp_path / "mine" / "export").exists()


def test_probabilities_for_cleanlab_go_with_their_samples(tmp_path: Path, shell: Shell, run: Path) -> None:
    """More pictures than then: each sample has its own row all the same. Fewer: that is said."""
    assert shell("export", run, "--to", "cleanlab", "--out", tmp_path / "before").code == 0
    striped(7, 0).save(tmp_path / "mine" / "cat" / "0000.png")  # first of all
    assert shell("export", run, "--to", "cleanlab", "--out", tmp_path / "after").code == 0
    before, after = (np.load(tmp_path / name / "pred_probs.npy") for name in ("before", "after"))
    assert np.allclose(before, after, atol=1e-6)
    (tmp_path / "mine" / "cat" / "3.png").unlink()
    answer = shell("export", run, "--to", "cleanlab", "--out", tmp_path / "fewer")
    assert answer.code == 1 and "1 of the run's 60 samples are no longer there" in answer.err and "cat/3.png" in answer.err
    assert not (tmp_path / "fewer").exists()
    for target in ("fiftyone", "labelstudio", "huggingface"):  # which could show another picture in its place
        answer = shell("export", run, "--to", target, "--out", tmp_path / target)
        assert answer.code == 1 and '"cat/3.png" is no longer there' in answer.err and not (tmp_path / target).exists()
