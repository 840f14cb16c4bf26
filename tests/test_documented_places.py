"""Every link, file, function and test that the documents name is there: what moved or was renamed would mislead a reader."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import labelsieve
from labelsieve.issues.table import COLUMNS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "labelsieve"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "studies").glob("*.md"))]
TABLE = [
    line for line in (ROOT / "PAPER.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "test_" in line
]


def anchors(page: Path) -> set[str]:
    """Headings as forges turn them into addresses: small letters, no punctuation, hyphens for blanks."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in [*re.findall(r"\]\(([^)\s]+)\)", text), *re.findall(r'src="([^"]+)"', text)]:
        if "://" in link:
            continue
        name, _, place = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not place or place in anchors(target), f"{page.name} links to {link}; headings there: {sorted(anchors(target))}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in ("LOG.md", "CHANGELOG.md")], ids=lambda page: page.name
)
def test_files_that_are_named_are_there(page: Path) -> None:
    """Not in the log and the changelog, which tell of files that were."""
    for name in re.findall(r"`([\w./]+/[\w.]+\.py)(?:::\w+)?`", page.read_text(encoding="utf-8")):
        assert any((place / name).exists() for place in (ROOT, SOURCE)), f"{page.name} names {name}"


def test_the_papers_map_is_read() -> None:
    assert len(TABLE) > 12


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.split("|")[1].strip())
def test_an_equations_function_and_tests_are_there(row: str) -> None:
    functions, tests = (re.findall(r"`([^`]+)`", part) for part in row.split("|")[2:4])
    module = ""
    for name in functions:
        module = name.partition(".")[0] if "." in name or not module else module
        room = "methods" if (SOURCE / "methods" / f"{module}.py").exists() else "methods.parts"
        found = import_module(f"labelsieve.{room}.{module}")
        thing = name.rpartition(".")[2]
        assert thing == module or hasattr(found, thing), f"labelsieve.{room}.{module} has no {thing}"
    files = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "methods").glob("test_*.py"))
    for name in tests:
        file, _, test = name.rpartition("::")
        if name.endswith(".py"):
            assert (ROOT / "tests" / "methods" / name).exists(), name
        elif not test.startswith("..."):
            held = (ROOT / "tests" / "methods" / file).read_text(encoding="utf-8") if file else files
            assert f"def {test}(" in held, name


def test_every_column_of_the_list_is_explained() -> None:
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    assert not [name for name in COLUMNS if f"`{name}`" not in page.partition("The columns of issues.csv")[2]]


def test_every_public_name_has_its_place_on_the_api_page() -> None:
    named = set(re.findall(r"^::: labelsieve\.(\w+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert named == set(labelsieve.__all__) - {"__version__"}
