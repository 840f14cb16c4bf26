"""The mean of the last ten epochs: of ten where there are ten, without the warm-up where there is more than that."""

from types import SimpleNamespace
from typing import Any

import pytest

from labelsieve.reproduce.results import Final
from labelsieve.runs.findings import Tail, number, opinion, rankings, tail
from labelsieve.terminal.training import summary


def lines(warm: int, later: int, phase: str = "prototypes") -> list[dict[str, Any]]:
    """Epoch i is i % right."""
    phases = ["warm-up"] * warm + [phase] * later
    found: list[dict[str, Any]] = [
        {"epoch": i, "phase": name, "accuracy": {"both": float(i)}} for i, name in enumerate(phases, 1)
    ]
    return [*found, {"epoch": len(found), "phase": "final"}]


@pytest.mark.parametrize(
    ("warm", "later", "expected"),
    [(10, 20, Tail(25.5, 10)), (3, 10, Tail(8.5, 10)), (10, 4, Tail(12.5, 4)), (1, 1, Tail(2.0, 1)), (12, 0, Tail(7.5, 10))],
)
def test_the_warm_up_is_left_out_of_short_runs(warm: int, later: int, expected: Tail) -> None:
    assert tail(lines(warm, later)) == expected


def test_nothing_was_measured() -> None:
    assert tail([]) is None and tail(lines(2, 2), "accuracy.prototypes") is None


def test_of_two_networks_the_mean_is_taken_where_both_are_known() -> None:
    line = {"epoch": 3, "accuracy": {"both": 50.0}, "auc_loss": [0.5, 0.7], "auc_prototype": [None, 0.9], "none": []}
    assert number(line, "accuracy.both") == 50 and number(line, "auc_loss") == pytest.approx(0.6)
    for missing in ("auc_prototype", "accuracy.first", "loss.labelled", "epoch.both", "none"):
        assert number(line, missing) is None


def test_rankings_are_of_every_opinion_that_was_measured() -> None:
    line = {"auc_loss": [0.5, None], "auc_prototype": [None, None], "auc_memory": [0.75], "loss": {"auc_x": 1}}
    assert rankings(line) == {"auc_loss": [0.5], "auc_memory": [0.75]}
    assert [opinion(key) for key in ("auc_loss", "auc_memory")] == ["mixture", "memory"]


def test_a_mean_of_fewer_says_so() -> None:
    assert Final(1.0, 2.0, 3.0, 4).tail_words == "2.00 (of 4)"
    assert Final(1.0, 2.0, 3.0).tail_words == "2.00"
    assert Final(None, None, 3.0).tail_words == ""


@pytest.mark.parametrize(("warm", "later", "mean_of"), [(10, 20, 10), (4, 3, 3), (4, 1, None)])
def test_a_runs_summary_has_it(warm: int, later: int, mean_of: int | None) -> None:
    """A single epoch's mean is what the last epoch's accuracy says already."""
    found = summary(SimpleNamespace(metrics=lines(warm, later)))  # type: ignore[arg-type]
    assert found.get("mean_of") == mean_of and found["accuracy_last"] == found["accuracy_best"] == warm + later
