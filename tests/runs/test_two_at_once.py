"""Two commands that write to one place at once, or a file that comes meanwhile: one of them is refused, neither is harmed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from labelsieve.errors import ToolError
from labelsieve.runs import atomic

WRITES: dict[str, tuple[Callable[..., None], Callable[[Path], Path]]] = {
    "folder": (atomic.write_folder, lambda draft: draft / "content"),
    "file": (atomic.write_new, lambda draft: draft),
}


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("kind", WRITES)
def test_a_draft_that_is_being_written_is_left_alone(tmp_path: Path, kind: str) -> None:
    put, content = WRITES[kind]
    out = tmp_path / "out"

    def slow(draft: Path) -> None:
        content(draft).write_text("first")
        with pytest.raises(ToolError, match="out: another process is writing it"):
            put(out, lambda other: content(other).write_text("second"))

    put(out, slow)
    assert content(out).read_text() == "first" and names(tmp_path) == ["out"]


@pytest.mark.parametrize("kind", WRITES)
def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path, kind: str) -> None:
    put, content = WRITES[kind]
    draft = tmp_path / ".out.draft"
    if kind == "folder":
        draft.mkdir()
        (draft / "half").write_text("half")
    else:
        draft.write_text("half")
    put(tmp_path / "out", lambda made: content(made).write_text("whole"))
    assert content(tmp_path / "out").read_text() == "whole" and names(tmp_path) == ["out"]
    assert kind == "file" or names(tmp_path / "out") == ["content"]


@pytest.mark.parametrize("kind", WRITES)
def test_what_came_meanwhile_is_not_written_over(tmp_path: Path, kind: str) -> None:
    put, content = WRITES[kind]
    out = tmp_path / "out"

    def slow(draft: Path) -> None:
        content(draft).write_text("late")
        if kind == "folder":
            out.mkdir()
        content(out).write_text("dear")

    with pytest.raises(ToolError, match="out: "):
        put(out, slow)
    assert content(out).read_text() == "dear" and names(tmp_path) == ["out"]


def test_a_disk_without_links_gets_its_file_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*words: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    atomic.write_new_text(tmp_path / "out", "whole")
    assert (tmp_path / "out").read_text() == "whole" and names(tmp_path) == ["out"]


@pytest.mark.parametrize("way", ["link", "dangling", "other"])
@pytest.mark.parametrize("kind", WRITES)
def test_what_lies_where_the_draft_belongs_is_named_and_stays(tmp_path: Path, kind: str, way: str) -> None:
    """A folder's draft was said to be the fault of the disk."""
    draft, precious = tmp_path / ".out.draft", tmp_path / "precious"
    precious.mkdir()
    (precious / "mine").write_text("mine")
    if way == "other":
        draft.mkdir() if kind == "file" else draft.write_text("mine")
    else:
        draft.symlink_to(precious if way == "link" else tmp_path / "nowhere")
    with pytest.raises(ToolError, match=r"out\.draft: a .* is there, where the draft of out belongs; remove it, or"):
        WRITES[kind][0](tmp_path / "out", lambda place: None)
    assert os.path.lexists(draft) and (precious / "mine").read_text() == "mine" and not (tmp_path / "out").exists()
