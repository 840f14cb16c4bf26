"""Run folders that strangers made to do harm: links in the way of what is written, classes and paths that lead elsewhere."""

import csv
from pathlib import Path

import pytest

from data.pictures.made import class_folders
from labelsieve.corrected.apply import apply_run
from labelsieve.errors import ToolError
from labelsieve.exports.export import export_run
from labelsieve.runs import atomic
from runs.made_runs import as_advised, files_in, made_run

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return class_folders(tmp_path / "source", ("ant", "bee"))


def run_over(tree: Path, run: Path, label: str) -> Path:
    """A run that wants ant/0.png to be called `label`."""
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.png"))
    made_run(run, f"pictures:{tree}", names, [name.partition("/")[0] for name in names], {"ant/0.png": label})
    return run


def test_what_is_written_never_follows_a_link(tmp_path: Path) -> None:
    """A draft that is a link would let `report` write over any file of the user's."""
    precious = tmp_path / "precious"
    precious.write_text("words")
    run = tmp_path / "run"
    run.mkdir()
    (run / ".report.html.draft").symlink_to(precious)
    (run / "report.html").symlink_to(precious)
    atomic.write_text(run / "report.html", "<p>page</p>")
    assert precious.read_text() == "words"
    assert not (run / "report.html").is_symlink() and (run / "report.html").read_text() == "<p>page</p>"
    (run / ".a.draft").hardlink_to(precious)
    atomic.write_text(run / "a", "b")
    assert precious.read_text() == "words" and sorted(path.name for path in run.iterdir()) == ["a", "report.html"]


@pytest.mark.parametrize("label", ["/{top}/precious", "../../precious", "..", ".", ".git", "a/b", "a\0b", "x" * 300])
@pytest.mark.parametrize("form", ["folders", "table"])
def test_a_class_never_leads_out_of_the_new_folder(tmp_path: Path, tree: Path, label: str, form: str) -> None:
    label = label.replace("{top}", str(tmp_path).strip("/"))
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "0.png").write_bytes(b"words")
    run = run_over(tree, tmp_path / "run", label)
    if form == "table":
        rows = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.png"))
        (tree / "t.csv").write_text("path,label\n" + "".join(f"{name},{name.partition('/')[0]}\n" for name in rows))
        text = (run / "config.yaml").read_text()
        (run / "config.yaml").write_text(text.replace(f"pictures:{tree}", f"pictures:{tree / 't.csv'}"))
    before = files_in(tmp_path)
    with pytest.raises(ToolError, match="no folder can be called"):
        apply_run(run, tmp_path / "sub" / "new", as_advised(run), put="copy")
    assert files_in(tmp_path) == before


def rewritten(run: Path, path: str) -> None:
    """issues.csv with another path of its first row."""
    with (run / "issues.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0]["path"] = path
    with (run / "issues.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize("place", ["/{top}/secret", "../secret", "secret", "link"])
@pytest.mark.parametrize("form", ["labelstudio", "fiftyone", "huggingface"])
def test_an_export_holds_only_pictures_of_the_data(tmp_path: Path, tree: Path, place: str, form: str) -> None:
    """A path in issues.csv would put a private key among what is handed on; the run's own picture is taken instead."""
    for secret in (tmp_path / "secret", tree / "secret"):
        secret.write_bytes(b"PRIVATE KEY")
    (tree / "link").symlink_to(tmp_path / "secret")
    run = run_over(tree, tmp_path / "run", "bee")
    rewritten(run, place.replace("{top}", str(tmp_path).strip("/")))
    export_run(run, form, tmp_path / "out")
    found = files_in(tmp_path / "out")
    assert sum(content.startswith(b"\x89PNG") for content in found.values()) == 6
    assert not any(b"PRIVATE" in content for content in found.values())
