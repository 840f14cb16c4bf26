"""`labelsieve bench` and `bench-cleanlab`: the figures of a small run, and what is refused before anything is measured."""

import json
from pathlib import Path

import pytest

from cli.conftest import Shell
from labelsieve.errors import UsageError

SMALL = ("--device", "cpu", "--samples", 40, "--set", "training.batch=8", "--set", "training.warmup_batch=8")


def test_figures_are_shown_and_written(shell: Shell, tmp_path: Path) -> None:
    answer = shell("bench", *SMALL, "--json", tmp_path / "bench.json")
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "bench.json").read_text())
    shape = {"samples": 40, "labelled": 20, "batch": 8, "method": "cpc", "network": "small", "picture": [3, 32, 32]}
    assert found["shape"] == shape
    assert len(found["parts_s"]) == 6 and min(found["parts_s"].values()) > 0
    assert found["startup_s"] > 0 and found["epoch_s"] > 0
    # 3 steps of 4 batches trained and 6 inferred, and a pass over all, for each of two networks.
    ideal = 2 * (3 * 32 / found["ceiling"]["trained"] + (3 * 48 + 40) / found["ceiling"]["inferred"])
    assert found["engine_fraction"] == pytest.approx(ideal / found["epoch_s"])
    assert f"{found['engine_fraction']:.3f}" in answer.out and "first step after the command" in answer.out
    assert found["peak_gib"] is None and found["held_gib"] is None and "device memory" not in answer.out


def test_any_method_has_figures(shell: Shell, tmp_path: Path) -> None:
    answer = shell("bench", *SMALL, "--method", "ssr+", "--json", tmp_path / "bench.json")
    assert answer.code == 0, answer.err
    shape = json.loads((tmp_path / "bench.json").read_text())["shape"]
    assert (shape["method"], shape["trained"], shape["looked"]) == ("ssr+", 120, 80)
    assert "ssr+ epoch, 120 pictures trained on, 80 looked at" in answer.out


def test_what_is_not_trained_is_not_counted(shell: Shell, tmp_path: Path) -> None:
    """Web sets mix the unlabelled half in without training on it: 2 of 4 batches a step."""
    answer = shell("bench", *SMALL, "--set", "training.train_unlabelled=false", "--json", tmp_path / "bench.json")
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "bench.json").read_text())
    ideal = 2 * (3 * 16 / found["ceiling"]["trained"] + (3 * 48 + 40) / found["ceiling"]["inferred"])
    assert found["engine_fraction"] == pytest.approx(ideal / found["epoch_s"])


def test_figures_say_what_they_were_measured_with(shell: Shell, tmp_path: Path) -> None:
    told = ("--set", "engine.threads=1", "--set", "engine.precision=bf16")
    for name, profile in (("bench", ()), ("profile", ("--profile", "large"))):
        file = tmp_path / f"{name}.json"
        answer = shell("bench", *SMALL, *told, *profile, "--json", file)
        assert answer.code == 0, answer.err
        found = json.loads(file.read_text())
        assert found["engine"] == {"precision": "bf16", "compile": False, "capture": False, "deterministic": False}
        assert found["environment"]["threads"] == 1 and found["environment"]["packages"]["torch"]


@pytest.mark.slow
def test_a_run_of_two_sizes_has_every_stage(shell: Shell, tmp_path: Path) -> None:
    small = ("--classes", 4, "--device", "cpu", "--set", "pictures.size=8", "--set", "training.batch=16")
    answer = shell("bench", "--scale", "100,200", *small, "--set", "training.warmup_batch=16", "--json", tmp_path / "grown.json")
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "grown.json").read_text())
    assert [one["samples"] for one in found["sizes"]] == [100, 200]
    assert {"warm-up epoch", "issues.csv", "report", "review's start"} <= found["sizes"][1]["stages"].keys()
    assert all(stage["host_gib"] > 0 for one in found["sizes"] for stage in one["stages"].values())
    assert "grows as" in answer.out and "the device waits" in answer.out


OPEN = ("training.batch=0", "training.warmup_batch=0", "engine.eval_batch=0", "views.policy=by-network", "network=auto")


@pytest.mark.parametrize("profile", [(), ("--profile", "large", "--set", "pictures.size=12", "--set", "views.crop=8")])
def test_what_is_left_open_is_settled_as_in_training(shell: Shell, profile: tuple[str, ...], tmp_path: Path) -> None:
    left = [word for setting in OPEN for word in ("--set", setting)]
    answer = shell("bench", "--device", "cpu", "--samples", 40, *left, *profile, "--json", tmp_path / "bench.json")
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "bench.json").read_text())
    assert (found if profile else found["shape"])["network"] == "small"
    assert "batch 8 + 8" in answer.out if profile else found["shape"]["batch"] == 8


def test_a_profile_has_as_many_classes_as_are_said(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def rows(samples: int, classes: int, side: int) -> None:
        made.append(classes)
        raise UsageError("seen")

    monkeypatch.setattr("labelsieve.benchmark.large.mapped_rows", rows)
    for said in ((), ("--classes", 5)):
        shell("bench", "--device", "cpu", "--profile", "large", *said)
    assert made == [14, 5], "as Clothing1M, where nothing is said"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--samples", 10), "made pictures: 10 samples are fewer than one batch of 128"),
        (("--samples", 0), "samples"),
        (("--classes", 1), "classes"),
        (("--json", "nowhere/x.json"), "the folder nowhere does not exist"),
        (("--json", "."), "that is a folder"),
        (
            ("--json", "kept.json"),
            "--json kept.json: that file exists, and nothing is overwritten; move it away, or name another",
        ),
        (("--json", "~/x.json"), "--json ~/x.json: the folder ~ does not exist"),
        (("--set", "engine.capture=true"), "needs a CUDA device"),
        (("--device", "cpu:"), 'device "cpu:" is not known (did you mean "cpu"?)'),
        (("--profile", "large", "--network", "mlp"), 'made pictures: these are pictures, which network "mlp" does not take'),
        (("--profile", "large", "--set", "engine.pictures=device"), "--profile large fetches pictures from the host"),
        (("--profile", "large", "--samples", 4), "made pictures: 4 samples are fewer than one batch of 8"),
        (("--profile", "large", "--set", "views.crop=100"), 'setting "views.crop" is 100, and pictures are 64x64'),
    ],
)
def test_refused_before_measuring(
    shell: Shell, words: tuple[object, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelsieve.benchmark.speed.ceiling", lambda *_: pytest.fail("it measured"))
    monkeypatch.setattr("labelsieve.benchmark.large._step_ms", lambda *_: pytest.fail("it measured"))
    (tmp_path / "kept.json").write_text("mine")
    answer = shell("bench", "--device", "cpu", *words)
    assert answer.code != 0 and said in answer.err
    assert (tmp_path / "kept.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--noise", "sym:0.2", "--noise", "symm:0.4"), "symm"),
        ((), "no label is wrong here, so there is nothing to rank"),
        (("--noise", "sym:0.2", "--json", "nowhere/x.json"), "the folder nowhere does not exist"),
        (("--noise", "sym:0.2", "--json", "kept.json"), "--json kept.json: that file exists"),
    ],
)
def test_all_noises_and_the_file_are_checked_first(
    shell: Shell, words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelsieve.benchmark.against_cleanlab.compare", lambda *_: pytest.fail("it measured"))
    (tmp_path / "kept.json").write_text("mine")
    answer = shell("bench-cleanlab", "digits", *words)
    assert answer.code != 0 and said in answer.err
    assert (tmp_path / "kept.json").read_text() == "mine"
