"""Names that would command a terminal: they are shown, not obeyed."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from cli.conftest import Shell
from labelsieve.terminal.console import PlainConsole, visible

HOSTILE = "\x1b]0;owned\x07\x1b[2Jcat\x9b31m\u202egnp"
SHOWN = "\\x1b]0;owned\\x07\\x1b[2Jcat\\x9b31m\\u202egnp"


def test_what_a_terminal_would_obey_is_written_out() -> None:
    assert visible(HOSTILE) == SHOWN
    assert visible("a line\n\ta [b] :smile: é 猫 👨‍👩‍👧 \u00a0%") == "a line\n\ta [b] :smile: é 猫 👨‍👩‍👧 \u00a0%"


def test_lines_and_cells_of_the_console_are_shown() -> None:
    out = PlainConsole(file=io.StringIO(), force_terminal=True, color_system=None, width=200)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    out.print(f"note: {HOSTILE} [b]:smile:")
    out.print(table)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert text.count(SHOWN) == 4 and "[b]:smile:" in text and not {"\x1b]", "\x07", "\x9b", "\u202e"} & set(text)
    assert "owned\x07" not in text and "\x1b[2J" not in text


def test_errors_are_shown(shell: Shell, tmp_path: Path) -> None:
    answer = shell("inspect", tmp_path / HOSTILE)
    assert answer.code and SHOWN in answer.err and "\x1b" not in answer.err


LONG = "x" * 5000
OF_LONG = (
    ("inspect", LONG),
    ("train", LONG),
    ("predict", LONG, LONG),
    ("report", LONG),
    ("rank", LONG),
    ("train", "digits", "--trusted", LONG, "--out", "run"),
)


@pytest.mark.parametrize("words", OF_LONG)
def test_a_path_that_no_system_takes_is_an_error_in_words(shell: Shell, words: tuple[str, ...]) -> None:
    answer = shell(*words)
    assert answer.code == 1 and "xxx...: File name too long; check the path" in answer.err and len(answer.err) < 400, answer.err


def test_processes_that_a_verb_starts_do_not_import_from_the_working_folder(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`review` reads pictures of arrays in a process of its own, which would first look for modules in the run folder."""
    import subprocess

    monkeypatch.setenv("PYTHONSAFEPATH", "")  # and put back afterwards
    monkeypatch.delenv("PYTHONSAFEPATH")
    shell("--version")
    (tmp_path / "json.py").write_text("raise SystemExit(7)\n")
    assert subprocess.run([sys.executable, "-c", "import json"], cwd=tmp_path).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("presets",), ("inspect", "digits", "--json"), ("--help",)])
def test_output_that_does_not_fit_is_an_error_in_words(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "labelsieve", *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "free some" in done.stderr, done.stderr
