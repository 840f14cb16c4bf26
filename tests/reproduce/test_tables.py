"""What finished runs give: numbers by hand from metrics, and the same ones in Markdown, CSV and HTML."""

import csv
import io
import json
import shutil
from pathlib import Path
from statistics import mean, stdev

import pytest

from labelsieve.reproduce.paper import table2
from labelsieve.reproduce.results import (
    NEVER_JUDGED,
    CellResult,
    as_markdown,
    as_page,
    as_rows,
    cells_of,
    final,
    result,
    tail_said,
    values,
    write_table,
)
from labelsieve.reproduce.tasks import Places, Settings, tasks_for
from labelsieve.runs.findings import read_record
from labelsieve.runs.folder import RunFolder
from reproduce.tiny_sweep import table, tasks
from runs.tiny import whole


def results(source: str, out: Path, seeds: int = 2, **settings: object) -> list[CellResult]:
    wanted = tasks(source, out, seeds, settings=Settings(**settings))  # type: ignore[arg-type]
    return [result(cell, [task for task in wanted if task.job == cell.job]) for cell in table().cells]


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def test_numbers_are_those_of_the_metrics(source: str, swept: Path) -> None:
    _, _, cpc = results(source, swept)
    runs = [swept / "runs" / "stripes+cpc-awr" / f"seed{seed}" for seed in (0, 1)]
    accuracies = [[line["accuracy"]["both"] for line in lines_of(run) if "accuracy" in line] for run in runs]  # type: ignore[index]
    assert cpc.last is not None and cpc.best is not None and cpc.tail is not None
    assert cpc.last.mean == pytest.approx(mean(series[-1] for series in accuracies))
    assert cpc.last.std == pytest.approx(stdev([series[-1] for series in accuracies]))
    assert cpc.best.mean == pytest.approx(mean(max(series) for series in accuracies))
    assert cpc.tail.mean == pytest.approx(mean(mean(series[1:]) for series in accuracies))  # without the warm-up
    assert cpc.tail_epochs == 2 and tail_said(cpc).endswith(" (of 2)")
    assert cpc.difference == pytest.approx(cpc.best.mean - 90)
    assert (cpc.seeds, cpc.wanted, cpc.epochs, cpc.mark) == (2, 2, 3, "")
    assert cpc.minutes == pytest.approx(mean(read_record(RunFolder(run)).seconds for run in runs) / 60)


def test_the_mean_of_the_last_ten_is_of_ten(swept: Path) -> None:
    record = read_record(RunFolder(swept / "runs" / "stripes+ce" / "seed0"))
    record.metrics[:] = [{"epoch": i, "phase": "warm-up", "accuracy": {"both": float(i)}} for i in range(1, 21)]
    found = final(record)
    assert found is not None and (found.last, found.tail, found.best) == (20, 15.5, 20)
    assert values(record, "also.ilsvrc12.both") == [] and final(record, "accuracy.prototypes") is None


def test_a_model_chosen_on_validation_pictures_has_one_number(swept: Path) -> None:
    record = read_record(RunFolder(swept / "runs" / "stripes+ce" / "seed0"))
    record.metrics[:] = [
        {"epoch": 1, "phase": "mixture", "validation": {"both": 50.0}},
        {"epoch": 1, "phase": "final", "chosen_epoch": 1, "accuracy": {"both": 47.0}},
    ]
    found = final(record)
    assert found is not None and (found.last, found.tail, found.best) == (None, None, 47.0)


def test_marks_say_what_is_missing_short_or_small(tmp_path: Path, source: str, swept: Path) -> None:
    out = tmp_path / "sweep"
    shutil.copytree(swept, out)
    shutil.rmtree(out / "runs" / "stripes+ce")
    shutil.rmtree(out / "runs" / "stripes+gmm-agn" / "seed1")
    done = next((out / "runs" / "stripes+cpc-awr" / "seed1" / "checkpoint").iterdir())
    done.rename(done.with_name("epoch-000002"))
    shutil.rmtree(out / "runs" / "stripes+cpc-awr" / "seed0")
    ce, gmm, cpc = results(source, out)
    assert (ce.mark, ce.seeds, ce.best) == ("NOT RUN", 0, None)
    assert (gmm.mark, gmm.seeds) == ("1 of 2 seeds", 1) and gmm.best is not None and gmm.best.std is None
    assert (cpc.mark, cpc.best) == ("NOT FINISHED", None)  # what is not done counts for nothing
    for short in results(source, swept, epochs=2, limit=30):
        assert "SHORT: 2 of 3 epochs" in short.mark and "SUBSET: 30 of 48 pictures" in short.mark


def test_runs_that_prototypes_never_divided_say_so(tmp_path: Path, source: str, swept: Path) -> None:
    still = ("cleaning.prototype_warmup=0.9",)
    cells = table(("gmm-agn", "cpc-awr", "contrastive")).cells
    wanted = tasks_for([cell.job for cell in cells], [0], Settings(sets=still), Places({"arrays": source}), tmp_path)
    for task in wanted:
        whole(task.folder.path, task.config)
    marks = [result(cell, [task]).mark for cell, task in zip(cells, wanted)]
    assert [NEVER_JUDGED in mark for mark in marks] == [False, True, True]
    assert not any(NEVER_JUDGED in one.mark for one in results(source, swept))  # plain training, a mixture, prototypes that did
    unfinished = tasks_for([cells[1].job], [1], Settings(sets=still), Places({"arrays": source}), tmp_path)
    assert result(cells[1], unfinished).mark == "NOT RUN"


def test_a_best_epoch_in_the_warm_up_is_marked(tmp_path: Path, source: str, swept: Path) -> None:
    out = tmp_path / "sweep"
    shutil.copytree(swept, out)
    for cleaner in ("ce", "gmm-agn", "cpc-awr"):
        place = out / "runs" / f"stripes+{cleaner}" / "seed1"
        lines = lines_of(place)
        for line in (line for line in lines if "accuracy" in line):
            line["accuracy"] = {"both": 100.0 if line is lines[0] else 50.0}
        (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ce, *others = results(source, out)
    assert ce.mark == "" and {one.mark for one in others} == {"WARM-UP: the best epoch is one of it in 1 of 2 runs"}
    assert not any("WARM-UP" in one.mark for one in results(source, swept))


def test_longer_runs_are_marked_too(source: str, swept: Path) -> None:
    assert {one.mark for one in results(source, swept, epochs=5)} == {"LONGER: 5 of 3 epochs"}
    assert all(one.is_other for one in results(source, swept, epochs=5))


def test_numbers_in_the_papers_shape_say_that_they_are_of_other_runs(source: str, swept: Path) -> None:
    short, whole = results(source, swept, epochs=2), results(source, swept)
    assert short[0].best is not None and f"90 / {short[0].best.mean:.2f}*" in as_page(table(), short, "command", "version")
    assert "*" not in as_page(table(), whole, "command", "version").partition("Cell by cell")[0].partition("<body")[2]


def test_what_was_set_otherwise_is_marked(source: str, swept: Path) -> None:
    wanted = tasks(source, swept, 2, ["cpc-awr"], Settings(sets=("cleaning.tau=0.6", "data.test_limit=5")))
    assert wanted[0].other_settings == ["cleaning.tau=0.6", "data.test_limit=5"]
    one = result(table().cells[2], wanted)
    assert one.mark == "SET: cleaning.tau=0.6, data.test_limit=5" and one.is_other
    assert "1 of them in runs of another length, smaller or set otherwise" in as_page(table(), [one], "command", "version")
    as_it_is = "training.lr_drop=0.60"  # of the job itself, written otherwise
    assert dict(wanted[0].job.options)["training.lr_drop"] == 0.6
    assert tasks(source, swept, 2, ["cpc-awr"], Settings(sets=(as_it_is,)))[0].other_settings == []
    plain = result(table().cells[2], tasks(source, swept, 2, ["cpc-awr"]))
    assert plain.mark == "" and not plain.is_other


def test_numbers_that_the_paper_cites_say_so() -> None:
    shown = {one.cell.row: cells_of(one)[2] for one in (result(cell, []) for cell in table2().cells)}
    assert shown["DivideMix"].endswith(" (cited)") and shown["AugDMix (baseline)"].endswith(" (cited)")
    assert "cited" not in shown["CPC"] and "±" in shown["CPC"]


def test_a_measure_that_the_runs_lack_is_said(source: str, swept: Path) -> None:
    cell = table().cells[1]
    wanted = tasks(source, swept, cleaners=["gmm-agn"])
    from dataclasses import replace

    found = result(replace(cell, measure="accuracy.prototypes"), wanted)
    assert found.best is None and "no accuracy.prototypes" in found.mark


def test_markdown_csv_and_html_have_the_same_numbers(tmp_path: Path, source: str, swept: Path) -> None:
    found = results(source, swept)
    places = write_table(tmp_path, table(), found, "labelsieve reproduce tiny", "labelsieve 0, cpu")
    assert [place.suffix for place in places] == [".md", ".csv", ".html"]
    rows = list(csv.DictReader(io.StringIO(as_rows(found))))
    text, page = as_markdown(table(), found, "command", "version"), as_page(table(), found, "command", "version")
    for one, row in zip(found, rows):
        assert one.best is not None and one.best.std is not None
        assert float(row["best"]) == pytest.approx(one.best.mean, abs=1e-4) and row["seeds"] == "2"
        said = f"{one.best.mean:.2f} ± {one.best.std:.2f}"
        assert f"| {one.cell.row} | stripes | 90.00 ± 0.50 | {said} |" in text
        assert said.replace(" ", "\N{NO-BREAK SPACE}") in page  # no line ends between a mean and its deviation
    assert len(rows) == 3 and "labelsieve reproduce tiny" in places[0].read_text()
