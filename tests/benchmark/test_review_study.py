"""The study of rounds, on a few striped pictures: the script answers by the truth, and figures are counted."""

import json
from pathlib import Path

import pytest

from cli.conftest import TINY, shell  # noqa: F401
from labelsieve.benchmark.review_study import compare
from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import UsageError
from runs.tiny import arrays_file, tiny_config


def test_plans_start_from_one_run_and_count_what_is_left(tmp_path: Path) -> None:
    config = tiny_config(arrays_file(tmp_path / "stripes.npz"))
    found = list(compare(config, [(4, 4), (8,)], tmp_path / "study", lambda words: None))
    assert [row["plan"] for row in found] == ["4 + 4", "8"] and [row["trainings"] for row in found] == [3, 2]
    first = DecisionLog(tmp_path / "study" / "4+4" / "1").all()
    assert [entry.id for entry in DecisionLog(tmp_path / "study" / "8" / "1").all()][:4] == [entry.id for entry in first]
    for row in found:
        assert row["decisions"] == 8 and row["left"] == row["wrong"] - row["found"] and row["wrong"] > 0
        assert 0 <= row["accuracy"] <= 100


def test_without_true_labels_nothing_can_be_measured(tmp_path: Path) -> None:
    config = tiny_config(arrays_file(tmp_path / "stripes.npz"), data__noise="none")
    with pytest.raises(UsageError, match="--noise"):
        list(compare(config, [(4,)], tmp_path / "study", lambda words: None))


def test_by_the_command(tmp_path: Path, shell) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    source = arrays_file(tmp_path / "stripes.npz")
    words = ("bench-review", source, "--noise", "sym:0.3", "--seeds", 1, "--plan", "5", "--json", tmp_path / "out.json", *TINY)
    answer = shell(*words)
    assert answer.code == 0, answer.err
    assert len(json.loads((tmp_path / "out.json").read_text())["rows"]) == 1
    assert "write 200,200" in shell("bench-review", source, "--plan", "five").err
