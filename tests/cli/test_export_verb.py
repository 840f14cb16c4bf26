"""`export` and `bench-cleanlab`, called as a shell would."""

import json
import shutil
from pathlib import Path

import pytest

from cli.conftest import TINY, Shell


def test_export_says_where_and_what(shell: Shell, finished: Path, tmp_path: Path) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    answer = shell("export", run, "--to", "huggingface", "--out", tmp_path / "handed on")
    assert answer.code == 0, answer.err
    assert f"{tmp_path / 'handed on'}: 48 samples" in answer.out
    again = shell("export", run, "--to", "huggingface", "--out", tmp_path / "handed on")
    assert again.code == 2 and "nothing is overwritten" in again.err
    wrong = shell("export", run, "--to", "onxx")
    assert wrong.code == 2 and 'did you mean "onnx"' in wrong.err
    assert shell("export", tmp_path / "nowhere", "--to", "onnx").code == 2


@pytest.mark.slow  # two processes start torch, one after the other
def test_bench_cleanlab_prints_a_table_and_writes_every_figure(shell: Shell, source: str, tmp_path: Path) -> None:
    pytest.importorskip("cleanlab")
    file = tmp_path / "figures.json"
    settings = [word for word in TINY if not word.startswith("data.noise")]
    pairs = [word for word in settings if word != "--set"]
    options = [word for pair in pairs for word in ("--set", pair)]
    answer = shell(
        "bench-cleanlab", source, "--noise", "sym:0.3", "--seeds", 1, "--folds", 2, "--fold-epochs", 1, "--json", file, *options
    )
    assert answer.code == 0, answer.err
    assert "cleanlab" in answer.out and "labelsieve" in answer.out
    (row,) = json.loads(file.read_text())["rows"]
    assert row["noise"] == "sym:0.3" and {"average_precision", "recall", "seconds", "peak_mib"} <= set(row["labelsieve"])
