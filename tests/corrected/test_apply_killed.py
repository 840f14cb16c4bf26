"""`apply --out o.csv` makes two files: killed at any moment, the same command given again makes both."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.pictures.made import class_folders
from labelsieve.corrected.apply import apply_run
from labelsieve.errors import ToolError, UsageError
from labelsieve.issues.policy import Correction
from labelsieve.runs import atomic
from runs.made_runs import as_advised, files_in, made_run

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    tree = class_folders(tmp_path / "source", ("ant", "bee"))
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.png"))
    made_run(tmp_path / "run", f"pictures:{tree}", names, [name.partition("/")[0] for name in names], {"ant/0.png": "bee"})
    return tmp_path / "run"


CALLS = ("open", "link", "unlink", "fsync", "rename", "replace")


def killed_in(when: int, work: Callable[[], Any]) -> bool:
    """Do the work in a process that ends hard before its call number `when` of CALLS; whether it did not come to that."""
    child = os.fork()
    if child == 0:
        left = [when]

        def counted(whole: Callable[..., Any]) -> Callable[..., Any]:
            def call(*words: Any, **named: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return whole(*words, **named)

            return call

        for name in CALLS:
            setattr(os, name, counted(getattr(os, name)))
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("more", ["the same decisions", "other decisions"])
def test_an_apply_killed_at_any_call_is_repaired_by_the_next(tmp_path: Path, run: Path, more: str) -> None:
    decisions = as_advised(run)
    after = decisions if more == "the same decisions" else decisions | {"bee/1.png": Correction("drop", None)}
    (tmp_path / "whole").mkdir()
    apply_run(run, tmp_path / "whole" / "o.csv", after)
    expected = files_in(tmp_path / "whole")
    assert set(expected) == {"o.csv", "changes.csv"}
    halves, when = 0, 0
    while True:
        out = tmp_path / f"killed{when}" / "o.csv"
        out.parent.mkdir()
        whole = killed_in(when, lambda out=out: apply_run(run, out, decisions))  # type: ignore[misc]
        there = {name for name in ("o.csv", "changes.csv") if (out.parent / name).exists()}
        halves += there == {"changes.csv"}
        assert there != {"o.csv"}
        if not there >= {"o.csv"}:
            apply_run(run, out, after)
            assert {name: content for name, content in files_in(out.parent).items() if name[:1] != "."} == {
                name: content.replace(b"/whole/", f"/killed{when}/".encode()) for name, content in expected.items()
            }
        else:
            with pytest.raises(UsageError, match="it exists"):
                apply_run(run, out, after)
        assert set(files_in(out.parent)) == {"o.csv", "changes.csv"}, "what a killed one left hidden is cleared away, too"
        if whole:
            break
        when += 1
    assert halves and when > 20


def test_what_an_earlier_apply_left_beside_stays(tmp_path: Path, run: Path) -> None:
    """Only the text of a file that never came is taken back."""
    out, changes = tmp_path / "there" / "o.csv", tmp_path / "there" / "changes.csv"
    out.parent.mkdir()
    apply_run(run, out, as_advised(run))
    content = changes.read_bytes()
    (out.parent / ".o.csv.changes.csv.draft").write_bytes(content)  # killed before its drafts were cleared away
    (out.parent / ".o.csv.draft").hardlink_to(out)
    out.rename(tmp_path / "mine.csv")
    with pytest.raises(UsageError, match=r"changes\.csv: it exists"):
        apply_run(run, out, as_advised(run))
    assert changes.read_bytes() == content


def test_a_changes_file_that_comes_meanwhile_is_not_touched(tmp_path: Path) -> None:
    changes = tmp_path / "changes.csv"

    def write(draft: Path) -> None:
        draft.write_text("labels")
        changes.write_text("the same")

    with pytest.raises(ToolError, match="it appeared in the meantime"):
        atomic.write_pair(tmp_path / "o.csv", write, changes, "the same")
    assert files_in(tmp_path) == {"changes.csv": b"the same"}
