"""What a run found is at hand when it ends: the same as its folder gives back, and the same without a folder."""

import json
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pytest

from labelsieve import run_files
from labelsieve.issues import table
from labelsieve.results.card import cautions
from labelsieve.runs.findings import read_findings, read_record
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from runs.tiny import tiny_config, whole


def plainly(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return json.loads(json.dumps(value)) if isinstance(value, dict | list) else value


@pytest.mark.parametrize("changes", [{}, {"training__lambda_u": None}, {"method": "ce"}, {"data__noise": "none"}])
def test_what_is_at_hand_is_what_the_folder_gives_back(tmp_path: Path, source: str, changes: dict[str, object]) -> None:
    run = whole(tmp_path / "run", tiny_config(source, **changes))
    assert run.outcome is not None
    mine, read = run.found, read_findings(run.home)
    assert repr(mine.columns) == repr(read.columns), "a number that is not known is NaN in both"
    for field in fields(mine):
        if field.name not in ("columns", "chances"):
            assert plainly(getattr(mine, field.name)) == plainly(getattr(read, field.name)), field.name
    assert plainly(mine.chances.wrong) == plainly(read.chances.wrong)
    assert plainly(mine.chances.opinions) == plainly(read.chances.opinions)
    for name, value in asdict(run.record).items():
        assert plainly(value) == plainly(asdict(read_record(run.home))[name]), name


def test_a_run_without_a_folder_finds_the_same(tmp_path: Path, source: str) -> None:
    config = tiny_config(source, training__lambda_u=None)
    kept, light = whole(tmp_path / "run", config), start(None, config)
    for _ in each_epoch(light):
        pass
    assert np.array_equal(kept.found.score, light.found.score)
    assert cautions(kept.found, kept.record) == cautions(light.found, light.record)


def test_a_run_reads_nothing_back_that_it_wrote(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object, **named: object) -> None:
        raise AssertionError(f"read back: {words}")

    for name in ("lines", "facts", "records", "text", "rows"):
        monkeypatch.setattr(run_files, name, refuse)
    monkeypatch.setattr(table, "read_issues", refuse)
    assert whole(tmp_path / "run", tiny_config(source)).home.card.exists()
