"""One measured run as a file, cleanlab's folds apart from cleanlab, and the table made of both, on tiny pictures."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from labelsieve.data.npz import read_npz
from labelsieve.errors import UsageError
from runs.tiny import SETTINGS, arrays_file, pictures
from studies import comparison, folds, known_noise

TINY = [f"{key}={value}" for key, value in SETTINGS.items() if key != "data.noise"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with run.json, trail.npz, evidence.npz and folds.npz of one noise and seed."""
    folder = tmp_path_factory.mktemp("measured")
    source = arrays_file(folder / "data.npz", **pictures(60))
    files = {name: folder / f"{name}.npz" for name in ("trail", "evidence", "folds")}
    known_noise.main(source, folder / "run.json", "sym:0.3", settings=TINY, trail=files["trail"], evidence=files["evidence"])
    folds.main(source, files["folds"], "sym:0.3", folds=2, fold_epochs=1, settings=TINY)
    return folder


def test_a_run_leaves_its_facts_and_what_every_epoch_said(measured: Path) -> None:
    facts = json.loads((measured / "run.json").read_text())
    trail, seen = read_npz(measured / "trail.npz"), read_npz(measured / "evidence.npz")
    assert facts["samples"] == 60 and facts["wrong"] == pytest.approx(trail["wrong"].mean()) and len(facts["accuracy"]) == 2
    assert facts["estimate"]["low"] <= facts["estimate"]["share"] <= facts["estimate"]["high"]
    assert 0 <= facts["average_precision"] <= 1 and 0 <= facts["flagged"] <= 1
    assert trail["share"].shape == (3, 1, 60) and trail["share"].dtype == np.float16
    assert seen["features0"].shape[0] == 60 and np.array_equal(seen["wrong"], trail["wrong"])


def test_a_file_that_is_there_is_not_made_again(measured: Path) -> None:
    before = (measured / "run.json").stat().st_mtime_ns
    known_noise.main("arrays:/nowhere.npz", measured / "run.json", "sym:0.3", settings=TINY)
    folds.main("arrays:/nowhere.npz", measured / "folds.npz", "none")
    assert (measured / "run.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"noise": "sym:0.2"}, "made with noise sym:0.3, asked for is sym:0.2"),
        ({"seed": 1}, "made with seed 0"),
        ({"limit": 30}, "made with limit None"),
        ({"method": "ce"}, "made with method cpc"),
        ({"settings": TINY[:-1]}, "made with settings"),
    ],
)
def test_a_file_of_another_run_is_refused(measured: Path, other: dict[str, Any], said: str) -> None:
    asked = {"noise": "sym:0.3", "settings": TINY} | other
    with pytest.raises(UsageError, match=f"run.json: {said}.*another --out"):
        known_noise.main("arrays:/nowhere.npz", measured / "run.json", **asked)


def test_the_folds_are_scored_beside_the_run(measured: Path) -> None:
    pytest.importorskip("cleanlab")
    row = comparison.row_of(measured / "folds.npz", measured / "run.json")
    assert row.best >= row.theirs[0] and "seed 0" in row.name
    other = measured / "other.json"
    other.write_text(json.dumps(json.loads((measured / "run.json").read_text()) | {"wrong": 0.9}))
    with pytest.raises(UsageError, match="different noise"):
        comparison.row_of(measured / "folds.npz", other)


def test_a_row_says_when_it_is_lost() -> None:
    cost = (0.9, 10.0, 100.0)
    verdicts = [comparison.Row("", (0.9, *cost), 0.92, (ours, *cost)).verdict() for ours in (0.91, 0.95, 0.98)]
    assert verdicts[0] == "lost" and "over half" in verdicts[1] and verdicts[2] == "0.25 of the error"


def test_the_table_has_a_line_for_each_pair(measured: Path) -> None:
    pytest.importorskip("cleanlab")
    import typer

    app = typer.Typer()
    app.command()(comparison.main)
    said = CliRunner().invoke(app, [f"{measured / 'folds.npz'}={measured / 'run.json'}"])
    assert said.exit_code == 0, said.output
