"""Two busy cores and two torch threads are slower than one: tests run on one thread, on purpose."""

import pytest
import torch

torch.set_num_threads(1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says loudly what was skipped for want of a browser; here, for tests may run in other processes than the one that speaks."""
    reports = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    skipped = [reason for reason in reports if "NO BROWSER" in reason]
    if skipped:
        why = skipped[0].partition("NO BROWSER: ")[2].removesuffix("')")
        terminalreporter.write_line(f"!!! {len(skipped)} BROWSER TESTS WERE SKIPPED: {why}", red=True, bold=True)
