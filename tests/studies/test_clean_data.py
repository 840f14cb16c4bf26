"""Clean data must stay clean: without noise, as good as plain training, and next to nothing flagged."""

from pathlib import Path

import pytest

from labelsieve.config.resolve import resolve
from studies.known_noise import trained


@pytest.mark.slow
def test_clean_digits_stay_clean(tmp_path: Path) -> None:
    """The issue's bounds: accuracy within one point of `ce`, under 3 % of the labels flagged."""
    ce, cpc = (trained(resolve("digits", options={"method": method}), None, None) for method in ("ce", "cpc"))
    assert cpc["accuracy"][-1] >= ce["accuracy"][-1] - 1
    assert cpc["flagged"] < 0.03
    assert cpc["estimate"]["high"] < 0.05
