"""The short form of `make attack`: what failed once, and a few new inputs. The long form tries 20,000."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("hypothesis")
pytest.importorskip("pyarrow")
TESTS = Path(__file__).parents[1]
WORLDS = "photos,fashion,cifar"
FOUND = sorted((TESTS / "attack" / "found").glob("*.json"))


def attacked(place: Path, *words: str) -> tuple[str, list[dict[str, object]]]:
    """`python -m attack`, whose failures are kept below `place`: what it said, and they."""
    path = os.pathsep.join((str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")))
    asked = dict.fromkeys(("--cases", "--kills", "--reviews", "--requests"), "0") | dict(zip(words[::2], words[1::2]))
    command = [sys.executable, "-m", "attack", "--workers", "1", "--keep", str(place / "kept")]
    ended = subprocess.run(
        [*command, *(word for pair in asked.items() for word in pair)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        cwd=place,
    )
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout + ended.stderr, [json.loads(path.read_text()) for path in (place / "kept").glob("*.json")]


def test_what_failed_once_does_not_fail_again(tmp_path: Path) -> None:
    said, failed = attacked(tmp_path, "--again", str(TESTS / "attack" / "found"))
    assert f"{len(FOUND)} inputs" in said and not failed, said


def test_a_few_new_inputs_break_nothing(tmp_path: Path) -> None:
    said, failed = attacked(tmp_path, "--cases", "100", "--worlds", WORLDS)
    assert "100 inputs" in said and not failed, said


def test_commands_and_servers_that_are_killed_lose_nothing_and_go_on(tmp_path: Path) -> None:
    said, _ = attacked(
        tmp_path, "--kills", "12", "--scenes", "apply, a table;decisions in;training", "--reviews", "1", "--requests", "150"
    )
    assert "12 kills" in said and "failed: 0" in said, said
    assert "under 2 kills of the server; 0 failures" in said, said
    assert "151 requests to the review page" in said and said.count("; 0 failures") == 2, said


def test_a_number_gives_the_same_case_whatever_came_before_it() -> None:
    from attack.aims import numbered

    worlds = {"half run": {"run/estimate.json": b'{"a": [1, {"b": null}]}'}}
    first = [numbered(worlds, 0, number) for number in range(400)]
    assert first[::-1] == [numbered(worlds, 0, number) for number in reversed(range(400))]


def test_the_attack_sees_what_it_looks_for(tmp_path: Path) -> None:
    """A command that does everything wrong, in place of ours."""
    from attack.cage import Cage

    room = tmp_path / "room"
    (room / "outside").mkdir(parents=True)
    cage, before = Cage(), os.getcwd()  # noqa: PTH109
    monkey = pytest.MonkeyPatch()
    try:
        for harm, seen in HARM.items():
            monkey.setattr("attack.cage._called", lambda words, harm=harm: exec(harm, {}) or 0)
            ended = cage.run((), room, room)
            cage.end()
            assert any(one.startswith(seen) for one in ended.noted), (harm, ended)
        monkey.setattr("attack.cage._called", lambda words: bytearray(3 * 2**30) and 0)
        assert cage.run((), room, room).too_large
        monkey.setattr("attack.cage.SECONDS", 0.2)
        monkey.setattr("attack.cage._called", lambda words: [None for _ in iter(int, 1)])
        assert cage.run((), room, room).too_long
    finally:
        cage.end()
        monkey.undo()
    assert os.getcwd() == before  # noqa: PTH109


HARM = {
    "open('outside/x', 'w')": "outside: open",
    "import os; os.mkdir('../beside')": "outside: os.mkdir",
    "import os; os.symlink('x', 'outside/l')": "outside: os.symlink",
    "import os; os.system('true')": "run: os.system",
    "import pickle; pickle.loads(b'cos\\ngetcwd\\n.')": "run: pickle.find_class",
    "import sys; sys.audit('socket.connect', None, ('192.0.2.1', 9))": "calls: socket.connect",
}
