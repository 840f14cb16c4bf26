"""Every method comes to the numbers that were recorded (golden.json): plain, recorded as for a GPU, and resumed.

Bit for bit on the kind of CPU that recorded them, nearly so on others.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from golden.measured import FILE, METHODS, digits_config, kind_of_machine, recorded, steps_config, trained

GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))
DIGESTS = ("model 0", "model 1", "issues", "scores")


def assert_golden(found: dict[str, Any], name: str, near: float) -> None:
    """`near` is how far numbers may be apart on another kind of CPU; what counts differently there is not compared."""
    wanted = GOLDEN[name]
    assert found.keys() == wanted.keys() and found["phases"] == wanted["phases"]
    if kind_of_machine() == GOLDEN["machine"]:
        assert found == wanted
        return
    for key in (key for key in wanted if key.startswith("length")):
        assert found[key] == pytest.approx(wanted[key], rel=near)
    for ours, theirs in zip(found["losses"], wanted["losses"]):
        assert ours.keys() == theirs.keys()
        for term in ours:
            assert ours[term] == pytest.approx(theirs[term], rel=near, abs=near)


@pytest.mark.parametrize("name", METHODS)
def test_twenty_steps(name: str, tmp_path: Path) -> None:
    assert_golden(trained(steps_config(name, tmp_path), tmp_path / "run"), f"steps {name}", 1e-2)


@pytest.mark.parametrize("name", METHODS)
def test_twenty_steps_recorded_and_replayed(name: str, tmp_path: Path) -> None:
    with recorded():
        assert_golden(trained(steps_config(name, tmp_path), tmp_path / "run"), f"steps {name}", 1e-2)


@pytest.mark.parametrize("pause", [1, 3, 5])
@pytest.mark.parametrize("name", METHODS)
def test_twenty_steps_resumed(name: str, pause: int, tmp_path: Path) -> None:
    assert_golden(trained(steps_config(name, tmp_path), tmp_path / "run", pause), f"steps {name}", 1e-2)


@pytest.mark.parametrize("name", METHODS)
def test_a_run_on_digits(name: str, tmp_path: Path) -> None:
    assert_golden(trained(digits_config(name), tmp_path / "run"), f"digits {name}", 0.2)


def test_a_changed_number_is_noticed() -> None:
    found = GOLDEN["steps cpc"]
    assert_golden(found, "steps cpc", 1e-2)
    with pytest.raises(AssertionError):
        assert_golden(found | {"losses": [{"labelled": [9.0, 9.0]}] * len(found["losses"])}, "steps cpc", 1e-2)
