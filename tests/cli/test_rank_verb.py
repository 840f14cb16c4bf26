"""`labelsieve rank`: probabilities in a file, issues.csv as everywhere out of it."""

from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Shell
from labelsieve.issues.table import COLUMNS, read_issues

TRUTH = np.arange(120) % 3
GIVEN = np.where(np.arange(120) < 12, (TRUTH + 1) % 3, TRUTH)
PROBS = np.full((120, 3), 0.05) + 0.85 * np.eye(3)[TRUTH]
NAMES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.savez(tmp_path / "p.npz", pred_probs=PROBS, labels=NAMES[GIVEN], classes=NAMES)
    return tmp_path / "p.npz"


def test_the_list_is_as_everywhere(shell: Shell, file: Path, tmp_path: Path) -> None:
    found = shell("rank", file, "--out", tmp_path / "list.csv")
    assert (
        found.code == 0 and "120 labels of 3 classes: 12 are listed" in found.out and "caution: 120 samples are few" in found.out
    )
    columns = read_issues(tmp_path / "list.csv")
    assert set(columns) == set(COLUMNS) and columns["is_label_issue"] == [True] * 12 + [False] * 108
    assert sorted(columns["id"][:12]) == [f"{row:05d}" for row in range(12)]
    assert columns["suggested_label"][:12] == [NAMES[TRUTH[int(name)]] for name in columns["id"][:12]]
    assert shell("rank", file, "--out", tmp_path / "list.parquet").code == 0
    again = shell("rank", file, "--out", tmp_path / "list.csv")
    assert again.code == 2 and "exists" in again.err


def test_a_table_from_elsewhere(shell: Shell, tmp_path: Path) -> None:
    rows = "".join(f"{n};{NAMES[g]};{a:.4f};{b:.4f};{c:.4f}\n" for n, (g, (a, b, c)) in enumerate(zip(GIVEN, PROBS)))
    (tmp_path / "p.csv").write_text("nr;kind;cat;dog;owl\n" + rows)
    said = ("--label-column", "kind", "--id-column", "nr", "--classes", "cat,dog,owl")
    assert shell("rank", tmp_path / "p.csv", *said, "--out", tmp_path / "o.csv").code == 0
    assert set(read_issues(tmp_path / "o.csv")["id"][:12]) == {str(row) for row in range(12)}


def test_what_is_wrong_is_one_line(shell: Shell, file: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "q.npz", pred_probs=PROBS * 7, labels=GIVEN)
    found = shell("rank", tmp_path / "q.npz", "--out", tmp_path / "o.csv")
    assert found.code == 1 and "row 0 adds up to 7, not to 1" in found.err and not (tmp_path / "o.csv").exists()
    assert "end the name so" in shell("rank", file, "--out", tmp_path / "o.txt").err
