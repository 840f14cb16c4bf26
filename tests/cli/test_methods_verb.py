"""`labelsieve methods` says what is so, and README's table is the registry's."""

import json
import re
from pathlib import Path

import pytest

from cli.conftest import Shell
from labelsieve.config.setting import rules
from labelsieve.methods.contract import Cell
from labelsieve.methods.registry import METHODS

PUBLISHED = Path(__file__).parents[1] / "methods" / "published"
PAGE = Path(__file__).parents[2] / "docs" / "results" / "methods.md"
README = Path(__file__).parents[2] / "README.md"
COLUMNS = [f"cifar10-{noise}" for noise in ("sym20", "sym50", "sym80", "sym90", "asym40")]
COLUMNS += [f"cifar100-sym{rate}" for rate in (20, 50, 80, 90)] + ["webvision", "clothing1m"]


def test_methods_are_listed_with_what_they_cost(shell: Shell) -> None:
    listed = shell("methods")
    assert listed.code == 0 and all(name in listed.out for name in METHODS)
    assert "not run" in listed.out and "47.71" in listed.out
    rows = [line for line in listed.out.splitlines() if line.split(" ")[0] in METHODS]
    assert len(rows) == len(METHODS) and len(listed.out.splitlines()) < 2 * len(METHODS)  # words stay whole


@pytest.mark.parametrize("name", ["ssr+", "cpc"])
def test_one_is_shown_with_its_settings_and_cells(shell: Shell, name: str) -> None:
    shown = shell("methods", name)
    assert shown.code == 0 and "cifar100-sym90" in shown.out and "not run" in shown.out
    if METHODS[name].own_section:
        assert all(f"{name}.{key}" in shown.out for key, _ in rules(METHODS[name].Config))


def test_an_unknown_one_is_an_error_that_names_the_nearest(shell: Shell) -> None:
    assert shell("methods", "srs").code == 2
    assert 'did you mean "ssr"' in shell("methods", "srs").err


@pytest.mark.parametrize("recorded", sorted(PUBLISHED.glob("*.json")), ids=lambda path: path.stem)
def test_the_page_names_the_code_that_was_run(recorded: Path) -> None:
    facts = json.loads(recorded.read_text())
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if f"{facts['repo']}, {facts['commit']}" in line]
    assert len(rows) == 1 and f"`{recorded.stem.replace('elr_plus', 'elr+')}`" in rows[0]


def numbers(cell: Cell | None) -> str:
    published, ours = (None, None) if cell is None else (cell.published, cell.ours)
    said = "–" if published is None else f"{published:.1f}"
    return said if ours is None else f"{said} / {ours:.1f}"


def test_readmes_table_is_the_registrys() -> None:
    rows = re.findall(r"^\| `([a-z+]+)` \| (.*) \|$", README.read_text(encoding="utf-8"), re.MULTILINE)
    table = {name: cells.split(" | ") for name, cells in rows if name in METHODS}
    known = {name: [numbers(method.cells.get(cell)) for cell in COLUMNS] for name, method in METHODS.items()}
    assert table == {name: said for name, said in known.items() if set(said) != {"–"}}
