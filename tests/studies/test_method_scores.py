"""Methods' rankings: measured as the list has them, and the table's means."""

import pytest

from labelsieve.errors import ToolError
from studies.method_scores import measured, table


def test_the_lists_order_is_measured_and_the_opinion_beside_it() -> None:
    asked = {"data": "digits", "method": "ce", "noise": "sym:0.4", "seed": 1, "limit": 150, "epochs": 2}
    found = measured(asked)
    assert 0.4 < found["score"] <= 1 and 0.4 < found["opinion"] <= 1 and found["cpu_seconds"] > 0
    assert {key: found[key] for key in asked} == asked


def test_the_table_has_means_over_seeds() -> None:
    rows = [{"method": "ce", "noise": noise, "score": score, "opinion": score / 2, "cpu_seconds": 3}
            for noise, score in (("sym:0.2", 0.5), ("sym:0.2", 0.7), ("sym:0.4", 0.8))]  # fmt: skip
    header, _, row = table(rows)
    assert header == "| | sym:0.2 | sym:0.4 | CPU s of a run |"
    assert row == "| `ce` | 0.600 (0.300) | 0.800 (0.400) | 3 |"
    assert table(rows)[1].count("---") == 4


def test_noise_has_to_be_made() -> None:
    with pytest.raises(ToolError, match="no label is wrong here"):
        measured({"data": "digits", "method": "ce", "noise": "none", "seed": 0, "limit": 60, "epochs": 1})
