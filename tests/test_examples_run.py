"""The notebooks in examples/ run from top to bottom, as they stand, and what they show is true."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def printed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """All that a notebook printed, run in an empty folder with this environment's `labelsieve` first on the path."""
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    book: Any = nbformat.read(EXAMPLES / request.param, as_version=4)
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") or str(output.get("data", {}).get("text/plain", "")) for output in outputs)


def numbers(text: str, pattern: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(number) for number in found.groups()]


@pytest.mark.parametrize("printed", ["photos.ipynb"], indirect=True)
def test_misplaced_photos_are_found_and_put_right(printed: str) -> None:
    found, all_of_them = numbers(printed, r"(\d+) of the (\d+) misplaced photos are among the first")
    before, after = numbers(printed, r"wrong labels: (\d+) before, (\d+) now")
    assert found >= 0.7 * all_of_them and before == all_of_them and after <= before / 2
    assert 'blank: 1 picture: "circle/lens cap.png"' in printed and "nearly the same, with different labels: 1 picture" in printed
    for odd in ("blank circle/lens cap.png", "dark square/at night.png", "near copy triangle/copy.jpg cross/"):
        assert odd in printed
    assert "odd photos are gone" in printed


@pytest.mark.parametrize("printed", ["embeddings.ipynb"], indirect=True)
def test_wrong_labels_beside_embeddings_are_found(printed: str) -> None:
    before, after = numbers(printed, r"wrong labels: (\d+) before, (\d+) now")
    plain, ours = numbers(printed, r"logistic regression ([\d.]+)%, labelsieve ([\d.]+)%")
    assert after < before / 4 and ours > plain


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.ipynb")))
def test_notebooks_are_kept_without_outputs(name: str) -> None:
    """So that a change shows what was changed."""
    book: Any = nbformat.read(EXAMPLES / name, as_version=4)
    assert not [cell for cell in book.cells if cell.get("outputs") or cell.get("execution_count")]
