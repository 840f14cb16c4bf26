"""issues.csv read back with types, and as Parquet: the same values either way."""

import math
from pathlib import Path

import numpy as np
import pytest

from issues.test_table import AWKWARD
from labelsieve.errors import ToolError
from labelsieve.issues import table
from labelsieve.issues.table import COLUMNS, LabelIssues, can_write_parquet, rank, read_issues, write_parquet


def awkward() -> LabelIssues:
    count = len(AWKWARD)
    draws = np.random.default_rng(0)
    evidence = {"loss": draws.random(count), "score_trend": np.full(count, np.nan)}
    probs, chances = draws.dirichlet(np.ones(count), count), draws.random((2, count))
    return rank(AWKWARD, AWKWARD, np.arange(count), probs, chances, 0.5, paths=AWKWARD, evidence=evidence)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "issues.csv"
    path.write_bytes("".join(awkward().csv_lines()).encode())
    return path


def test_what_was_written_comes_back_with_types(file: Path) -> None:
    found, told = read_issues(file), awkward().columns
    assert list(found) == list(COLUMNS)
    for name, kind in COLUMNS.items():
        assert all(type(value) is kind for value in found[name])
        if kind is float:
            assert np.allclose(found[name], told[name], atol=1e-6, equal_nan=True)
        else:
            assert found[name] == told[name]


def test_parquet_holds_the_same(file: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert can_write_parquet()
    columns = read_issues(file)
    write_parquet(columns, tmp_path / "issues.parquet")
    table = parquet.read_table(tmp_path / "issues.parquet")
    assert table.column_names == list(COLUMNS)
    for name, kind in COLUMNS.items():
        values = table.column(name).to_pylist()
        expected = [None if kind is float and math.isnan(value) else value for value in columns[name]]
        assert values == expected
    assert str(table.schema.field("label_score").type) == "double" and str(table.schema.field("networks_agree").type) == "bool"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("label_score", "score", 'the column "label_score" is missing'),
        ("True", "perhaps", "row .*perhaps"),
        ("True", "1", "\"is_label_issue\" is '1'"),  # no number and nothing stands for a truth value
        ("True", "", "\"is_label_issue\" is ''"),
        ("0.", "0,", "row "),
    ],
)
def test_damage_is_named(file: Path, old: str, new: str, words: str) -> None:
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ToolError, match=words):
        read_issues(file)


def test_blocks_are_put_together_and_rows_counted_through(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_issues(file)
    file.write_bytes(file.read_bytes() + b"\r\n\n")  # blank lines are no rows
    monkeypatch.setattr(table, "BLOCK", 2)
    parts = read_issues(file)
    assert all(np.array_equal(parts[name], whole[name], equal_nan=True) for name in COLUMNS if COLUMNS[name] is float)
    assert all(parts[name] == whole[name] for name in COLUMNS if COLUMNS[name] is not float)
    file.write_bytes(file.read_bytes() + b"a row that ends early,\n")
    with pytest.raises(ToolError, match=f'row {len(AWKWARD) + 1}: "given_label" is None'):
        read_issues(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="issues.csv: no such file"):
        read_issues(tmp_path / "issues.csv")
