"""What a project of several people leans on: the release check, workflows, the hooks before a commit, packaging."""

import re
import runpy
import shutil
from pathlib import Path

import pytest
import yaml

from labelsieve.version import __version__

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
missing = runpy.run_path(str(ROOT / ".ci" / "ready_to_release.py"))["missing"]


def test_only_the_address_is_missing_for_a_release() -> None:
    assert [told.partition(" in ")[0] for told in missing(f"v{__version__}")] in ([], ["[project.urls]"])


def test_a_tag_that_nothing_else_names_is_refused(tmp_path: Path) -> None:
    for name in ("src/labelsieve/version.py", "CITATION.cff", "CHANGELOG.md", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "src/labelsieve/version.py").write_text('__version__ = "7.0.0"\n')
    told = missing("v7.0.1", tmp_path)
    assert "the tag is v7.0.1" in told[0] and "CITATION.cff" in told[1] and "CHANGELOG.md" in told[2]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_what_there_is(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    ran = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    verbs = {word for line in ran if line.startswith("make ") for word in line.split()[1:]}
    assert verbs <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name in re.findall(r"\.ci/[\w.]+", " ".join(ran)):
        assert (ROOT / name).is_file()


def test_the_tests_run_on_three_systems() -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert all(system in text for system in ("ubuntu-latest", "macos-latest", "windows-latest"))


def test_what_runs_before_a_commit_is_what_make_runs() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    tools = {hook["entry"].split()[0] for hook in repository["hooks"]}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert tools == {"ruff", "mypy"} and all(f"$(BIN)/{tool}" in makefile for tool in tools)


def test_every_page_is_in_the_sites_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert not [page for page in pages if f": {page}\n" not in menu]
    around = [page for page in re.findall(r": (\S+\.md)\n", menu) if not (ROOT / "docs" / page).exists() and page != "index.md"]
    known = {(ROOT / page).resolve() for page in (*around, "README.md")} | set((ROOT / "docs").rglob("*.md"))
    for page in known:  # a link to a page outside the site ends `make docs`
        links = re.findall(r"\]\(([^)\s#:]+\.md)", page.read_text(encoding="utf-8"))
        assert not [link for link in links if (page.parent / link).resolve() not in known], page
