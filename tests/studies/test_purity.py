"""How right the head of a ranking is: against counting by hand, and against what a whole run says of itself."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from test_class_fates import ALL_TOLD, trained

from labelsieve.benchmark.against_cleanlab import recall_at_true_count, share_among_first
from labelsieve.errors import ToolError, UsageError
from studies.purity import main, purities
from studies.ranking import count_of, head


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("purity") / "run", "cleaner=cpc-awr", *ALL_TOLD)


def test_the_first_are_counted_as_by_hand(run: Path) -> None:
    found = {one.judge: one for one in purities(run, [0.1, 0.4, 1])}
    scores, right = np.load(run / "scores.npz"), ~np.load(run / "early_losses.npz")["wrong"][0]
    assert list(found) == ["loss", "mixture", "prototypes"]
    for judge, chances in {"loss": -scores["loss"], "prototypes": scores["by_prototype"]}.items():  # which have no equal ones
        one = found[judge]
        assert one.auc == pytest.approx(np.mean([roc_auc_score(right, each) for each in chances]))
        for share, of_all, of_each in zip((0.1, 0.4), one.of_all, one.of_each_class):
            first = [np.argsort(-each)[: round(share * 500)] for each in chances]
            assert of_all == pytest.approx(np.mean([right[rows].mean() for rows in first]))
            taken = []
            for each in chances:
                rows = [np.flatnonzero(scores["given"] == k) for k in range(10)]
                best = [some[np.argsort(-each[some])][: max(1, round(share * len(some)))] for some in rows]
                taken.append(right[np.concatenate(best)].mean())
            assert of_each == pytest.approx(np.mean(taken))
    draw = np.random.default_rng(2)  # the mixture's chances are often equal: an order by chance among these
    orders = [[np.lexsort((draw.random(500), -each))[:200] for _ in range(300)] for each in scores["by_loss"]]
    assert found["mixture"].of_all[1] == pytest.approx(
        np.mean([right[rows].mean() for some in orders for rows in some]), abs=0.005
    )
    assert found["mixture"].auc == pytest.approx(np.mean([roc_auc_score(right, each) for each in scores["by_loss"]]))
    assert all(one.of_all[2] == one.of_each_class[2] == pytest.approx(right.mean()) for one in found.values())


def test_equal_chances_count_as_in_an_order_by_chance() -> None:
    chance, right = np.array([0.9, 0.5, 0.5, 0.5, 0.1]), np.array([True, True, False, False, True])
    assert head(chance, right, 0.4) == pytest.approx((1 + 1 / 3) / 2)
    assert head(chance, right, 0.01) == 1 and count_of(0.01, 5) == 1
    draw = np.random.default_rng(1)
    score, wrong = draw.integers(0, 5, 200).astype(float), draw.random(200) < 0.3
    orders = [np.lexsort((draw.random(200), score))[:50] for _ in range(4000)]
    assert share_among_first(score, wrong, 50) == pytest.approx(np.mean([wrong[rows].mean() for rows in orders]), abs=0.005)
    assert recall_at_true_count(score, wrong) == share_among_first(score, wrong, int(wrong.sum()))


@pytest.mark.slow
def test_a_stopped_run_and_one_that_mixtures_divide_have_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = trained(tmp_path / "run", "cleaner=gmm-agn", *ALL_TOLD, until=6)
    main(place, [0.05, 0.125], tmp_path / "t.csv")
    said = capsys.readouterr().out
    assert "12.5 %" in said and "mixture" in said and "prototypes" not in said
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["judge"], row["first of"]) for row in rows] == [
        (judge, of) for judge in ("loss", "mixture") for of in ("all labels", "each class")
    ]
    assert float(rows[0]["0.125"]) == pytest.approx(purities(place, [0.125])[0].of_all[0], abs=1e-3)


def test_a_run_that_cannot_be_measured_is_told(run: Path, tmp_path: Path) -> None:
    for share in (0, 1.1, -0.1):
        with pytest.raises(UsageError, match="above 0 and at most 1"):
            main(run, [share])
    place = tmp_path / "run"
    shutil.copytree(run, place)
    np.savez(place / "scores.npz", given=np.zeros(3, int), by_loss=np.zeros((2, 3)))
    with pytest.raises(ToolError, match=r"of other samples than early_losses.npz"):
        purities(place, [0.1])
    (place / "scores.npz").unlink()
    with pytest.raises(ToolError, match=r"scores.npz: missing"):
        purities(place, [0.1])
    (place / "early_losses.npz").unlink()
    with pytest.raises(ToolError, match="has not finished its warm-up"):
        purities(place, [0.1])
    (tmp_path / "t.csv").write_text("measured")
    with pytest.raises(UsageError, match="nothing is overwritten"):
        main(run, [0.1], tmp_path / "t.csv")
