"""The tiny data, and one finished sweep of it that tests may read and must not change."""

from pathlib import Path

import pytest

from reproduce.tiny_sweep import sweep
from runs.tiny import arrays_file


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return arrays_file(tmp_path_factory.mktemp("data") / "stripes.npz")


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory, source: str) -> Path:
    """Two seeds of each cleaner."""
    out = tmp_path_factory.mktemp("swept") / "sweep"
    report = sweep(source, out, [], seeds=2)
    assert len(report.done) == 6 and not report.failed
    return out
