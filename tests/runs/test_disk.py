"""A disk that is full or cannot be written: an error in words, and whatever was whole before still is."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from labelsieve.errors import ToolError
from labelsieve.runs import atomic
from labelsieve.runs.folder import RunFolder
from labelsieve.train.start import start
from runs.file_limit import files_at_most
from runs.tiny import contents, tiny_config, to_the_end, whole


class FullDisk:
    """Lets `room` flushes through, then there is no space left; each write of ours ends in a flush."""

    def __init__(self, room: int) -> None:
        self.room, self.calls, self.fsync = room, 0, os.fsync

    def __call__(self, handle: int) -> None:
        self.calls += 1
        if self.calls > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.fsync(handle)


def test_a_disk_that_is_full_at_any_write_loses_nothing(
    tmp_path: Path, source: str, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config(source)
    disk = FullDisk(10**6)
    monkeypatch.setattr(os, "fsync", disk)
    whole(tmp_path / "counted", config)
    assert disk.calls > 30
    for room in range(0, disk.calls, 5):
        path = tmp_path / f"room{room}"
        monkeypatch.setattr(os, "fsync", FullDisk(room))
        with pytest.raises(ToolError, match=r"No space left on device.*free some space"):
            whole(path, config)
        monkeypatch.setattr(os, "fsync", disk.fsync)
        assert not list(path.rglob(".*")) if path.exists() else True
        if RunFolder(path).config.exists():
            to_the_end(path)
        else:
            assert not path.exists()
            whole(path, config)
        assert contents(path) == contents(finished), room


def test_a_real_limit_on_file_size_is_said_in_words(tmp_path: Path, source: str) -> None:
    """The kernel refuses, not a stand-in: tensors are larger than the limit, the configuration is not."""
    with files_at_most(20_000), pytest.raises(ToolError, match=r"File too large.*free some space"):
        start(tmp_path / "run", tiny_config(source))
    assert not (tmp_path / "run").exists()


PLACES: dict[str, Callable[[Path], Path]] = {
    "below a file": lambda tmp: tmp / "file" / "run",
    "proc": lambda tmp: Path("/proc/labelsieve/run"),
    "name too long": lambda tmp: tmp / ("x" * 300),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_cannot_be_written(tmp_path: Path, source: str, place: str) -> None:
    (tmp_path / "file").write_text("dear")
    path = PLACES[place](tmp_path)
    with pytest.raises(ToolError, match=r"could not be written.*choose another with --out") as error:
        start(path, tiny_config(source))
    assert str(path) in str(error.value)
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_read_only_place(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(ToolError, match=f"{os.strerror(number)}.*--out"):
        start(tmp_path / "run", tiny_config(source))


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    atomic.write_text(file, "old")

    def half(draft: Path) -> None:
        draft.write_text("ne")
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(ToolError, match="check the disk"):
        atomic.write_file(file, half)
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def half(draft: Path) -> None:
        (draft / "one").write_text("1")
        assert not (tmp_path / "folder").exists()
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ToolError, match="free some space"):
        atomic.write_folder(tmp_path / "folder", half)
    assert not list(tmp_path.iterdir())
