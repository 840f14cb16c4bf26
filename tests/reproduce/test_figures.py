"""Figures from finished runs: files that repeat, numbers beside them, and words where something is missing."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce.figure_files import draw_all, folders_in, groups_of
from labelsieve.runs.folder import RunFolder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_sweep_gives_every_figure_with_its_numbers(tmp_path: Path, swept: Path) -> None:
    (group,) = groups_of(folders_in([swept]))
    drawn = draw_all(group, tmp_path / "a")
    assert not drawn.missing and "2 seeds" in group.words
    stem = "arrays-stripes-sym30"
    for name in ("losses", "auc", "agreement"):
        for suffix in ("svg", "png", "csv"):
            assert (tmp_path / "a" / f"{stem}-{name}.{suffix}").stat().st_size > 200
    draw_all(group, tmp_path / "b")
    for one in (tmp_path / "a").iterdir():
        assert one.read_bytes() == (tmp_path / "b" / one.name).read_bytes(), one.name
    tested = rows(tmp_path / "a" / f"{stem}-ks.csv")
    assert {row["seed"] for row in tested} == {"0", "1"} and {row["kind"] for row in tested} >= {"clean"}


def test_curves_are_the_metrics(tmp_path: Path, swept: Path) -> None:
    (group,) = groups_of(folders_in([swept]))
    draw_all(group, tmp_path)
    wanted: dict[int, list[float]] = {}
    for seed in (0, 1):
        for line in (swept / "runs" / "stripes+cpc-awr" / f"seed{seed}" / "metrics.jsonl").read_text().splitlines():
            record = json.loads(line)
            if "auc_prototype" in record and record["phase"] != "final":
                wanted.setdefault(record["epoch"], []).append(sum(record["auc_prototype"]) / 2)
    found = [row for row in rows(tmp_path / "arrays-stripes-sym30-auc.csv") if row["cleaner"] == "cpc-awr"]
    assert [int(row["epoch"]) for row in found] == sorted(wanted)
    for row in found:
        assert float(row["mean_over_seeds"]) == pytest.approx(sum(wanted[int(row["epoch"])]) / 2, abs=1e-5)
    assert {row["cleaner"] for row in rows(tmp_path / "arrays-stripes-sym30-agreement.csv")} == {"cpc-awr"}


def test_one_run_alone_shows_its_mixture_too(tmp_path: Path, swept: Path) -> None:
    (group,) = groups_of(folders_in([swept / "runs" / "stripes+cpc-awr" / "seed0"]))
    draw_all(group, tmp_path)
    assert {row["what"] for row in rows(tmp_path / "arrays-stripes-sym30-auc.csv")} == {"cleaner", "mixture"}


def test_what_is_missing_is_said(tmp_path: Path, swept: Path) -> None:
    (group,) = groups_of(folders_in([swept / "runs" / "stripes+ce" / "seed0"]))
    assert len(draw_all(group, tmp_path / "ce").missing) == 3
    run = tmp_path / "run"
    shutil.copytree(swept / "runs" / "stripes+cpc-awr" / "seed0", run)
    (run / "early_losses.npz").unlink()
    (group,) = groups_of([RunFolder.open(run)])
    assert ["early_losses.npz" in words for words in draw_all(group, tmp_path / "cpc").missing] == [True]
    (run / "metrics.jsonl").unlink()
    with pytest.raises(UsageError, match="nothing to draw"):
        groups_of([RunFolder.open(run)])
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "sweep.json").write_text("{}")
    with pytest.raises(ToolError, match="no run of this sweep has trained"):
        folders_in([tmp_path / "sweep"])
