"""The queue of runs: the next cell is trained on its noise, stopped in time and resumed; its row says how far it is.

And what a cell came to: the numbers of its row and curve are those of the run's own files, computed another way here.
"""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from labelsieve.config.presets import PRESETS
from labelsieve.data import label_files
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.registry import METHODS
from runs.tiny import arrays_file, pictures
from studies.cell_results import main as show
from studies.queue import QUEUE, cells, main, state_of, take

TINY = "--epochs 3 --device cpu --set training.warmup=1 --set training.batch=8 --set engine.threads=1 --set lambda_u=0"


def made(place: Path, settings: str = TINY) -> tuple[Path, dict[str, str]]:
    """A queue of two cells, the first of them done, with data and noise."""
    images = pictures(48)
    labels = (np.asarray(images["labels"]) + (np.arange(48) % 4 == 0)) % 3
    (place / "noise").mkdir()
    np.savez(place / "noise" / "tiny.npz", sym20=np.asarray(images["labels"]), sym50=labels)
    queue = place / "queue.md"
    head = (
        "# Runs\n\n| cell | data | noise | settings | minutes | published | state | commit |\n|---|---|---|---|---|---|---|---|\n"
    )
    queue.write_text(
        f"{head}| one | tiny | sym20 | {settings} | 1 | | done | abc |\n"
        f"| two | tiny | sym50 | {settings} | 1 | 96.5 | waiting | |\n"
    )
    return queue, {"tiny": arrays_file(place / "tiny-data.npz", **images)}


def test_the_next_cell_is_trained_to_its_end_in_as_many_goes_as_it_takes(tmp_path: Path) -> None:
    queue, data = made(tmp_path)
    before = queue.read_text().splitlines()
    for _ in range(5):
        found = take(queue, data, tmp_path / "noise", tmp_path / "keep", 0.02, None)
        assert found.name == "two" and found.commit and found == cells(queue.read_text())[1]
        if found.state == "done":
            break
    assert found.state == "done" == state_of(tmp_path / "keep" / "two")
    labels = label_files.load(tmp_path / "keep" / "two" / "noise.npz").labels
    assert labels.tolist() == np.load(tmp_path / "noise" / "tiny.npz")["sym50"].tolist()
    assert queue.read_text().splitlines()[:-1] == before[:-1]
    with pytest.raises(UsageError, match="no cell is waiting"):
        take(queue, data, tmp_path / "noise", tmp_path / "keep", 1, None)


def test_what_cannot_be_taken_is_told(tmp_path: Path) -> None:
    queue, data = made(tmp_path, "--epochs nought")
    kept = queue.read_bytes()
    with pytest.raises(UsageError, match="two needs tiny; name it: --data tiny=PATH"):
        take(queue, {}, tmp_path / "noise", tmp_path / "keep", 1, None)
    with pytest.raises(UsageError, match="no cell called three is waiting"):
        take(queue, data, tmp_path / "noise", tmp_path / "keep", 1, "three")
    with pytest.raises(ToolError, match="two ended with exit code 2; the queue stays as it was"):
        take(queue, data, tmp_path / "noise", tmp_path / "keep", 1, None)
    assert queue.read_bytes() == kept
    queue.write_text(queue.read_text().replace("waiting", "at 7"))
    with pytest.raises(UsageError, match="two is at 7, and .*two is not there; copy its config.yaml"):
        take(queue, data, tmp_path / "noise", tmp_path / "keep", 1, None)


def test_every_cell_of_the_queue_is_a_preset_with_its_noise() -> None:
    found = cells(QUEUE.read_text(encoding="utf-8"))
    assert len(found) >= 10 and len({cell.name for cell in found}) == len(found)
    for cell in found:
        words = cell.settings.split()
        preset = words[words.index("--preset") + 1].partition("+")[0]
        assert preset in PRESETS and preset == f"{cell.data}-{cell.noise}"
        assert "--method" not in words or words[words.index("--method") + 1] in METHODS
        assert cell.state in ("waiting", "done") or cell.state.startswith("at ")


def test_the_next_cells_are_trained_while_there_is_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, data = made(tmp_path)
    queue.write_text(queue.read_text().replace("| done | abc |", "| waiting | |"))
    monkeypatch.setattr("studies.queue.ENOUGH", 0.0)
    main(10, [f"tiny={data['tiny']}"], tmp_path / "noise", tmp_path / "keep", None, queue)
    assert [cell.state for cell in cells(queue.read_text())] == ["done", "done"]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_row_and_a_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queue, data = made(tmp_path, TINY)
    runs = tmp_path / "keep"
    while take(queue, data, tmp_path / "noise", runs, 10, "two").state != "done":
        pass
    capsys.readouterr()
    show(runs, tmp_path / "curves", tmp_path / "all.json", queue)
    said = capsys.readouterr().out.splitlines()
    run = runs / "two"
    (found,) = json.loads((tmp_path / "all.json").read_text())
    assert found["published"] == 96.5 and found["epochs"] == found["of"] == 3 and "| **3 of 3** | " in said[-1]

    metrics = lines(run / "metrics.jsonl")
    accuracies = [line["accuracy"]["both"] for line in metrics if "accuracy" in line]
    assert found["accuracy"] == {
        "last": accuracies[-1],
        "mean of 10": pytest.approx(np.mean(accuracies[1:])),
        "best": max(accuracies),
    }
    with (run / "issues.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    with np.load(run / "noise.npz") as noise, np.load(run / "scores.npz") as scores:
        wrong, ids = noise["flipped"], scores["ids"].tolist()
    assert wrong.mean() == found["wrong"] > 0
    score = np.array([float(rows[name]["label_score"]) for name in ids])
    assert found["average precision"] == pytest.approx(average_precision_score(wrong, -score))
    flagged = np.array([rows[name]["is_label_issue"] == "True" for name in ids])
    assert found["list"] == pytest.approx([wrong[flagged].sum() / max(flagged.sum(), 1), flagged[wrong].mean()])

    with (tmp_path / "curves" / "two.csv").open(newline="") as file:
        curve = list(csv.DictReader(file))
    assert [row["epoch"] for row in curve] == ["1", "2", "3"] and curve[0]["phase"] == "warm-up" and curve[0]["clean_share"] == ""
    last = [line for line in metrics if line["phase"] != "final"][-1]
    assert float(curve[-1]["clean_share"]) == pytest.approx(np.mean(last["clean_share"]), abs=1e-4)
    assert float(curve[-1]["auc_mixture"]) == pytest.approx(np.mean(last["auc_loss"]), abs=1e-4)


def test_where_nothing_has_begun_it_is_told(tmp_path: Path) -> None:
    queue, _ = made(tmp_path)
    with pytest.raises(UsageError, match="no cell of queue.md has begun there"):
        show(tmp_path, None, None, queue)
