"""docs/research.md: its Python runs, on fewer pictures, and it names every field of the files that a run leaves behind."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from labelsieve.methods.parts import cleaners
from labelsieve.methods.registry import METHODS
from labelsieve.version import __version__

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "research.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Where the page's blocks ran, one after the other, in one session."""
    place, before = tmp_path_factory.mktemp("research"), dict(cleaners.REGISTERED)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        names: dict[str, Any] = {}
        for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(block.replace("[:1400]", "[:250]"), names)  # shorter, else as it stands
    yield place
    cleaners.REGISTERED.clear()
    cleaners.REGISTERED.update(before)
    METHODS.pop("remembering")


def named(fields: set[str], mark: str) -> set[str]:
    """Those that the page writes as code below its `mark`."""
    below = PAGE[PAGE.index(mark) :]
    return {name for name in fields if f"`{name}`" in below}


@pytest.mark.parametrize("run", ["mine", "neighbours"])
def test_every_field_of_metrics_is_explained(folder: Path, run: str) -> None:
    lines = [json.loads(line) for line in (folder / "runs" / run / "metrics.jsonl").read_text().splitlines()]
    fields = {key for line in lines for key in line}
    fields |= {key for line in lines for name in ("loss", "accuracy") for key in line.get(name, {})}
    assert {"divergence", "auc_loss", "decision", "cross_entropy", "penalty", "both"} <= fields
    assert named(fields, "**metrics.jsonl**") == fields
    timings = json.loads((folder / "runs" / run / "timings.jsonl").read_text().splitlines()[0])
    assert named(set(timings), "**timings.jsonl**") == set(timings)


@pytest.mark.parametrize("name", ["scores", "noise", "early_losses", "predictions", "neighbours"])
def test_every_array_is_explained(folder: Path, name: str) -> None:
    with np.load(folder / "runs" / "mine" / f"{name}.npz", allow_pickle=False) as arrays:
        assert named(set(arrays.files), f"**{name}.npz**") == set(arrays.files)


def test_the_citation_is_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__ and cited["license"] == "Apache-2.0"
    assert all(one["authors"] and one["title"] and one["year"] for one in cited["references"])
