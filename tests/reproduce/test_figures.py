"""Figures from finished runs: files that repeat, numbers beside them, and words where something is missing."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.config.schema import dotted_keys, override
from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce import figures
from labelsieve.reproduce.curves import OF_A_RUN, auc_lines, densities, training_panels
from labelsieve.reproduce.figures import Group, draw_all, folders_in, groups_of
from labelsieve.results.kept import read_early_losses
from labelsieve.runs.folder import RunFolder
from runs.tiny import pictures, tiny_config, whole


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_sweep_gives_every_figure_with_its_numbers(tmp_path: Path, swept: Path) -> None:
    (group,) = groups_of(folders_in([swept]))
    drawn = draw_all(group, tmp_path / "a")
    assert not drawn.missing and "2 seeds" in group.words
    stem = "arrays-stripes-sym30"
    for name in ("losses", "auc", "agreement", "training"):
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


def test_training_curves_are_the_metrics_of_all_runs(tmp_path: Path, swept: Path) -> None:
    (group,) = groups_of(folders_in([swept]))
    draw_all(group, tmp_path)
    found = rows(tmp_path / "arrays-stripes-sym30-training.csv")
    accuracy, auc, precision, recall = dict.fromkeys(row["measure"] for row in found)

    def seeds(job: str) -> list[list[dict[str, Any]]]:
        files = [swept / "runs" / job / f"seed{seed}" / "metrics.jsonl" for seed in (0, 1)]
        lines = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
        return [[line for line in each if line["phase"] != "final"] for each in lines]

    def drawn(measure: str, cleaner: str, what: str = "cleaner") -> dict[int, float]:
        some = [row for row in found if (row["measure"], row["cleaner"], row["what"]) == (measure, cleaner, what)]
        return {int(row["epoch"]): float(row["mean_over_seeds"]) for row in some}

    for job, name in (("stripes+ce", "plain training"), ("stripes+gmm-agn", "gmm-agn"), ("stripes+cpc-awr", "cpc-awr")):
        both = [[line["accuracy"]["both"] for line in lines] for lines in seeds(job)]
        wanted = {epoch: sum(values) / 2 for epoch, values in enumerate(zip(*both), 1)}
        assert drawn(accuracy, name) == pytest.approx(wanted, abs=1e-3)
    keys = {(auc, "cleaner"): "auc_prototype", (auc, "mixture"): "auc_loss"}
    keys |= {(precision, "cleaner"): "clean_precision", (recall, "cleaner"): "clean_recall"}
    for (measure, what), key in keys.items():
        divided = [[line for line in lines if key in line] for lines in seeds("stripes+cpc-awr")]
        wanted = {one["epoch"]: (sum(one[key]) + sum(other[key])) / 4 for one, other in zip(*divided)}
        assert wanted and drawn(measure, "cpc-awr", what) == pytest.approx(wanted, abs=1e-5)
    assert not drawn(auc, "gmm-agn", "mixture") and not drawn(precision, "plain training")


def test_a_training_without_a_division_has_its_accuracy_drawn(tmp_path: Path, swept: Path) -> None:
    (group,) = groups_of(folders_in([swept / "runs" / "stripes+ce" / "seed0"]))
    draw_all(group, tmp_path)
    assert {row["cleaner"] for row in rows(tmp_path / "arrays-stripes-sym30-training.csv")} == {"plain training"}


def test_other_methods_are_drawn_by_name_and_by_their_own_ranking(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", **pictures())
    for name, more in {"a": {}, "b": {"ssr__theta_r": 0.7}}.items():
        whole(tmp_path / name, tiny_config(f"arrays:{tmp_path / 'data.npz'}", method="ssr", data__noise="sym:0.3", **more))
    (group,) = groups_of(folders_in([tmp_path / "a", tmp_path / "b"]))
    (_, accuracies), (_, ranking), *_ = training_panels(group.records)
    assert [line.label for line in accuracies] == ["ssr", "ssr, theta_r 0.7"]
    assert [line.label for line in ranking] == ["ssr", "ssr, theta_r 0.7"] and all(len(line.epochs) for line in ranking)


def test_four_panels_share_one_legend(tmp_path: Path, swept: Path) -> None:
    (group,) = groups_of(folders_in([swept]))
    figure = figures.lines_figure(training_panels(group.records), 1, group.words)
    figure.canvas.draw()
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(names) == len(set(names)) == 4 and "plain training" in names
    box = figure.legends[0].get_window_extent()
    assert box.x1 <= figure.bbox.width and all(box.x0 >= axes.get_window_extent().x1 for axes in figure.axes)


def test_one_name_looks_alike_in_all_panels(tmp_path: Path, swept: Path) -> None:
    """Also where plain training, which is in one panel only, has a variant of its own."""
    folders = with_variants(tmp_path, swept, {"cleaning.tau": 0.6}).folders
    shutil.copytree(swept / "runs" / "stripes+ce" / "seed0", tmp_path / "ce")
    folders.append(RunFolder.open(tmp_path / "ce"))
    folders[-1].write_config(override(folders[-1].read_config(), {"training.lr": 0.01}))
    (group,) = groups_of(folders)
    figure = figures.lines_figure(training_panels(group.records), 1, group.words)
    shown: dict[str, set[tuple[str, str]]] = {}
    for axes in figure.axes:
        for line in axes.get_lines():
            shown.setdefault(line.get_label(), set()).add((line.get_color(), line.get_linestyle()))
    assert len(shown) == 7 and all(len(looks) == 1 for looks in shown.values()), shown
    solid = [looks for name, looks in shown.items() if "mixture" not in name]
    assert len(set(map(frozenset, solid))) == len(solid)


def with_variants(tmp_path: Path, swept: Path, *changes: dict[str, object]) -> Group:
    """The sweep's runs, and for each of `changes` a copy of a CPC run with other settings."""
    folders = folders_in([swept])
    for number, change in enumerate(changes):
        path = tmp_path / f"other{number}"
        shutil.copytree(swept / "runs" / "stripes+cpc-awr" / "seed0", path)
        folders.append(RunFolder.open(path))
        folders[-1].write_config(override(folders[-1].read_config(), change))
    (group,) = groups_of(folders)
    return group


def test_runs_with_other_settings_are_no_seeds(tmp_path: Path, swept: Path) -> None:
    group = with_variants(tmp_path, swept, {"cleaning.tau": 0.6}, {"seed": 7, "cleaning.tau": 0.6}, {"method": "augdmix"})
    draw_all(group, tmp_path / "drawn")
    found = rows(tmp_path / "drawn" / "arrays-stripes-sym30-auc.csv")
    assert {(row["other_settings"], row["seeds"]) for row in found if row["cleaner"] == "cpc-awr"} == {
        ("", "2"),
        ("tau 0.6", "2"),
        ("method augdmix", "1"),
    }
    draw_all(with_variants(tmp_path, swept), tmp_path / "alone")
    usual = [row for row in found if row["other_settings"] == ""]
    assert usual == rows(tmp_path / "alone" / "arrays-stripes-sym30-auc.csv")
    labels = [line.label for line in auc_lines(group.records)]
    assert len(set(labels)) == len(labels) == 4 and any(label.endswith(", tau 0.6") for label in labels)


def test_files_of_one_name_in_two_folders_are_two_data_sets(tmp_path: Path, swept: Path) -> None:
    folders = folders_in([swept / "runs" / "stripes+cpc-awr" / "seed0"])
    for place in ("one", "two"):
        shutil.copytree(folders[0].path, tmp_path / place)
        folders.append(RunFolder.open(tmp_path / place))
        folders[-1].write_config(override(folders[-1].read_config(), {"data.source": f"arrays:/data/{place}/mine.npz"}))
    names = [group.name for group in groups_of(folders)]
    assert names == ["arrays-stripes-sym30", "arrays-data-one-mine-sym30", "arrays-data-two-mine-sym30"]
    for folder in folders[1:]:
        folder.write_config(override(folder.read_config(), {"data.source": f"cifar10:/data/{folder.path.name}"}))
    assert [group.name for group in groups_of(folders[1:])] == ["cifar10-sym30"]  # the same wherever it lies


def test_settings_that_a_seed_may_differ_in_exist() -> None:
    assert set(dotted_keys()) >= OF_A_RUN


def test_every_line_has_a_look_of_its_own(tmp_path: Path, swept: Path) -> None:
    changes = [{"cleaning.tau": tau / 100} for tau in range(30, 50, 2)]
    lines = auc_lines(with_variants(tmp_path, swept, *changes).records)
    looks = figures.looks_of(lines)
    shown = [looks[line.cleaner, line.settings] for line in lines]
    assert len(lines) == 12 and len(set(shown)) == 12


def test_captions_are_within_the_picture(tmp_path: Path, swept: Path) -> None:
    group = with_variants(tmp_path, swept, *({"cleaning.tau": tau / 100} for tau in range(30, 50, 2)))
    shapes = densities(read_early_losses(group.folders[-1]))
    words = "cifar100-sym90, 120 to 450 epochs, 50,000 pictures, 3 seeds (SHORT RUN)"
    made = [
        figures.losses_figure(shapes, {"clean": 0.5, "noisy": 0.5}, words),
        figures.lines_figure([("AUC", auc_lines(group.records))], 1, words),
    ]
    for figure in made:
        figure.canvas.draw()
        box = figure._supxlabel.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width
        for legend in figure.legends:
            assert legend.get_window_extent().x1 <= figure.bbox.width and legend.get_window_extent().y0 >= 0
    assert "one network of the first seed" in made[0]._supxlabel.get_text()
    assert made[1].legends and "lowest to highest seed" in made[1]._supxlabel.get_text()


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
