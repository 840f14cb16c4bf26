"""The study of features, on digits: a row for each case, nothing run twice, and a summary that counts what it says."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from studies.features import main, summary


def test_cases_are_measured_once_and_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cleanlab")
    digits = load_digits()
    np.savez(tmp_path / "digits.npz", features=(digits.data / 16).astype(np.float32), labels=digits.target)
    out = tmp_path / "rows.jsonl"
    main([tmp_path / "digits.npz"], size=[200], seed=[0], rate=[0.2], out=out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["noise"] for row in rows] == ["clean", "confuse", "sym-other"]
    clean, confused, random = rows
    assert clean["ap"] is None and clean["wrong"] == 0 and clean["right_after"] <= clean["right_before"] == 1
    assert random["wrong"] == pytest.approx(0.2, abs=0.01) and random["ap"] > 0.9 and confused["bound"] > 0.5
    assert all(sum(of for of, _ in row["bands"]) == 200 for row in rows)
    capsys.readouterr()
    main([tmp_path / "digits.npz"], size=[200], seed=[0], rate=[0.2], out=out)
    assert len(out.read_text().splitlines()) == 3
    told = capsys.readouterr().out
    assert "| digits | 3 |" in told and "interval held" in told and "yield held" in told


def test_a_summary_names_what_is_lost_and_missed() -> None:
    row = {
        "case": "a", "set": "s", "noise": "n", "rate": 0.1, "wrong": 0.1, "ap": 0.5, "cleanlab_ap": 0.6, "bound": 0.7,
        "list_precision": None, "list_recall": 0.2, "interval": [0.2, 0.25, 0.3], "yields": [[50, 1.0, 4.0, 5]],
        "suggested": {"relabel": [4, 3], "review": [2, 1]}, "bands": [[2, 1]] * 10, "auto": 4, "right_before": 0.9,
        "right_after": 0.8, "seconds": 1.0, "cleanlab_seconds": 2.0,
    }  # fmt: skip
    told = "\n".join(summary([row]))
    assert (
        "lost rows 1 of 1: a" in told and "interval held 0 of 1" in told and "missed: a" in told and "yield held 0 of 1" in told
    )
    assert "1.25 / 0.75" in told and "relabel 3 of 4, review 1 of 2" in told and "fewer were right in 1: a" in told
