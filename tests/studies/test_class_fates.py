"""Classes that a run loses: each number against one counted by hand or by SciPy and scikit-learn."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from labelsieve.config.resolve import resolve
from labelsieve.errors import ToolError, UsageError
from labelsieve.runs.findings import read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from studies.class_fates import fates_of, main, rank_correlation

SETTINGS = [
    "training.epochs=8",
    "training.warmup=4",
    "training.batch=32",
    "training.warmup_batch=32",
    "training.lambda_u=0",
    "cleaning.passes=5",
    "engine.threads=1",
    "device=cpu",
]
SETTINGS += ["training.mixed=true"]
ALL_TOLD = ["cleaning.least_clean=0", "cleaning.mixture_threshold=0.5"]


def trained(place: Path, *more: str, noise: str = "sym:0.5", until: int = 99) -> Path:
    run = start(place, resolve("digits", options={"data.noise": noise, "data.limit": 500}, settings=[*SETTINGS, *more]))
    for _ in each_epoch(run, stop=lambda: run.epoch >= until):
        pass
    return place


@pytest.fixture(scope="module", params=["cpc-awr", "gmm-agn"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("fates") / "run", f"cleaner={request.param}", *ALL_TOLD)


def test_every_class_is_counted_as_by_hand(run: Path) -> None:
    found = fates_of(run)
    scores, early, kept = (np.load(run / f"{name}.npz") for name in ("scores", "early_losses", "predictions"))
    chances = scores["by_prototype"] if "by_prototype" in scores.files else scores["by_loss"]
    right = ~early["wrong"][0]
    assert found.classes == tuple("0123456789") and found.accuracy is not None
    for k in range(10):
        of_class = scores["given"] == k
        taken = [[i for i in np.flatnonzero(of_class) if chance[i] > 0.5] for chance in chances]
        hits = [sum(bool(right[i]) for i in each) for each in taken]
        assert found.taken[k] == np.mean([len(each) for each in taken])
        assert taken[0] + taken[1]
        assert found.precision[k] == pytest.approx(sum(hits) / len(taken[0] + taken[1]))
        assert found.recall[k] == pytest.approx(np.mean(hits) / (of_class & right).sum())
        assert found.early_auc[k] == pytest.approx(roc_auc_score(right[of_class], -early["loss"].mean(0)[of_class]))
        named = kept["top"][kept["label"] == k, 0]
        assert found.accuracy[k] == pytest.approx(100 * np.mean(named == k))


def check_the_whole(run: Path) -> None:
    found, last = fates_of(run), json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["phase"] == "final"
    assert found.taken.sum() / 500 == pytest.approx(np.mean(last["clean_share"]))
    weighed = np.nansum(found.precision * found.taken) / found.taken.sum()
    assert min(last["clean_precision"]) - 1e-9 <= weighed <= max(last["clean_precision"]) + 1e-9


def test_the_whole_is_what_the_run_itself_measured(run: Path) -> None:
    check_the_whole(run)


@pytest.mark.slow
@pytest.mark.parametrize(("cleaner", "noise"), [("cpc-awr", "sym:0.1"), ("gmm-agn", "sym:0.95")])
def test_what_was_decided_after_the_warm_up_counts(cleaner: str, noise: str, tmp_path: Path) -> None:
    """A least share that is taken where few labels are wrong, a higher threshold where most are."""
    place = trained(tmp_path / "run", f"cleaner={cleaner}", noise=noise)
    decided = read_record(RunFolder(place)).decision
    assert decided["least_clean"] > 0.5 if noise == "sym:0.1" else decided["mixture_threshold"] == 0.6
    check_the_whole(place)


def test_a_class_of_which_nothing_right_is_taken_is_lost(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "run"
    shutil.copytree(run, place)
    scores = dict(np.load(place / "scores.npz"))
    right = ~np.load(place / "early_losses.npz")["wrong"][0]
    name = "by_prototype" if "by_prototype" in scores else "by_loss"
    three, four = scores["given"] == 3, scores["given"] == 4
    scores[name][:, three] = np.where(right[three], 0.1, 0.9)
    scores[name][:, four] = 0.1
    np.savez(place / "scores.npz", **scores)
    found = fates_of(place)
    assert found.precision[3] == 0 and found.recall[3] == 0 and np.isnan(found.precision[4]) and found.taken[4] == 0
    assert found.lost[3] and found.lost[4]
    main(place, tmp_path / "t.csv")
    said = capsys.readouterr().out
    assert f"{found.lost.sum()} of 10 classes are lost" in said and "rank correlation over classes of the AUC" in said
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows[:2]] == ["4", "3"] and len(rows) == 10
    assert (rows[0]["precision"], rows[1]["precision"]) == ("", "0.0000")  # of the first nothing is taken at all
    assert [float(row["precision"]) for row in rows[1:]] == sorted(float(row["precision"]) for row in rows[1:])


def test_rank_correlation_is_spearmans() -> None:
    draw = np.random.default_rng(3)
    one, other = draw.integers(0, 6, 40).astype(float), draw.integers(0, 6, 40).astype(float)
    other += one
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one, other).statistic)
    one[:5] = np.nan
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one[5:], other[5:]).statistic)
    assert rank_correlation(np.ones(4), np.arange(4.0)) is None and rank_correlation(np.full(3, np.nan), np.ones(3)) is None


def test_a_run_that_cannot_be_measured_is_told(run: Path, tmp_path: Path) -> None:
    clean = trained(tmp_path / "clean", "training.epochs=5", noise="none")
    with pytest.raises(ToolError, match="has not ended, so nothing is decided yet; `labelsieve resume"):
        fates_of(trained(tmp_path / "stopped", until=6))
    with pytest.raises(ToolError, match="no label is known to be wrong"):
        fates_of(clean)
    place = tmp_path / "run"
    shutil.copytree(run, place)
    (place / "scores.npz").unlink()
    with pytest.raises(ToolError, match=r"scores.npz: missing or damaged"):
        fates_of(place)
    np.savez(place / "scores.npz", given=np.zeros(3, int), by_loss=np.zeros((2, 3)))
    with pytest.raises(ToolError, match=r"of other samples than early_losses.npz"):
        fates_of(place)
    (place / "early_losses.npz").unlink()
    with pytest.raises(ToolError, match="has not finished its warm-up"):
        fates_of(place)
    (tmp_path / "t.csv").write_text("measured")
    with pytest.raises(UsageError, match="nothing is overwritten"):
        main(run, tmp_path / "t.csv")


def test_draws_of_samples_are_told(tmp_path: Path) -> None:
    place = trained(tmp_path / "drawn", "training.epoch_batches=3")
    with pytest.raises(ToolError, match="saw draws of the samples"):
        fates_of(place)
