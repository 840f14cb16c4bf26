"""Runs side by side: names that tell them apart, and a page whose tables fit it."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from labelsieve.errors import UsageError
from labelsieve.issues.table import read_issues
from labelsieve.reproduce.compare import (
    BESIDE,
    compare_csv,
    compare_lists,
    compare_page,
    compare_runs,
    differing_settings,
    row_of,
    short_names,
    without_tests,
)
from runs.tiny import pictures, tiny_config, whole


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("t3/runs/c-sym90+gmm-agn/seed0", "t3/runs/c-sym90+cpc-awr/seed0"), ["gmm-agn", "cpc-awr"]),
        (("t3/runs/c-sym90+cpc-awr/seed0", "t3/runs/c-sym90+cpc-awr/seed1"), ["seed0", "seed1"]),
        (("t3/runs/c-sym90+cpc-awr/seed0", "t3/runs/c-sym90+ce/seed1"), ["cpc-awr/seed0", "ce/seed1"]),
        (("c-sym50+cpc-awr", "c-sym90+cpc-awr"), ["c-sym50+cpc-awr", "c-sym90+cpc-awr"]),
        (("c-sym90", "c-sym90+tau0.6"), ["c-sym90", "c-sym90+tau0.6"]),
        (("a/run", "b/run"), ["a", "b"]),
    ],
)
def test_names_are_what_differs(paths: tuple[str, ...], names: list[str]) -> None:
    assert short_names([Path(path) for path in paths]) == names


def test_the_page_has_two_narrow_tables_of_numbers(swept: Path) -> None:
    runs = compare_runs([swept / "runs" / f"stripes+{name}" / "seed0" for name in ("gmm-agn", "cpc-awr")])
    text = compare_page(runs)
    headers = [re.findall(r"<th[^>]*>([^<]*)</th>", part) for part in re.findall(r"<thead>.*?</thead>", text, re.DOTALL)]
    assert headers[0] == ["run", "epochs", "last", "mean of last 10", "best", "95 % interval"]
    assert headers[1] == ["run", "against the first", "AUC"]
    assert "gmm-agn is what the others are held against" in text


def test_a_difference_is_what_the_later_run_is_better_by(tmp_path: Path, swept: Path) -> None:
    """Three and 14 of 16 pictures are right, one of them by both."""
    label = np.ones(16, np.int32)
    for name, right in (("worse", np.arange(16) > 12), ("better", np.arange(16) < 14)):
        shutil.copytree(swept / "runs" / "stripes+ce" / "seed0", tmp_path / name)
        np.savez(tmp_path / name / "predictions.npz", label=label, top=right.astype(np.int32)[:, None], test_set=np.array("one"))
    worse, better = compare_runs([tmp_path / "worse", tmp_path / "better"])
    assert worse.against is None and better.against is not None
    assert (worse.accuracy, better.accuracy, better.against.points) == (100 * 3 / 16, 100 * 14 / 16, 100 * 11 / 16)
    assert (better.against.only_first, better.against.only_second) == (2, 13)


def test_a_run_looks_alike_in_both_charts_and_the_auc_is_explained(swept: Path) -> None:
    """Plain training comes first and has no division to draw."""
    text = compare_page(compare_runs([swept / "runs" / f"stripes+{name}" / "seed0" for name in ("ce", "gmm-agn", "cpc-awr")]))
    charts = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    looks = [set(re.findall(r'class="mark (s\d)"', chart)) for chart in charts]
    assert {"s0", "s1", "s2"} in looks and {"s1", "s2"} in looks and {"s0", "s1"} not in looks
    assert "method goes by; mean over its networks" in text and "AUC: how well" in text


def test_runs_of_different_methods_stand_side_by_side(tmp_path: Path) -> None:
    """With how each method's own opinion ranks labels, and own settings where runs of one method differ in them."""
    np.savez(tmp_path / "data.npz", **pictures())
    source = f"arrays:{tmp_path / 'data.npz'}"
    asked = {"ssr": {"method": "ssr"}, "sure": {"method": "ssr", "ssr__theta_r": 0.7}, "elr": {"method": "elr+"}}
    found = compare_runs([whole(tmp_path / name, tiny_config(source, **more)).folder.path for name, more in asked.items()])
    assert [list(run.auc) for run in found] == [["auc_neighbours"], ["auc_neighbours"], ["auc_confidence", "auc_memory"]]
    settings = differing_settings(found)
    assert settings["method"] == ["ssr", "ssr", "elr+"] and settings["ssr.theta_r"] == ["0.9", "0.7", ""]
    assert not any(key.startswith("elr+") for key in settings)
    assert row_of(found[2])[-1].startswith("confidence 0.") and "memory" in row_of(found[2])[-1]
    assert compare_csv(found).splitlines()[0].split(",")[15:20] == [
        *("auc_loss", "auc_prototype", "auc_neighbours", "auc_confidence", "auc_memory")
    ]


def test_a_run_without_test_pictures_and_a_sweep_are_named(tmp_path: Path, swept: Path) -> None:
    first = swept / "runs" / "stripes+cpc-awr" / "seed0"
    np.savez(tmp_path / "data.npz", **{name: array for name, array in pictures().items() if not name.startswith("test_")})
    untested = whole(tmp_path / "run", tiny_config(f"arrays:{tmp_path / 'data.npz'}")).folder.path
    with pytest.raises(UsageError, match="trained without test pictures"):
        compare_runs([first, untested])
    again = shutil.copytree(untested, tmp_path / "again")
    assert without_tests([untested, again]) and not without_tests([first, untested])
    text, listed = (again / "issues.csv").read_text(), sum(read_issues(again / "issues.csv")["is_label_issue"])
    (again / "issues.csv").write_text(text.replace(",True,", ",False,", 1))  # one fewer
    found = compare_lists([untested, again])
    assert listed and [(one.listed, one.by_first) for one in found] == [(listed, listed), (listed - 1, listed - 1)]
    with pytest.raises(UsageError, match="this is a sweep of `labelsieve reproduce`; name runs in it"):
        compare_runs([first, swept])


def test_settings_of_many_runs_are_listed_by_value(swept: Path) -> None:
    """A column for each of six runs would break words letter by letter."""
    paths = [swept / "runs" / f"stripes+{name}" / f"seed{seed}" for name in ("ce", "gmm-agn", "cpc-awr") for seed in (0, 1)]
    text = compare_page(compare_runs(paths))
    rows = [re.findall(r"<t[hd][^>]*>(?:<span>)?([^<]*)", row) for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL)]
    assert len(paths) > BESIDE and ["setting", "value", "runs"] in rows
    assert ["method", "cpc", "the other 4"] in rows and ["method", "ce", "ce/seed0, ce/seed1"] in rows
    assert ["seed", "1", "ce/seed1, gmm-agn/seed1, cpc-awr/seed1"] in rows
    few = compare_page(compare_runs(paths[:BESIDE]))
    assert ">setting</th>" in few and ">value</th>" not in few
