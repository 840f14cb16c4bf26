"""One run to an epoch, several from there: exact, alone in what they change, gone on with, shared, refused where need be."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer

from labelsieve.config.resolve import resolve
from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce.tasks import held
from labelsieve.runs import checkpoint
from labelsieve.runs.folder import RunFolder
from runs.tiny import whole
from studies import branches
from studies.branches import StopAt, main, measures

AT, EPOCHS = 4, 7
SETTINGS = [f"training.epochs={EPOCHS}", "training.warmup=2", "training.lambda_u=0", "cleaning.dim=16", "cleaning.least_clean=0"]
SETTINGS += ["cleaning.prototype_warmup=0.25", "data.limit=500", "engine.threads=1", "device=cpu"]
PRIOR = "cleaning.prototype_prior=0.55"


def study(out: Path, *ways: str, at: int = AT, **more: Any) -> None:
    main("digits", at=at, branch=list(ways), out=out, noise="sym:0.5", settings=more.pop("settings", SETTINGS), **more)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("branches") / "study"
    study(out, "as-it-is", PRIOR)
    return out


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same two runs, each by itself from its first epoch on."""
    place = tmp_path_factory.mktemp("unbroken")
    for name, more in {"as-it-is": [], "prototype_prior=0.55": [PRIOR]}.items():
        whole(place / name, resolve("digits", options={"data.noise": "sym:0.5"}, settings=[*SETTINGS, *more]))
    return {path.name: path for path in place.iterdir()}


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def weights(run: Path) -> Mapping[str, torch.Tensor]:
    return checkpoint.load(RunFolder(run).checkpoints).tensors


@pytest.mark.parametrize("name", ["as-it-is", "prototype_prior=0.55"])
def test_a_branch_ends_as_a_run_that_had_the_setting_from_the_start(done: Path, unbroken: dict[str, Path], name: str) -> None:
    """Prototypes divide from the fifth epoch on, and no earlier does the prior act."""
    alone = lines(unbroken[name])
    assert [line["phase"] for line in alone] == ["warm-up"] * 2 + ["mixture"] * 2 + ["prototypes"] * 3 + ["final"]
    assert lines(done / name)[AT:] == alone[AT:]
    there, here = weights(unbroken[name]), weights(done / name)
    assert there.keys() == here.keys()
    # What prototypes said of labels while the mixture divided is remembered as it was judged then.
    assert all(torch.equal(there[key], here[key]) for key in there if not key.startswith("history."))


def test_a_branch_as_it_is_leaves_what_the_unbroken_run_does(done: Path, unbroken: dict[str, Path]) -> None:
    """Every file and every array: early losses, which are written at the end of the warm-up, and the scores' history, too."""
    here, there = done / "as-it-is", unbroken["as-it-is"]
    assert {path.name for path in here.iterdir()} == {path.name for path in there.iterdir()}
    for path in there.glob("*.npz"):
        with np.load(path) as ours, np.load(here / path.name) as branch:
            assert ours.files == branch.files
            assert all(np.array_equal(ours[key], branch[key]) for key in ours.files), path.name
    assert (here / "issues.csv").read_bytes() == (there / "issues.csv").read_bytes()
    ends, as_ours = weights(there), weights(here)
    assert ends.keys() == as_ours.keys() and all(torch.equal(ends[key], as_ours[key]) for key in ends)


def test_branches_are_the_same_up_to_there_and_differ_afterwards(done: Path) -> None:
    first, second, trunk = (lines(done / name) for name in ("as-it-is", "prototype_prior=0.55", "trunk"))
    assert first[:AT] == second[:AT] == trunk and len(trunk) == AT
    assert first[AT]["clean_share"] != second[AT]["clean_share"]


def test_the_table_has_every_epoch_of_all(done: Path) -> None:
    with (done / "branches.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = ["as-it-is", "prototype_prior=0.55"]
    assert [(row["branch"], int(row["epoch"])) for row in rows] == [(name, n + 1) for name in names for n in range(EPOCHS)]
    last, told = lines(done / names[1])[EPOCHS - 1], rows[-1]
    assert float(told["accuracy"]) == pytest.approx(last["accuracy"]["both"], abs=0.005)
    assert float(told["accuracy_2"]) == pytest.approx(last["accuracy"]["second"], abs=0.005)
    for column, key in {"clean_share": "clean_share", "precision": "clean_precision", "recall": "clean_recall"}.items():
        assert float(told[column]) == pytest.approx(sum(last[key]) / 2, abs=5e-5)
    assert float(told["auc_mixture"]) == pytest.approx(sum(last["auc_loss"]) / 2, abs=5e-5)
    assert float(told["auc_prototypes"]) == pytest.approx(sum(last["auc_prototype"]) / 2, abs=5e-5)
    assert rows[0]["clean_share"] == rows[0]["auc_prototypes"] == ""  # in the warm-up nothing is divided


def test_what_is_measured_of_one_network_alone_is_no_mean() -> None:
    found = measures({"clean_precision": [0.5, None], "auc_loss": [0.25, 0.75], "accuracy": {"both": 40.0}})
    assert (found["precision"], found["auc_mixture"], found["accuracy"], found["accuracy_1"]) == (None, 0.5, 40.0, None)


OPEN = [text for text in SETTINGS if not text.startswith(("training.lambda_u", "cleaning.least_clean"))]


@pytest.fixture(scope="module")
def open_ones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a common run that decides after its warm-up what was left open."""
    out = tmp_path_factory.mktemp("open") / "study"
    study(out, "as-it-is", settings=OPEN)
    return out


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        "training.lambda_u=50",
        "training.epochs=9",
        "training.mixed=false",
        "cleaning.mixture_threshold=0.9",
        "cleaning.mixture_memory=3",
        "cleaning.least_clean=0.9",
        "cleaning.prototype_memory=3",
        "training.lr_drop=0.8",
        "cleaner=gmm-awr",
    ],
)
def test_what_the_common_run_decided_is_not_said_over_the_branch(open_ones: Path, way: str) -> None:
    """Each of these ended as the unchanged branch did, bit for bit, where the common run had found a value for it."""
    study(open_ones, way, settings=OPEN)
    name = way.removeprefix("training.").removeprefix("cleaning.")
    here, there = lines(open_ones / name), lines(open_ones / "as-it-is")
    assert here[:AT] == there[:AT] and here[AT:] != there[AT:]
    assert len(here) == (9 if name == "epochs=9" else EPOCHS) + 1
    assert name != "mixed=false" or {line["phase"] for line in here[AT:-1]} == {"plain"}


def test_a_setting_that_is_left_open_from_there_on_follows_from_the_same_estimate(tmp_path: Path, open_ones: Path) -> None:
    study(tmp_path / "study", "training.lambda_u=none", until=5, settings=[*OPEN, "training.lambda_u=50"])
    runs = (tmp_path / "study" / "trunk", tmp_path / "study" / "lambda_u=none", open_ones / "trunk")
    told, found, left = (json.loads((run / "estimate.json").read_text()) for run in runs)
    lines = [(json.loads(line) for line in (run / "metrics.jsonl").open()) for run in runs]
    estimates = [next(line["decision"]["estimate"] for line in each if "decision" in line) for each in lines]
    assert estimates[0] == estimates[1] == estimates[2]
    assert told["lambda_u"] == 50 and found["lambda_u"] == left["lambda_u"] == 0


def test_the_table_keeps_branches_of_other_commands(open_ones: Path) -> None:
    study(open_ones, "cleaning.tau=0.6", settings=OPEN)
    with (open_ones / "branches.csv").open(newline="") as file:
        named = [row["branch"] for row in csv.DictReader(file)]
    assert named[0] == "tau=0.6" and named.count("as-it-is") == EPOCHS


@pytest.mark.slow
def test_stopped_at_an_epoch_it_goes_on_to_a_later_one_and_to_the_end(
    done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    study(out, PRIOR, until=5)
    assert len(lines(out / "prototype_prior=0.55")) == 5 and "prototype_prior=0.55" in capsys.readouterr().out
    study(out, PRIOR, until=EPOCHS)  # its last epoch is its end
    assert lines(out / "prototype_prior=0.55") == lines(done / "prototype_prior=0.55")
    study(out, PRIOR, "as-it-is")  # one more
    assert lines(out / "as-it-is") == lines(done / "as-it-is")


@pytest.mark.slow
def test_time_that_is_over_leaves_the_rest_for_the_next_call(
    done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    study(out, "as-it-is", PRIOR, time_limit="0.01s")
    said = " ".join(capsys.readouterr().out.split())
    assert "left are trunk, as-it-is, prototype_prior=0.55; give the command again" in said
    assert len(lines(out / "trunk")) == 1 and not (out / "as-it-is").exists()
    study(out, "as-it-is", until=5)
    study(out, "as-it-is", PRIOR, time_limit="0.01s")  # the trunk is there; over before a branch is taken up
    assert len(lines(out / "as-it-is")) == 5 and not (out / "prototype_prior=0.55").exists()
    study(out, "as-it-is", PRIOR)
    assert lines(out / "prototype_prior=0.55") == lines(done / "prototype_prior=0.55")


@pytest.mark.slow
def test_what_another_process_trains_is_left_to_it(tmp_path: Path) -> None:
    out = tmp_path / "study"
    with held(out / ".locks" / "as-it-is"):
        study(out, "as-it-is", PRIOR, until=5)
    assert not (out / "as-it-is").exists() and len(lines(out / "prototype_prior=0.55")) == 5


@pytest.mark.slow
@pytest.mark.parametrize(("run", "epoch"), [("trunk", 1), ("as-it-is", AT + 1)])
def test_a_signal_stops_it_with_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str, epoch: int) -> None:
    asked = StopAt.__call__

    def heard(self: StopAt) -> bool:
        self.signal = 15 if self.run.epoch >= epoch else None
        return asked(self)

    monkeypatch.setattr(StopAt, "__call__", heard)
    out = tmp_path / "study"
    with pytest.raises(typer.Exit) as stopped:
        study(out, "as-it-is")
    assert stopped.value.exit_code == 143 and len(lines(out / run)) == epoch
    table = out / "branches.csv"
    assert len(table.read_text().splitlines()) == 1 + epoch if run == "as-it-is" else not table.exists()


@pytest.mark.slow
def test_a_run_killed_before_it_left_the_trunk_leaves_it_then(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*facts: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(branches, "start_from_state", killed)
    with pytest.raises(KeyboardInterrupt):
        study(tmp_path / "study", PRIOR)
    monkeypatch.undo()
    study(tmp_path / "study", PRIOR)
    assert lines(tmp_path / "study" / "prototype_prior=0.55") == lines(done / "prototype_prior=0.55")


@pytest.mark.parametrize(
    ("ways", "more", "words"),
    [
        (["as-it-is", "as-it-is"], {}, "another is called as-it-is, too"),
        ([PRIOR, f" {PRIOR} "], {}, "another is called prototype_prior=0.55, too"),
        (["cleaning.prior=0.55"], {}, "cleaning.prior"),
        (["tau"], {}, "has no value"),
        (["cleaning.tau=2"], {}, "tau"),
        (["cleaner=gmm-agn cleaning.tau=0.7"], {}, "does not read that"),
        (["training.epochs=4"], {}, "it would be over before it begins, after epoch 4"),
        (["as-it-is"], {"at": 0}, "--at 0"),
        (["as-it-is"], {"at": EPOCHS}, "before its last"),
        (["as-it-is"], {"until": AT}, "--until 4 is not after --at 4"),
        (["as-it-is"], {"time_limit": "soon"}, "no duration"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(
    tmp_path: Path, ways: list[str], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        study(tmp_path / "study", *ways, **more)
    assert not (tmp_path / "study").exists()


def test_branches_that_have_parted_hold_their_epoch(done: Path) -> None:
    for at in (AT - 1, AT + 1):
        with pytest.raises(UsageError, match=rf"stands after epoch {AT}, and this command says --at {at}; use --at {AT}"):
            study(done, "as-it-is", at=at)
        with pytest.raises(UsageError, match=f"use --at {AT}"):
            study(done, "cleaning.tau=0.9", at=at)  # a new one, too: the others have parted
    assert len(lines(done / "trunk")) == AT and not (done / "tau=0.9").exists()


@pytest.mark.slow
def test_a_common_run_that_was_over_before_is_told(tmp_path: Path) -> None:
    """Its length follows from the noise, so that it is not known beforehand."""
    known = [text for text in SETTINGS if not text.startswith("training.epochs")]
    with pytest.raises(UsageError, match=r"--at 90: the common run had \d+ epochs and is over"):
        study(tmp_path / "study", "as-it-is", at=90, settings=[*known, "training.epochs=none", "data.limit=128"])
    assert not (tmp_path / "study" / "as-it-is").exists()


def test_a_setting_that_would_have_made_another_trunk_is_refused(done: Path) -> None:
    with pytest.raises(ToolError, match="would have been another one from the start"):
        study(done, "cleaning.dim=8")
    with pytest.raises(ToolError, match="would have been another one from the start"):
        study(done, "cleaner=contrastive")  # its prototypes have the same sizes, and another meaning
    with pytest.raises(ToolError, match="other data.*; leave out what changes data or noise, or train it by itself"):
        study(done, "data.noise_seed=5")
    assert not [path for path in done.iterdir() if path.name.partition("=")[0] in ("dim", "cleaner", "noise_seed")]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds no branches; choose another --out"):
        study(tmp_path, "as-it-is")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_data_whose_truth_is_not_known_have_nothing_to_measure(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no label is wrong here"):
        main("digits", at=AT, branch=["as-it-is"], out=tmp_path / "study", settings=SETTINGS)
