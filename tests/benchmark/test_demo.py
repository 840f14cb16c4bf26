"""`labelsieve demo`: two runs, one table, a report that stands alone, a summary with exactly the promised keys."""

import json
import re
import sys
from pathlib import Path

import pytest

from labelsieve.benchmark.demo import demo_config
from labelsieve.cli.main import main
from labelsieve.engine import device

CE = {"accuracy_last", "accuracy_best"}
CPC = CE | {"auc", "issue_precision", "issue_recall"}


def demo(*words: object) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["labelsieve", "demo", *map(str, words)])
        # As many threads as cores would be right on an idle machine; beside other tests they only wait for one another.
        patch.setattr(device, "usable_cores", lambda: 1)
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code is None or isinstance(end.value.code, int)
    return end.value.code or 0


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "out"
    assert demo("--out", path, "--epochs", 10) == 0
    return path


def test_the_summary_has_exactly_the_promised_keys(out: Path) -> None:
    summary = json.loads((out / "summary.json").read_text())
    assert set(summary) == {"ce", "cpc"}
    assert set(summary["ce"]) == CE and set(summary["cpc"]) == CPC
    for figures in summary.values():
        assert 20 < figures["accuracy_last"] <= figures["accuracy_best"] <= 100  # percent
    assert all(0.5 < summary["cpc"][name] <= 1 for name in CPC - CE)


def test_the_summary_says_what_the_runs_say(out: Path) -> None:
    summary = json.loads((out / "summary.json").read_text())
    for method in ("ce", "cpc"):
        lines = [json.loads(line) for line in (out / method / "metrics.jsonl").read_text().splitlines()]
        accuracies = [line["accuracy"]["both"] for line in lines if "accuracy" in line]
        assert len(accuracies) == 10
        assert summary[method]["accuracy_last"] == pytest.approx(accuracies[-1], abs=0.01)
        assert summary[method]["accuracy_best"] == pytest.approx(max(accuracies), abs=0.01)


def test_the_report_stands_alone(out: Path) -> None:
    page = (out / "report.html").read_text()
    assert "<svg" in page and page.count("data:image/") >= 24
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)[^\"']*", page)
    assert not re.search(r"<script|@import|url\((?!data:|#)", page)


def test_running_it_again_takes_the_runs_as_they_are(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: (out / name).read_bytes() for name in ("summary.json", "report.html")}
    assert demo("--out", out, "--epochs", 10) == 0
    said = capsys.readouterr().out
    assert said.count("already done") == 2 and "accuracy" in said and str(out / "report.html") in said
    assert {name: (out / name).read_bytes() for name in before} == before


def test_other_settings_in_the_same_place_are_refused(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo("--out", out, "--epochs", 11) == 2
    assert "another --out" in capsys.readouterr().err


def test_both_methods_train_alike() -> None:
    ce, cpc = demo_config("ce", 3), demo_config("cpc", 3)
    assert (ce.data, ce.training, ce.network, ce.seed) == (cpc.data, cpc.training, cpc.network, cpc.seed)
    assert ce.data.noise == "sym:0.4" and ce.data.source == "digits"


@pytest.mark.slow
def test_three_seeds_reach_what_is_promised(tmp_path: Path) -> None:
    summaries = []
    for seed in range(3):
        assert demo("--out", tmp_path / str(seed), "--seed", seed) == 0
        summaries.append(json.loads((tmp_path / str(seed) / "summary.json").read_text()))
    cpc = [summary["cpc"]["accuracy_last"] for summary in summaries]
    gains = [summary["cpc"]["accuracy_last"] - summary["ce"]["accuracy_last"] for summary in summaries]
    assert sum(cpc) / 3 >= 97
    assert sum(gains) / 3 >= 15
