"""Every command that the documents print is one that the command line takes: its verb, options, presets, settings, noise."""

import re
import shlex
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from labelsieve.cli.main import app
from labelsieve.config.presets import preset
from labelsieve.config.schema import full_key
from labelsieve.data.noise import NOISES
from labelsieve.methods import CLEANERS
from labelsieve.methods.registry import METHODS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "PAPER.md", "RESULTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES += [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "studies").glob("*.md"))]
# What stands for many words, and one of them.
STANDS_FOR = {"S": "0", "N": "4", "SPEC": "sym:0.2", "C": "cpc-awr", "M": "cpc", "training.lambda_u=L": "training.lambda_u=0"}


def commands_in(text: str) -> list[str]:
    """Inline code, also over two lines, and lines of blocks, which a backslash goes on with; after a # comes a comment."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    inline = [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]
    lines = re.sub(r"\\\n\s*", "", "\n".join(blocks)).splitlines()
    return [one for one in (*inline, *lines) if re.match(r"(python -m )?labelsieve[ .][a-z]", one)]


FOUND = [(page.name, one) for page in PAGES for one in commands_in(page.read_text(encoding="utf-8"))]


def words_of(text: str) -> list[str]:
    words = [word for word in shlex.split(text, comments=True) if not re.fullmatch(r"\.\.\.|\S+\.\.\.|\[.*\]", word)]
    return [STANDS_FOR.get(word, word) for word in words]


def taker(words: list[str]) -> tuple[Any, list[str]]:
    """What takes the command's words, and the words after its name."""
    if words[0] == "python":
        study = typer.Typer()
        module = import_module(words[2])
        study.command()(getattr(module, "main", None) or module.command)
        return get_command(study), words[3:]
    verbs: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    assert words[1] in verbs, f"there is no verb {words[1]}"
    return verbs[words[1]], words[2:]


def values_of(words: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == option]


def test_there_are_many() -> None:
    assert len(FOUND) > 60 and {page for page, _ in FOUND} >= {"README.md", "RESULTS.md", "cleanlab.md", "LOG.md", "research.md"}


@pytest.mark.parametrize(("page", "text"), FOUND, ids=[f"{page}-{place}" for place, (page, _) in enumerate(FOUND)])
def test_a_command_is_taken(page: str, text: str) -> None:
    words = words_of(text)
    if re.fullmatch(r"labelsieve\.[a-z_.A-Z]+", words[0]):  # a name in Python
        module, _, name = words[0].rpartition(".")
        assert hasattr(import_module(module), name) or import_module(words[0])
        return
    command, rest = taker(words)
    try:
        command.make_context(words[0], list(rest))
    except Exception as error:
        if type(error).__name__ not in ("MissingParameter", "NoArgsIsHelpError"):  # shortened, which prose may do
            raise AssertionError(f"{page}: {text}: {error}") from error
    for pair in values_of(rest, "--set"):
        assert full_key(pair.partition("=")[0])
    for name in values_of(rest, "--preset"):
        assert preset(name)
    for spec in values_of(rest, "--noise"):
        assert spec.partition(":")[0] in NOISES
    assert set(values_of(rest, "--cleaner")) <= set(CLEANERS) and set(values_of(rest, "--method")) <= set(METHODS)
