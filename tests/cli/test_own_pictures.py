"""One's own pictures through the door: train, inspect, predict and evaluate on real files, the broken ones included."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from cli.conftest import Shell
from cli.own import QUICK, broken, folder, striped
from labelsieve.config.resolve import resolve
from labelsieve.data.pictures import pool, recognise


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 pictures in three class folders, one broken, a note beside them, a class without pictures."""
    root = folder(tmp_path_factory.mktemp("own") / "animals")
    broken(root / "cat" / "cut.png")
    (root / "README.txt").write_text("ours")
    (root / "horse").mkdir()
    return root


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr(pool, "FEW", 10**6)  # decoded in this process: starting others takes longer


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Path:
    """A run on them, made by the command line in a shell of its own."""
    import subprocess
    import sys

    out = tmp_path_factory.mktemp("trained") / "run"
    words = [sys.executable, "-m", "labelsieve", "train", str(pictures), "--out", str(out), *QUICK, "--seed", "1"]
    words += ["--cache-dir", str(tmp_path_factory.getbasetemp() / "cache"), "--set", "training.epochs=9"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (out / "said.txt").write_text(done.stdout)
    return out


def test_a_folder_trains_and_says_what_it_did(trained: Path, pictures: Path) -> None:
    said = (trained / "said.txt").read_text()
    for word in ("class folders", "61 pictures as 1 x 8 x 8", "KiB", "decoded once", "left out: 1", "cut.png", "left_out.csv"):
        assert word in said
    assert "network: small" in said and "batch: 8" in said and "warning: 60 samples are few" in said
    assert "passed over: not a picture: 1" in said
    told = list(csv.DictReader((trained / "left_out.csv").open(newline="")))
    assert [row["id"] for row in told] == ["cat/cut.png"] and told[0]["reason"]
    assert "| listed but left out | 1; `left_out.csv` says why each |" in (trained / "README.md").read_text()
    facts = json.loads((trained / "data.json").read_text())
    assert facts["classes"] == {"cat": 20, "cow": 20, "dog": 20} and facts["left_out"] == 1
    issues = list(csv.DictReader((trained / "issues.csv").open(newline="")))
    assert {row["id"] for row in issues} == {f"{name}/{k}.png" for name in ("cat", "dog", "cow") for k in range(20)}
    config = yaml.safe_load((trained / "config.yaml").read_text())
    assert config["data"]["source"] == f"pictures:{pictures}"
    assert (config["network"], config["training"]["batch"], config["training"]["prior"]) == ("small", 8, "given")
    assert (config["training"]["beta"], config["views"]["policy"]) == (4.0, "auto") and "mixing:" not in said


@pytest.mark.parametrize("words", [("inspect",), ("train", "--out", "next")])
def test_a_run_folder_is_not_taken_for_data(trained: Path, shell: Shell, words: tuple[str, ...]) -> None:
    """Its issues.csv has paths and labels."""
    said = shell(words[0], trained, *words[1:])
    assert said.code == 2 and "this is a run folder" in said.err and f"train --decisions {trained}" in said.err


def test_a_run_folder_is_not_measured_on(trained: Path, shell: Shell) -> None:
    said = shell("evaluate", trained, trained)
    assert said.code == 1 and "this is a run folder, not data" in said.err


def test_the_written_configuration_reproduces_the_run(tmp_path: Path, shell: Shell, pictures: Path) -> None:
    from labelsieve.runs.folder import RunFolder
    from labelsieve.train.loop import each_epoch
    from labelsieve.train.start import start

    first = tmp_path / "first"
    assert shell("train", pictures, "--out", first, *QUICK, "--size", 10, "--classes", "dog,cow,cat", "--no-mirror").code == 0
    for _ in each_epoch(start(tmp_path / "again", RunFolder.open(first).read_config())):
        pass
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()
    facts = json.loads((first / "model.json").read_text())
    assert facts["classes"] == ["dog", "cow", "cat"] and facts["shape"] == [1, 10, 10] and facts["fit"] == "crop"


def test_a_dry_run_settles_everything_and_makes_no_run(tmp_path: Path, shell: Shell, pictures: Path) -> None:
    answer = shell("train", pictures, "--out", tmp_path / "run", "--dry-run", "--verbose", *QUICK)
    assert answer.code == 0 and not (tmp_path / "run").exists()
    assert "network: small\n" in answer.out and "left out: 1" in answer.out and "batch: 8" in answer.out


def test_the_data_are_recognised_and_listed_once(
    tmp_path: Path, shell: Shell, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they are photos is asked before anything is opened; a million files are walked once for both."""
    looks = []
    for name in ("_folder", "read_folders"):
        real = getattr(recognise, name)
        monkeypatch.setattr(recognise, name, lambda *words, name=name, real=real: (looks.append(name), real(*words))[1])
    for _ in range(2):  # the next command looks anew
        looks.clear()
        assert shell("train", pictures, "--dry-run", *QUICK).code == 0
        assert sorted(looks) == ["_folder", "read_folders"]


def test_pictures_that_can_be_shifted_are_mixed_little_unless_told_otherwise(
    tmp_path: Path, shell: Shell, pictures: Path
) -> None:
    words = ("train", pictures, "--out", tmp_path / "run", *QUICK, "--size", 16)
    plan = shell(*words, "--dry-run", "--verbose")
    assert "  beta: 0.5\n" in plan.out and "  policy: none\n" in plan.out and "mixing: Beta(0.5, 0.5), weak views" in plan.out
    told = shell(*words, "--dry-run", "--verbose", "--set", "training.beta=4", "--set", "views.policy=auto")
    assert "  beta: 4.0\n" in told.out and "  policy: auto\n" in told.out and "mixing: Beta" not in told.out
    answer = shell(*words)
    assert answer.code == 0 and "mixing: Beta(0.5, 0.5), weak views" in answer.out, answer.err
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (config["training"]["beta"], config["views"]["policy"]) == (0.5, "none")
    seen = shell("inspect", pictures, "--size", 16)
    assert "batches of 8, Beta(0.5, 0.5), weak views" in seen.out
    found = json.loads(shell("inspect", pictures, "--size", 16, "--json").out)
    assert (found["training.beta"], found["views.policy"]) == (0.5, "none")


def test_the_same_command_goes_on_although_settings_were_left_open(tmp_path: Path, shell: Shell, pictures: Path) -> None:
    out = tmp_path / "run"
    stopped = shell("train", pictures, "--out", out, *QUICK, "--time-limit", "0.001s")
    assert stopped.code == 0 and "stopped after epoch 1" in stopped.out
    again = shell("train", pictures, "--out", out, *QUICK, "--resume")
    assert again.code == 0, again.err
    assert again.out.count("already decoded") == 1 and "epoch 2/2" in again.out
    other = shell("train", pictures, "--out", out, *QUICK, "--resume", "--size", 8, "--network", "small-wide")
    assert other.code == 2 and "other settings" in other.err


def test_a_run_from_before_mixing_followed_the_network_goes_on_as_it_began(tmp_path: Path, shell: Shell, pictures: Path) -> None:
    out, before = tmp_path / "run", ("--size", 16, "--set", "training.beta=4", "--set", "views.policy=auto")
    assert shell("train", pictures, "--out", out, *QUICK, *before, "--time-limit", "0.001s").code == 0
    written = (out / "config.yaml").read_text()
    again = shell("train", pictures, "--out", out, *QUICK, "--size", 16, "--resume")
    assert again.code == 0 and "epoch 2/2" in again.out, again.err
    assert (out / "config.yaml").read_text() == written and "beta: 4.0" in written
    whole = tmp_path / "whole"
    assert shell("train", pictures, "--out", whole, *QUICK, *before).code == 0
    assert (whole / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()


def test_one_broken_picture_ends_a_strict_run_only(tmp_path: Path, shell: Shell, pictures: Path) -> None:
    answer = shell("train", pictures, "--out", tmp_path / "run", *QUICK, "--strict")
    assert answer.code == 1 and "cut.png" in answer.err and "strict" in answer.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_tables_train_too(tmp_path: Path, shell: Shell, pictures: Path, kind: str) -> None:
    rows = [(f"{name}/{k}.png", name, f"{name}{k}") for name in ("cat", "dog", "cow") for k in range(20)]
    table = tmp_path / f"list.{kind}"
    if kind == "jsonl":
        table.write_text("".join(json.dumps({"where": a, "kind": b, "key": c}) + "\n" for a, b, c in rows))
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet

        columns = list(zip(*rows))
        pyarrow.parquet.write_table(pa.table(dict(zip(("where", "kind", "key"), map(list, columns)))), table)
    else:
        mark = "," if kind == "csv" else "\t"
        table.write_text("".join(mark.join(row) + "\n" for row in (("where", "kind", "key"), *rows)))
    columns = ("--image-column", "where", "--label-column", "kind", "--id-column", "key", "--root", pictures)
    answer = shell("train", table, "--out", tmp_path / "run", *QUICK, *columns)
    assert answer.code == 0, answer.err
    found = {row["id"] for row in csv.DictReader((tmp_path / "run" / "issues.csv").open(newline=""))}
    assert found == {row[2] for row in rows}
    corrected = tmp_path / "new" / f"corrected.{kind}"
    told = tmp_path / "told.csv"
    told.write_text(f"id,action\n{min(found)},keep\n")
    applied = shell("apply", tmp_path / "run", "--out", corrected, "--decisions", told)
    assert applied.code == 0 and corrected.exists(), applied.err
    words = ("--image-column", "where", "--label-column", "kind", "--id-column", "key", "--root", pictures)
    assert shell("inspect", corrected, *words).code == 0


def test_arrays_by_their_plain_path(tmp_path: Path, shell: Shell) -> None:
    images = np.stack([np.asarray(striped(1000 * (k % 3) + k, k % 3)) for k in range(30)])
    np.savez(tmp_path / "set.npz", images=images, labels=np.arange(30) % 3)
    answer = shell("train", tmp_path / "set.npz", "--out", tmp_path / "run", *QUICK)
    assert answer.code == 0, answer.err
    assert "batch: 8" in answer.out and "warning: 30 samples are few" in answer.out
    assert f"arrays:{tmp_path / 'set.npz'}" in (tmp_path / "run" / "config.yaml").read_text()


def test_pictures_to_measure_on_come_from_elsewhere(tmp_path: Path, shell: Shell, pictures: Path) -> None:
    val = folder(tmp_path / "val", each=4, first=500)
    answer = shell("train", pictures, "--out", tmp_path / "run", *QUICK, "--val", val)
    assert answer.code == 0, answer.err
    assert "accuracy" in answer.out
    measured = json.loads(shell("evaluate", tmp_path / "run", "--json").out)
    assert measured["pictures"] == 12
    (val / "cat").rename(val / "catt")
    wrong = shell("train", pictures, "--out", tmp_path / "other", *QUICK, "--val", val)
    assert wrong.code == 1 and 'class "catt"' in wrong.err and 'did you mean "cat"' in wrong.err


def test_inspect_says_all_and_what_training_would_do(shell: Shell, pictures: Path) -> None:
    answer = shell("inspect", pictures)
    assert answer.code == 0, answer.err
    for word in ('"cat": 20', "cut.png", "PNG 60", "horse", "network: small", "batches of 8", "cache takes", "samples are few"):
        assert word in answer.out
    assert "weak views" not in answer.out
    found = json.loads(shell("inspect", pictures, "--json").out)
    assert found["samples"] == 60 and found["network"] == "small" and found["batch"] == 8 and found["plan"]["cache_bytes"] > 0
    assert [row["path"] for row in found["left_out"]] == ["cat/cut.png"]
    assert (found["training.beta"], found["views.policy"]) == (4.0, "auto")


def test_inspect_finds_the_same_picture_with_two_labels(tmp_path: Path, shell: Shell) -> None:
    root = folder(tmp_path / "set", each=2)
    shutil.copy(root / "cat" / "0.png", root / "dog" / "copy.png")
    answer = shell("inspect", root)
    assert "duplicates with different labels: 1" in answer.out and "copy.png" in answer.out


def test_inspect_ends_with_an_error_where_training_could_not_start(tmp_path: Path, shell: Shell) -> None:
    root = folder(tmp_path / "set", classes=("cat", "dog"), each=2)
    for path in (root / "dog").iterdir():
        broken(path)
    answer = shell("inspect", root)
    assert answer.code == 1 and "at least two" in answer.err and "left out: 2" in answer.out
    assert shell("inspect", tmp_path / "nowhere").code == 2


def test_inspect_knows_named_data_sets(shell: Shell, source: str) -> None:
    named, plain = shell("inspect", source), shell("inspect", source.partition(":")[2])
    assert named.code == 0 and "3 classes" in named.out and named.out == plain.out
    assert "test: 16 samples" in named.out and "a known data set" in shell("inspect", "digits").out


def test_inspect_says_of_a_known_set_what_its_preset_does(shell: Shell) -> None:
    settled = resolve("digits")
    told = json.loads(shell("inspect", "digits", "--json").out)
    assert (told["network"], told["batch"]) == (settled.network, settled.training.batch)
    assert (told["training.beta"], told["views.policy"]) == (settled.training.beta, settled.views.policy)
    assert f"batches of {settled.training.batch}" in shell("inspect", "digits").out


def test_predict_gives_the_likeliest_classes_of_new_pictures(tmp_path: Path, shell: Shell, trained: Path) -> None:
    new = folder(tmp_path / "new", each=3, first=700)
    lone = tmp_path / 'a "name", with\nall.png'
    striped(9, 1).convert("RGB").resize((40, 30)).save(lone)
    cut = broken(new / "cut.png")
    long = "x" * 5000 + ".png"
    answer = shell("predict", trained, lone, new, tmp_path / "none.png", long, "--top", 2)
    assert answer.code == 3, answer.err
    rows = list(csv.DictReader(answer.out.splitlines(keepends=True)))
    assert list(rows[0]) == ["path", "label", "probability", "label_2", "probability_2", "error"]
    by_path = {row["path"]: row for row in rows}
    assert rows[0]["path"] == str(lone) and len(rows) == 13
    assert by_path[str(tmp_path / "none.png")]["error"] == "there is no such file"
    assert by_path[long]["error"] == "it cannot be reached (File name too long)"
    assert by_path[str(cut)]["error"] and not by_path[str(cut)]["label"]
    assert "3 of 13 pictures could not be read" in answer.err
    good = [row for row in rows if not row["error"]]
    assert all(1 >= float(row["probability"]) >= float(row["probability_2"]) >= 0 for row in good)
    right = [Path(row["path"]).parent.name == row["label"] for row in good if row["path"] != str(lone)]
    assert sum(right) >= 7


def test_predict_writes_json_lines_in_batches_and_all_classes_add_up(tmp_path: Path, shell: Shell, trained: Path) -> None:
    new = folder(tmp_path / "new", each=3, first=700)
    out = tmp_path / "said.jsonl"
    assert shell("predict", trained, new, "--out", out, "--top", 99, "--batch", 2).code == 0
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(records) == 9 and all(record["error"] is None for record in records)
    for record in records:
        assert {one["label"] for one in record["predictions"]} == {"cat", "dog", "cow"}
        assert sum(one["probability"] for one in record["predictions"]) == pytest.approx(1, abs=1e-5)
    whole = shell("predict", trained, new, "--format", "jsonl", "--top", 99)
    assert [json.loads(line)["path"] for line in whole.out.splitlines()] == [record["path"] for record in records]


def test_predict_is_what_the_model_says_in_training_form(tmp_path: Path, shell: Shell, trained: Path, pictures: Path) -> None:
    """Decoded as in training: the same picture has the same probabilities as through the training cache."""
    import torch

    from labelsieve.predict.model import load_model
    from labelsieve.runs.folder import RunFolder
    from labelsieve.runs.rows import open_rows

    found = open_rows(RunFolder.open(trained).read_config()).collection
    probabilities = load_model(trained, torch.device("cpu")).probabilities(found.train.images[:1])
    answer = shell("predict", trained, pictures / found.train.ids[0], "--format", "jsonl", "--top", 3)
    said = {one["label"]: one["probability"] for one in json.loads(answer.out)["predictions"]}
    for name, value in zip(found.train.classes, probabilities[0].tolist()):
        assert said[name] == pytest.approx(value, abs=2e-6)


def test_predict_fails_where_nothing_can_be_read(tmp_path: Path, shell: Shell, trained: Path) -> None:
    cut = broken(tmp_path / "cut.png")
    answer = shell("predict", trained, cut)
    assert answer.code == 1 and "cut.png" in answer.out and "none of the 1 pictures" in answer.err
    (tmp_path / "empty").mkdir()
    empty = shell("predict", trained, tmp_path / "empty")
    assert empty.code == 1 and "no picture is there" in empty.err
    assert shell("predict", trained, cut, "--format", "xml").code == 2
    assert shell("predict", trained, cut, "--top", 0).code == 2
    assert shell("predict", trained, cut, "--out", cut).code == 2 and cut.read_bytes().startswith(b"\x89PNG")


def test_evaluate_takes_any_labelled_layout_and_matches_classes_by_name(tmp_path: Path, shell: Shell, trained: Path) -> None:
    new = folder(tmp_path / "new", classes=("cat", "dog"), each=5, first=800)  # in another order, one class missing
    (new / "dog").rename(new / "dog2")
    unknown = shell("evaluate", trained, new)
    assert unknown.code == 1 and '"dog2"' in unknown.err and 'did you mean "dog"' in unknown.err
    assert 'it knows "cat", ' in unknown.err  # each in quotes, for names hold commas, too
    (new / "dog2").rename(new / "dog")
    broken(new / "dog" / "cut.png")
    answer = shell("evaluate", trained, new)
    assert answer.code == 0 and "10 labelled pictures" in answer.out and "left out: 1" in answer.out
    table = tmp_path / "new.csv"
    table.write_text("path,label\n" + "".join(f"new/{name}/{k}.png,{name}\n" for name in ("dog", "cat") for k in range(800, 805)))
    first, second = (json.loads(shell("evaluate", trained, place, "--json").out) for place in (new, table))
    assert first["accuracy"] == second["accuracy"] and first["accuracy"]["both"] >= 70
    none = shell("evaluate", trained)
    assert none.code == 1 and "no test pictures" in none.err


def test_evaluating_on_the_training_pictures_is_said(shell: Shell, trained: Path, pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(pictures)
    for place in (pictures, tmp_path / "link"):
        answer = shell("evaluate", trained, place)
        assert answer.code == 0 and "trained on these very pictures" in answer.out


def test_vectors_by_their_plain_path(tmp_path: Path, shell: Shell, trained: Path) -> None:
    labels = np.arange(60) % 3
    features = np.random.default_rng(0).normal(size=(60, 12)) + 4 * np.eye(12)[labels]
    np.savez(tmp_path / "v.npz", features=features, labels=np.array(["a", "b", "c"])[labels])
    seen = shell("inspect", tmp_path / "v.npz")
    assert seen.code == 0 and "network: mlp" in seen.out and "embeddings" in seen.out and "weak views" not in seen.out
    run = tmp_path / "run"
    answer = shell("train", tmp_path / "v.npz", "--out", run, *QUICK)
    assert answer.code == 0 and ": 60 vectors, 3 classes" in answer.out, answer.err
    measured = shell("evaluate", run, tmp_path / "v.npz")
    assert measured.code == 0 and "60 labelled vectors" in measured.out and "these very vectors" in measured.out
    assert "test vectors" in (run / "README.md").read_text() and "test pictures" not in (run / "README.md").read_text()
    pictures = shell("predict", run, tmp_path / "x.png")
    assert pictures.code == 1 and "vectors of 12 numbers" in pictures.err and not pictures.out
    other = shell("evaluate", trained, tmp_path / "v.npz")
    assert other.code == 1 and "this model reads (1, 8, 8)" in other.err
