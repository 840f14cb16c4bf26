"""One finished sweep of the tiny data that tests may read and must not change."""

from pathlib import Path

import pytest

from reproduce.tiny_sweep import sweep


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory, source: str) -> Path:
    """Two seeds of each cleaner."""
    out = tmp_path_factory.mktemp("swept") / "sweep"
    report = sweep(source, out, [], seeds=2)
    assert len(report.done) == 6 and not report.failed
    return out
