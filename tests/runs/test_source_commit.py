"""The commit that environment.json names: read from a checkout as git leaves it, and from nothing else."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from labelsieve.runs import environment
from labelsieve.runs.environment import in_words, source_facts
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from runs.tiny import contents, tiny_config, to_the_end

ONE, TWO = "1" * 40, "a2" * 20


@pytest.fixture
def without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.shutil, "which", lambda name: None)


def checkout(root: Path, name: str = "labelsieve") -> Path:
    """The package's folder in a checkout whose .git is still to be made."""
    (root / "src" / "labelsieve").mkdir(parents=True)
    (root / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')
    return root / "src" / "labelsieve"


def written(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text + "\n")


@pytest.mark.usefixtures("without_git")
def test_a_branch_loose_or_packed_and_a_commit_by_itself(tmp_path: Path) -> None:
    packed = f"# pack-refs with: peeled fully-peeled sorted\n{ONE} refs/heads/main\n^{ONE}\n{TWO} refs/heads/b"
    for number, (head, loose, expected) in enumerate(
        [
            ("ref: refs/heads/main", {}, ONE),
            ("ref: refs/heads/b", {"b": ONE}, ONE),
            (TWO, {}, TWO),
            ("ref: refs/heads/b", {}, TWO),
        ]
    ):
        package = checkout(tmp_path / str(number))
        git = package.parents[1] / ".git"
        written(git / "HEAD", head)
        written(git / "packed-refs", packed)
        for name, commit in loose.items():
            written(git / "refs" / "heads" / name, commit)
        assert source_facts(package) == {"commit": expected}


@pytest.mark.usefixtures("without_git")
def test_a_worktree_has_its_own_head_and_the_main_ones_branches(tmp_path: Path) -> None:
    package, home = checkout(tmp_path / "tree"), tmp_path / "main" / ".git"
    written(home / "HEAD", ONE)
    written(home / "refs" / "heads" / "side", TWO)
    written(home / "worktrees" / "tree" / "HEAD", "ref: refs/heads/side")
    written(home / "worktrees" / "tree" / "commondir", "../..")
    written(package.parents[1] / ".git", f"gitdir: {home / 'worktrees' / 'tree'}")
    assert source_facts(package) == {"commit": TWO}


@pytest.mark.usefixtures("without_git")
def test_nothing_is_said_of_a_wheel_or_of_another_projects_commit(tmp_path: Path) -> None:
    wheel = checkout(tmp_path / "a").parents[1] / "lib" / "labelsieve"
    for package in (wheel, checkout(tmp_path / "b", "theirs"), checkout(tmp_path / "c"), checkout(tmp_path / "d")):
        written(package.parents[1] / ".git" / "HEAD", "ref: refs/heads/none" if "d" in package.parts else ONE)
    shutil.rmtree(tmp_path / "c" / ".git")
    for package in (wheel, *(tmp_path / name / "src" / "labelsieve" for name in "bcd")):
        assert source_facts(package) == {}
    assert in_words({}) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_says_whether_the_source_differs(tmp_path: Path) -> None:
    package = checkout(tmp_path / "mine")
    root = package.parents[1]
    (package / "one.py").write_text("1\n")
    (root / "notes.md").write_text("1\n")
    author = [word for key in ("user.name=a", "user.email=a@b") for word in ("-c", key)]
    plain = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(root), *words], check=True, env=plain)
    (package / "new.py").write_text("not tracked")
    (root / "notes.md").write_text("no source")
    same = source_facts(package)
    assert same["commit_differs"] is False and len(same["commit"]) == 40 and in_words(same) == same["commit"]
    (package / "one.py").write_text("2\n")
    source_facts.cache_clear()
    assert source_facts(package) == same | {"commit_differs": True}
    assert in_words(source_facts(package)) == f"{same['commit']}, with changes"


def test_a_run_names_the_commit_that_it_began_with_and_is_compared_without_it(
    tmp_path: Path, source: str, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit made between two processes of a test, or of a run, changes nothing of what they compute."""
    monkeypatch.setattr(environment, "source_facts", lambda: {"commit": ONE, "commit_differs": False})
    run = start(tmp_path / "run", tiny_config(source))
    for _ in each_epoch(run, stop=lambda: run.epoch == 1):
        pass
    before = run.folder.environment.read_bytes()
    assert json.loads(before)["commit"] == ONE
    monkeypatch.setattr(environment, "source_facts", lambda: {"commit": TWO})
    to_the_end(tmp_path / "run")
    assert run.folder.environment.read_bytes() == before and contents(tmp_path / "run") == contents(finished)
    run.folder.environment.write_bytes(before.replace(b'"threads": 1', b'"threads": 2'))
    assert contents(tmp_path / "run") != contents(finished)
