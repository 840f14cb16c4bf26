"""What a run leaves: scores.npz by sample, issues.csv, the model; and that no true label reaches any of it but the metrics."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import Truth
from labelsieve.predict.model import load_model
from labelsieve.results.kept import read_early_losses
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import Rows, rows_for
from labelsieve.train.start import resume, start
from runs.tiny import FILES, arrays_file, contents, tiny_config, whole


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def test_a_finished_folder_holds_exactly_what_is_promised(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} == FILES
    assert RunFolder.open(finished).read_config().training.epochs == 2
    facts = json.loads((finished / "environment.json").read_text())
    assert {"labelsieve", "python", "packages", "device", "threads"} <= set(facts)


def test_metrics_have_a_line_an_epoch_and_one_for_the_last_division(finished: Path) -> None:
    assert [(line["epoch"], line["phase"]) for line in records(finished)] == [(1, "warm-up"), (2, "prototypes"), (2, "final")]
    mixed, final = records(finished)[1:]
    wanted = {"auc_loss", "auc_prototype", "clean_precision", "clean_recall", "divergence", "consistency", "clean_share"}
    assert wanted | {"accuracy", "loss", "lr", "steps"} <= set(mixed)
    assert wanted <= set(final)
    accuracy = mixed["accuracy"]
    assert isinstance(accuracy, dict)
    assert set(accuracy) == {"first", "second", "both", "prototypes_first", "prototypes_second", "prototypes"}


def test_scores_have_a_row_for_each_sample_and_network(finished: Path, source: str) -> None:
    rows = rows_for(tiny_config(source))
    with np.load(finished / "scores.npz", allow_pickle=False) as arrays:
        scores = {name: arrays[name] for name in arrays.files}
    count = len(rows.data)
    assert scores["ids"].tolist() == list(rows.data.ids) and scores["classes"].tolist() == list(rows.data.classes)
    assert (scores["given"] == rows.data.labels.numpy()).all()
    for name in ("loss", "by_loss", "by_prototype", "suggested", "confidence"):
        assert scores[name].shape == (2, count) and np.isfinite(scores[name]).all()
    for name in ("by_loss", "by_prototype", "confidence", "history_by_loss", "history_by_prototype"):
        assert ((scores[name] >= 0) & (scores[name] <= 1)).all()
    assert scores["history_epochs"].tolist() == [1, 2]
    assert scores["history_by_loss"].shape == scores["history_by_prototype"].shape == (2, 2, count)
    assert np.allclose(scores["history_by_prototype"][-1], scores["by_prototype"], atol=1e-3)


def test_issues_agree_with_the_scores(finished: Path) -> None:
    with (finished / "issues.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with np.load(finished / "scores.npz") as scores:
        assert scores["history_recent"].shape == (2, len(rows))  # of both divisions: what was believed of the label
        expected = dict(zip(scores["ids"].tolist(), scipy.stats.gmean(scores["history_recent"].astype(float))))
        given = dict(zip(scores["ids"].tolist(), scores["classes"][scores["given"]].tolist()))
    assert len(rows) == len(expected)
    for row in rows:
        assert float(row["label_score"]) == pytest.approx(expected[row["id"]], abs=1e-4)
        assert row["given_label"] == given[row["id"]]


def test_awkward_ids_and_class_names_come_back(tmp_path: Path) -> None:
    classes = np.array(['a, "b"', "line\nfeed\r", "[/red] :smile:"])
    ids = np.array([f'{i}, "x"\n' for i in range(48)])
    run = whole(tmp_path / "run", tiny_config(arrays_file(tmp_path / "odd.npz", classes=classes, ids=ids)))
    rows = run.folder.read_issues()
    assert {row["id"] for row in rows} == set(ids.tolist())
    assert {row["given_label"] for row in rows} == set(classes.tolist())
    assert load_model(tmp_path / "run", torch.device("cpu")).classes == tuple(classes.tolist())


def test_without_prototypes_there_are_none_in_the_scores(tmp_path: Path, source: str) -> None:
    whole(tmp_path / "run", tiny_config(source, method="ce"))
    with np.load(tmp_path / "run" / "scores.npz") as scores:
        assert not [name for name in scores.files if "prototype" in name]
    assert [line["phase"] for line in records(tmp_path / "run")] == ["warm-up", "warm-up", "final"]
    assert len(RunFolder(tmp_path / "run").read_issues()) == 48


def test_data_without_a_test_set_or_truth(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "bare.npz", images=np.random.default_rng(0).integers(0, 255, (48, 8, 8, 3), np.uint8), labels=np.arange(48) % 3
    )
    whole(tmp_path / "run", tiny_config(f"arrays:{tmp_path / 'bare.npz'}", data__noise="none"))
    assert not (tmp_path / "run" / "noise.npz").exists()
    for line in records(tmp_path / "run"):
        assert not {"accuracy", "auc_loss", "clean_precision"} & set(line)


def test_true_labels_reach_nothing_that_trains_or_cleans(
    tmp_path: Path, source: str, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shuffled(config: Config) -> Rows:
        rows = rows_for(config)
        assert rows.truth is not None
        order = torch.randperm(len(rows.data), generator=torch.Generator().manual_seed(5))
        return replace(rows, truth=Truth(rows.truth.labels[order]))

    monkeypatch.setattr("labelsieve.train.start.rows_for", shuffled)
    whole(tmp_path / "run", tiny_config(source))
    told, other = contents(finished), contents(tmp_path / "run")
    differing = {name for name in told if told[name] != other[name]}
    assert differing == {"metrics.jsonl", "early_losses.npz"}
    early = [read_early_losses(RunFolder(path)) for path in (finished, tmp_path / "run")]
    assert np.array_equal(early[0].loss, early[1].loss) and np.array_equal(early[0].given, early[1].given)
    measured = {"auc_loss", "auc_prototype", "clean_precision", "clean_recall", "wrong_labels"}
    for one, two in zip(records(finished), records(tmp_path / "run")):
        assert {name for name in one if one[name] != two[name]} <= measured


@pytest.mark.parametrize("seed", [10**15, 2**63 - 1])
def test_every_allowed_seed_can_begin(tmp_path: Path, source: str, seed: int) -> None:
    run = start(tmp_path / "run", tiny_config(source, seed=seed))
    assert resume(run.home.path).config.seed == seed
