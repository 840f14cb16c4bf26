"""The kill harness itself: what it must see. Kills of real commands are in `test_attack.py`; `make attack` does 200."""

import os
from pathlib import Path

import pytest

from attack import kills, worlds


def test_a_kill_that_loses_something_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that empties a file before it writes it again."""

    def careless(words: tuple[str, ...]) -> int:
        Path("run/precious").write_text("")
        handle = os.open("out", os.O_CREAT | os.O_WRONLY)
        os.write(handle, b"made")
        os.fsync(handle)
        Path("run/precious").write_text("old")
        return 0

    monkeypatch.setattr("attack.cage._called", careless)
    scene = kills.Scene("careless", "", ("careless",), ("out",))
    one = kills.Kills(scene, {"run/precious": b"old"}, tmp_path)
    assert one.count == 2
    assert all(any("lost: run/precious" in words for words in one.kill(call).failures) for call in (1, 2))


def test_worlds_of_all_scenes_are_there() -> None:
    assert {scene.world for scene in kills.SCENES} <= {*worlds.WORLDS, "stripes"}
