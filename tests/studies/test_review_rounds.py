"""The study of rounds, on a few striped pictures: the script answers by the truth, and figures are counted."""

import json
from pathlib import Path

import pytest
from test_known import ended

from cli.conftest import TINY
from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import UsageError
from runs.tiny import arrays_file, tiny_config
from studies import review_rounds


def test_plans_start_from_one_run_and_count_what_is_left(tmp_path: Path) -> None:
    config = tiny_config(arrays_file(tmp_path / "stripes.npz"))
    found = list(review_rounds.compare(config, [(4, 4), (8,)], tmp_path / "study", lambda words: None))
    assert [row["plan"] for row in found] == ["4 + 4", "8"] and [row["trainings"] for row in found] == [3, 2]
    first = DecisionLog(tmp_path / "study" / "4+4" / "1").all()
    assert [entry.id for entry in DecisionLog(tmp_path / "study" / "8" / "1").all()][:4] == [entry.id for entry in first]
    for row in found:
        assert row["decisions"] == 8 and row["left"] == row["wrong"] - row["found"] and row["wrong"] > 0
        assert 0 <= row["accuracy"] <= 100


def test_without_true_labels_nothing_can_be_measured(tmp_path: Path) -> None:
    config = tiny_config(arrays_file(tmp_path / "stripes.npz"), data__noise="none")
    with pytest.raises(UsageError, match="--noise"):
        list(review_rounds.compare(config, [(4,)], tmp_path / "study", lambda words: None))


def test_the_command_prints_means_and_keeps_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = arrays_file(tmp_path / "stripes.npz"), tmp_path / "out.json"
    words = [source, "--noise", "sym:0.3", "--seeds", "1", "--plan", "5", "--json", str(out), *map(str, TINY)]
    assert ended(review_rounds.main, words, monkeypatch) == 0
    assert len(json.loads(out.read_text())["rows"]) == 1


def test_a_plan_that_cannot_be_read_and_a_file_that_exists_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(review_rounds.main, ["digits", "--plan", "five"], monkeypatch) == 2
    assert "write 200,200" in capsys.readouterr().err
    (tmp_path / "kept.json").write_text("mine")
    assert ended(review_rounds.main, ["digits", "--json", str(tmp_path / "kept.json")], monkeypatch) == 2
    assert "that file exists" in capsys.readouterr().err and (tmp_path / "kept.json").read_text() == "mine"
