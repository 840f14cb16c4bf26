"""Fifty clients deciding at once: no decision is lost, though the server is killed at the end, and saving is quick."""

from pathlib import Path

import pytest

from review.made import made_run
from studies.review_load import load


def test_a_few_clients_for_a_moment(tmp_path: Path) -> None:
    found = load(made_run(tmp_path / "run"), clients=8, seconds=1.5, pause=0.02)
    assert found.saved > 20 and found.lost == 0 and found.twice == 0
    assert "8 clients" in found.words()


@pytest.mark.slow
def test_fifty_clients_for_a_minute(tmp_path: Path) -> None:
    found = load(made_run(tmp_path / "run", count=2000), clients=50, seconds=60)
    assert found.lost == 0 and found.twice == 0 and found.saved > 5000
    assert found.p99 < 100, found.words()
