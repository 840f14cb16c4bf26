"""Each verb does what it says: train, resume, evaluate, presets, doctor, --version, --help, --dry-run."""

import csv
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.conftest import TINY, Shell
from labelsieve.config.presets import PRESETS
from labelsieve.config.schema import dotted_keys
from labelsieve.data.sources import FORMS
from labelsieve.issues.estimate import UNKNOWN_WORDS, Share, in_words, sentence
from labelsieve.methods.registry import own_keys
from labelsieve.runs import environment
from labelsieve.terminal import training
from labelsieve.train import start
from labelsieve.train.run import Run
from labelsieve.version import __version__
from runs.tiny import FILES, SETTINGS, arrays_file, contents, pictures

# What makes a start slow; none of it may be needed to show a help text.
HEAVY = ("torch", "numpy", "sklearn", "scipy", "PIL", "safetensors")


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import resource, sys\n"
        "sys.argv = ['labelsieve', '--help']\n"
        "from labelsieve.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *text, imported, seconds = done.stdout.splitlines()
    for verb in ("demo", "train", "resume", "evaluate", "presets", "doctor"):
        assert any(line.strip().startswith(verb) for line in text)
    assert imported == "[]"
    assert float(seconds) < 0.5


@pytest.mark.parametrize("verb", ["demo", "train", "resume", "evaluate", "presets", "doctor"])
def test_every_verb_explains_itself(shell: Shell, verb: str) -> None:
    answer = shell(verb, "--help")
    assert answer.code == 0 and "Usage" in answer.out


@pytest.mark.parametrize("verb", ["train", "inspect"])
def test_the_help_names_every_known_set(shell: Shell, verb: str) -> None:
    told = " ".join(shell(verb, "--help").out.split())
    assert not [form for name, form in FORMS.items() if name not in ("arrays", "embeddings", "pictures") and form not in told]


@pytest.mark.parametrize(("verb", "words"), [("train", "Any setting (see"), ("inspect", "pictures.*"), ("predict", "pictures.*")])
def test_the_help_says_which_settings_a_verb_takes(shell: Shell, verb: str, words: str) -> None:
    told = " ".join(shell(verb, "--help").out.split())
    assert words in told.partition("--set KEY=VALUE ")[2][:80]


def test_version(shell: Shell) -> None:
    answer = shell("--version")
    assert (answer.code, answer.out) == (0, f"labelsieve {__version__}\n")


def test_an_unknown_verb_or_option_is_wrong_use(shell: Shell) -> None:
    assert shell("trian").code == 2
    assert shell("train", "digits", "--epoch-count", "3").code == 2


def test_presets_are_listed_shown_and_their_keys(shell: Shell) -> None:
    listed = shell("presets")
    assert listed.code == 0 and all(name in listed.out for name in PRESETS)
    shown = shell("presets", "cifar100-sym90")
    assert shown.code == 0 and "training.lambda_u" in shown.out and "150.0" in shown.out
    keys = shell("presets", "--keys")
    assert [line.split()[0] for line in keys.out.splitlines()] == [*dotted_keys(), *own_keys()]
    assert "Weight of the unlabelled loss" in keys.out and "(a number or none)" in keys.out
    unknown = shell("presets", "cifar100-sym9")
    assert unknown.code == 2 and 'did you mean "cifar100-sym90"' in unknown.err


def test_doctor_names_what_is_installed_and_the_device(shell: Shell) -> None:
    answer = shell("doctor")
    assert answer.code == 0
    for word in (__version__, "torch", "numpy", "device", "cores", sys.version.split()[0]):
        assert word in answer.out


def test_doctor_names_what_is_installed_and_of_no_use(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torchvision is beside another torch than it was compiled with, and with it the networks of timm."""

    def fails(name: str) -> None:
        raise RuntimeError(f"operator of {name} does\nnot exist")

    monkeypatch.setattr(environment, "EXTRAS", {"review": ("typer",), "none": ("no-such-package",)})
    monkeypatch.setattr(importlib, "import_module", fails)
    said = " ".join(shell("doctor").out.split())
    assert "extra review installed, but cannot be imported (typer: operator of typer does not exist); reinstall it" in said
    assert "extra none not installed (no-such-package missing)" in said


def test_train_makes_a_whole_folder_and_says_where(tmp_path: Path, shell: Shell, source: str) -> None:
    out = tmp_path / "new" / "[run] of [/mine]"  # brackets are no markup
    answer = shell("train", source, "--out", out, *TINY)
    assert answer.code == 0, answer.err
    assert {path.name for path in out.iterdir()} == FILES
    assert f"done: {out}" in answer.out
    assert "epoch 1/2" in answer.out and "loss" in answer.out and "accuracy" in answer.out and "clean" in answer.out
    assert all(path.stat().st_mode & 0o444 for path in out.rglob("*"))


def test_the_terminal_says_what_card_and_list_say(tmp_path: Path, shell: Shell, source: str) -> None:
    answer = shell("train", source, "--out", tmp_path / "run", *TINY)
    with (tmp_path / "run" / "issues.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    issues = [row["action"] for row in rows if row["is_label_issue"] == "True"]
    listed = f"{len(issues)} of {len(rows)} labels {'is listed as an issue' if len(issues) == 1 else 'are listed as issues'}"
    assert issues and listed in answer.out
    assert all(f"{issues.count(action)} to {action}" in answer.out for action in set(issues))
    share = json.loads((tmp_path / "run" / "estimate.json").read_text())["estimate"]
    said = UNKNOWN_WORDS if share is None else sentence(Share(share["share"], share["low"], share["high"]))
    assert " ".join(said.split()) in " ".join(answer.out.split())
    card = (tmp_path / "run" / "README.md").read_text()
    assert (
        "cannot be known here" if share is None else " (".join(in_words(Share(share["share"], share["low"], share["high"])))
    ) in card


def test_plain_training_names_no_list_that_is_not_there(tmp_path: Path, shell: Shell, source: str) -> None:
    answer = shell("train", source, "--out", tmp_path / "run", "--method", "ce", *TINY)
    assert answer.code == 0 and ("issues.csv" in answer.out) == (tmp_path / "run" / "issues.csv").exists()


def test_a_command_in_a_message_can_be_copied_whatever_the_folder_is_called(
    tmp_path: Path, shell: Shell, source: str, finished: Path
) -> None:
    run = tmp_path / "my run"
    shutil.copytree(finished, run)
    answer = shell("train", source, "--out", run, *TINY)
    assert answer.code == 2 and f"labelsieve resume '{run}'" in answer.err


def test_an_existing_run_is_never_overwritten(tmp_path: Path, shell: Shell, source: str, finished: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    before = contents(run)
    answer = shell("train", source, "--out", run, *TINY)
    assert answer.code == 2 and f"labelsieve resume {run}" in answer.err
    other = shell("train", source, "--out", run, *TINY, "--seed", 7, "--resume")
    assert other.code == 2 and "other settings" in other.err
    same = shell("train", source, "--out", run, *TINY, "--resume")
    assert same.code == 0 and "already done" in same.out
    assert contents(run) == before


def test_what_is_no_run_is_left_alone(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("dear")
    (tmp_path / "file").write_text("dear")
    for path in (tmp_path / "thesis", tmp_path / "file"):
        answer = shell("train", "digits", "--out", path)
        assert answer.code == 2 and "is not a run" in answer.err
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == (tmp_path / "file").read_text() == "dear"
    missing = shell("resume", tmp_path / "nowhere")
    assert missing.code == 2 and "labelsieve train" in missing.err
    none = shell("resume", tmp_path / "thesis")
    assert none.code == 1 and "config.yaml" in none.err


def test_a_dry_run_makes_nothing(tmp_path: Path, shell: Shell, source: str, finished: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    answer = shell("train", source, "--out", tmp_path / "run", "--dry-run", *TINY)
    assert answer.code == 0 and sorted(tmp_path.rglob("*")) == before
    plan, _, settings = shell("train", source, "--dry-run", "--verbose", *TINY).out.partition("\n\n")
    assert settings == (finished / "config.yaml").read_text() and plan.startswith("data: 48 pictures")
    plan = answer.out
    assert "version: 1" not in plan and "48 pictures" in plan and "1 epochs of warm-up" in plan and "would be made" in plan
    assert "exists already" in shell("train", source, "--out", finished, "--dry-run", *TINY).out


def test_a_setting_that_the_cleaner_does_not_read_is_told(tmp_path: Path, shell: Shell, source: str) -> None:
    said = ("--cleaner", "gmm-agn", "--set", "passes=3")
    planned = shell("train", source, "--dry-run", *TINY, *said)
    note = next(line for line in planned.out.splitlines() if line.startswith("note: cleaning."))
    assert "cleaning.passes: the cleaner gmm-agn does not read that" in note
    assert "does not read" not in shell("train", source, "--dry-run", *TINY, "--set", "passes=3").out
    for preset, unread in (("digits+gmm-agn+tau0.7", True), ("digits+tau0.7", False)):
        crossed = shell("train", source, "--dry-run", *TINY, "--preset", preset)
        told = crossed.out.partition("does not read")[0] if "does not read" in crossed.out else ""
        assert crossed.code == 0 and ("cleaning.tau" in told) == unread, preset


@pytest.mark.parametrize(
    ("epochs", "said"),
    [
        (2, "2 epochs of warm-up, 0 of mixed training\n"),
        (6, "2 of mixed training, too few for prototypes to take over\n"),
        (7, "3 of mixed training, divided by prototypes from epoch 7\n"),
    ],
)
def test_the_plan_names_no_epoch_after_the_last(shell: Shell, epochs: int, said: str) -> None:
    assert said in shell("train", "digits", "--epochs", epochs, "--dry-run").out


def test_labels_that_are_made_wrong_are_told_and_of_ones_own_data_that_a_preset_does_it(
    tmp_path: Path, shell: Shell, source: str
) -> None:
    """A preset of the paper replaced half of a user's own labels, and the run's output did not say so."""
    tiny = [f"--set={key}={value}" for key, value in SETTINGS.items() if key != "data.noise"]
    for said in ([], ["--set=data.noise=none"], ["--noise", "none"], ["--noise", "sym:0.3"]):
        planned = shell("train", source, "--dry-run", "--preset", "cifar10-sym50", *tiny, *said)
        assert planned.code == 0, planned.err
        assert ("makes labels wrong on purpose (sym:0.5), your own data's, too" in planned.out) == (not said), said
    assert "on purpose" not in shell("train", "digits", "--dry-run", "--preset", "cifar10-sym50", *tiny).out  # a study
    trained = shell("train", source, "--out", tmp_path / "run", *tiny, "--noise", "sym:0.3")
    assert trained.code == 0 and re.search(r"3 classes, \d+\.\d % made wrong \(sym:0.3\), 2 epochs", trained.out), trained.out
    assert "made wrong" not in shell("train", source, "--out", tmp_path / "plain", *tiny).out


def test_a_time_limit_stops_cleanly_and_says_how_to_go_on(tmp_path: Path, shell: Shell, source: str, finished: Path) -> None:
    run = tmp_path / "my run"
    stopped = shell("train", source, "--out", run, *TINY, "--time-limit", "0.001s")
    assert stopped.code == 0
    assert "stopped after epoch 1 of 2" in stopped.out and f"labelsieve resume '{run}'" in stopped.out
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 1
    assert shell("evaluate", run).code == 0
    gone_on = shell("resume", run)
    assert gone_on.code == 0 and "epoch 2/2" in gone_on.out and "epoch 1/2" not in gone_on.out
    assert contents(run) == contents(finished)


def test_a_time_limit_counts_from_the_command_on(
    tmp_path: Path, shell: Shell, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening data may take minutes, and who says 9m may be cut off after 10."""
    clock, late = time.monotonic, [0.0]

    def slow(opening: Callable[..., Run]) -> Callable[..., Run]:
        def opened(*said: Any, **more: Any) -> Run:
            run = opening(*said, **more)
            late[0] += 100
            return run

        return opened

    monkeypatch.setattr(time, "monotonic", lambda: clock() + late[0])
    monkeypatch.setattr(training, "start", slow(training.start))
    monkeypatch.setattr(start, "resume", slow(start.resume))
    run = tmp_path / "run"
    more = (*TINY, "--set", "training.epochs=3", "--time-limit", "50s")
    assert "stopped after epoch 1 of 3" in shell("train", source, "--out", run, *more).out
    assert "stopped after epoch 2 of 3" in shell("resume", run, "--time-limit", "50s").out
    assert "done" in shell("resume", run, "--time-limit", "200s").out


def test_resume_finds_data_that_moved_and_refuses_others(tmp_path: Path, shell: Shell) -> None:
    source = arrays_file(tmp_path / "a.npz")
    run = tmp_path / "run"
    assert shell("train", source, "--out", run, *TINY, "--time-limit", "0.001s").code == 0
    (tmp_path / "a.npz").rename(tmp_path / "b.npz")
    missing = shell("resume", run)
    assert missing.code == 1 and "a.npz" in missing.err
    other = arrays_file(tmp_path / "other.npz", labels=(pictures()["labels"] + 1) % 3)
    refused = shell("resume", run, "--data", other)
    assert refused.code == 1 and "not the data this run began with" in refused.err and "--data" in refused.err
    assert shell("resume", run, "--data", f"arrays:{tmp_path / 'b.npz'}").code == 0


def test_resume_refuses_other_samples_under_the_same_labels(tmp_path: Path, shell: Shell) -> None:
    source, run = arrays_file(tmp_path / "a.npz"), tmp_path / "run"
    assert shell("train", source, "--out", run, *TINY, "--time-limit", "0.001s").code == 0
    images = pictures()["images"]
    refused = shell("resume", run, "--data", arrays_file(tmp_path / "other.npz", images=255 - images))
    assert refused.code == 1 and "the labels are the same, but the pictures have other values (mean 0." in refused.err
    rounded = images.copy()
    rounded[:, 0, 0] ^= 1  # as another decoder may
    assert shell("resume", run, "--data", arrays_file(tmp_path / "rounded.npz", images=rounded)).code == 0


def test_resume_refuses_vectors_that_were_scaled_meanwhile(tmp_path: Path, shell: Shell) -> None:
    labels = np.arange(60) % 3
    vectors = np.random.default_rng(0).normal(size=(60, 6)) + 3 * np.eye(6)[labels]
    np.savez(tmp_path / "a.npz", embeddings=vectors, labels=labels)
    run, brief = tmp_path / "run", ("--epochs", 6, "--set", "training.warmup=2", "--set", "engine.threads=1", "--device", "cpu")
    assert shell("train", tmp_path / "a.npz", "--out", run, *brief, "--time-limit", "0.001s").code == 0
    np.savez(tmp_path / "a.npz", embeddings=-3 * vectors, labels=labels)
    refused = shell("resume", run)
    assert refused.code == 1 and "the labels are the same, but the vectors have other values" in refused.err


def test_a_noise_file_is_found_from_any_folder(
    tmp_path: Path, shell: Shell, source: str, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(finished / "noise.npz", tmp_path / "labels.npz")
    monkeypatch.chdir(tmp_path)
    tiny = [word for word in TINY if not word.startswith("data.noise")]
    tiny = [word for word, after in zip(tiny, [*tiny[1:], ""]) if not (word == "--set" and after in ("--set", ""))]
    words = ("train", source, "--out", "run", *tiny, "--noise", "file:labels.npz", "--time-limit", "0.001s")
    assert shell(*words).code == 0
    monkeypatch.chdir("/")
    answer = shell("resume", tmp_path / "run")
    assert answer.code == 0, answer.err
    assert contents(tmp_path / "run")["model.safetensors"] == contents(finished)["model.safetensors"]


def test_evaluate_finds_the_accuracy_of_the_last_epoch(shell: Shell, finished: Path) -> None:
    records = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    last = [record["accuracy"] for record in records if "accuracy" in record][-1]
    answer = shell("evaluate", finished, "--json")
    found = json.loads(answer.out)
    assert answer.code == 0 and found["pictures"] == 16
    assert {name: found["accuracy"][name] for name in ("first", "second", "both")} == {
        name: last[name] for name in ("first", "second", "both")
    }
    assert f"{last['both']:.2f} %" in shell("evaluate", finished).out


def test_evaluate_says_what_does_not_fit(tmp_path: Path, shell: Shell, finished: Path) -> None:
    other = shell("evaluate", finished, "digits")
    assert other.code == 1 and 'class "3" is not one of the 3' in other.err
    grown = {key: np.zeros((len(value), 9, 9), np.uint8) for key, value in pictures().items() if "images" in key}
    larger = arrays_file(tmp_path / "larger.npz", **grown)
    assert "(1, 8, 8)" in shell("evaluate", finished, larger).err
    without = {key: value for key, value in pictures().items() if not key.startswith("test")}
    np.savez(tmp_path / "untested.npz", **without)
    untested = shell("evaluate", finished, f"arrays:{tmp_path / 'untested.npz'}")
    assert untested.code == 0 and "48 labelled pictures" in untested.out
    run = tmp_path / "run"
    shell("train", f"arrays:{tmp_path / 'untested.npz'}", "--out", run, *TINY)
    nothing = shell("evaluate", run)
    assert nothing.code == 1 and "no test pictures" in nothing.err


def test_the_module_runs_as_the_command_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "labelsieve", "--version"], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout == f"labelsieve {__version__}\n"


def test_losses_that_are_no_numbers_fail_with_the_epoch_and_the_step(tmp_path: Path, shell: Shell, source: str) -> None:
    wild = ("training.lr=1000", "training.weight_decay=1", "training.epochs=30", "training.warmup=30")
    settings = [word for setting in wild for word in ("--set", setting)]
    answer = shell("train", source, "--out", tmp_path / "run", *TINY, *settings)
    assert answer.code == 1 and "not finite" in answer.err and "step" in answer.err and "training.lr=250" in answer.err
    assert len(list((tmp_path / "run" / "checkpoint").iterdir())) == 1


def test_a_half_deleted_run_fails_in_words(tmp_path: Path, shell: Shell, finished: Path) -> None:
    for name in ("config.yaml", "checkpoint", "issues.csv"):
        run = Path(shutil.copytree(finished, tmp_path / name.partition(".")[0]))
        (shutil.rmtree if (run / name).is_dir() else Path.unlink)(run / name)
        answer = shell("resume", run)
        assert answer.code == 1 and name in answer.err and "start a new run" in answer.err


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--network", "smal"), 'network "smal" is not known (did you mean "small"?)'),
        (("--device", "gpu"), 'device "gpu" is not'),
    ],
)
def test_names_are_checked_before_the_data_are_read(shell: Shell, tmp_path: Path, option: tuple[str, str], words: str) -> None:
    """The data do not exist, so an error about them would mean that they were looked for first."""
    for more in (("--dry-run",), ("--out", tmp_path / "run")):
        said = shell("train", "cifar10:/nowhere/at/all", *option, *more)
        assert said.code == 2 and words in said.err
    assert not (tmp_path / "run").exists()
