"""What one command writes or recommends, the next one takes: settings, tables of other columns, corrected tables."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Answer, Shell
from cli.own import QUICK, folder
from labelsieve.data.pictures import pool
from labelsieve.exports import label_files
from labelsieve.issues.table import read_issues
from runs.tiny import pictures as stripes


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr(pool, "FEW", 10**6)


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    return folder(tmp_path / "animals", each=6)


def rows(first: int = 0) -> list[tuple[str, str]]:
    return [(f"{name}/{k}.png", name) for name in ("cat", "dog", "cow") for k in range(first, first + 6)]


def table(path: Path, header: str, lines: list[tuple[str, str]]) -> Path:
    path.write_text(header + "\n" + "".join(",".join(line) + "\n" for line in lines))
    return path


def test_inspect_takes_the_settings_that_it_recommends(tmp_path: Path, shell: Shell, animals: Path) -> None:
    half = table(animals / "list.csv", "path,label", [*rows(), ("cat/x.png", "")])
    refused = shell("inspect", half)
    assert refused.code == 1 and "--set pictures.skip_unlabelled=true" in refused.err
    assert shell("inspect", half, "--set", "pictures.skip_unlabelled=true").code == 0
    (tmp_path / "other").mkdir()
    away = table(tmp_path / "other" / "away.csv", "path,label", [(str(animals / path), label) for path, label in rows()])
    refused = shell("inspect", away)
    assert refused.code == 1 and "--set pictures.outside=true" in refused.err
    assert shell("inspect", away, "--set", "pictures.outside=true").code == 0
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(30, 4)))
    np.save(tmp_path / "given.npy", np.arange(30) % 3)
    labels = f"pictures.labels_file={tmp_path / 'given.npy'}"
    assert shell("inspect", tmp_path / "v.npy").code == 2
    assert shell("inspect", tmp_path / "v.npy", "--set", labels).code == 0


def test_inspect_counts_what_a_noise_changes_in_tables_of_other_columns(shell: Shell, animals: Path) -> None:
    odd = table(animals / "odd.csv", "where,kind", [*rows(), ("cat/x.png", "")])
    said = ("--image-column", "where", "--label-column", "kind", "--set", "pictures.skip_unlabelled=true")
    answer = shell("inspect", odd, *said, "--noise", "pair:0.5")
    assert answer.code == 0, answer.err
    assert "9 of 18 labels differ" in answer.out


def test_inspect_refuses_settings_of_training(shell: Shell, animals: Path) -> None:
    answer = shell("inspect", animals, "--set", "training.epochs=3")
    assert answer.code == 2 and "training.epochs" in answer.err and "pictures.*" in answer.err


def test_a_table_to_measure_on_may_have_other_columns(tmp_path: Path, shell: Shell, animals: Path) -> None:
    odd = table(animals / "odd.csv", "where,kind", rows())
    folder(tmp_path / "val", each=6, first=500)
    usual = table(tmp_path / "val" / "usual.csv", "path,label", rows(500))
    other = table(tmp_path / "val" / "other.csv", "picture,species", rows(500))
    columns = ("--image-column", "where", "--label-column", "kind")
    run = tmp_path / "run"
    answer = shell("train", odd, "--out", run, *QUICK, *columns, "--val", usual)
    assert answer.code == 0, answer.err
    first = shell("evaluate", run, usual, "--json")
    assert first.code == 0, first.err
    assert shell("evaluate", run, odd).code == 0
    missing = shell("evaluate", run, other)
    assert missing.code == 2 and "--image-column" in missing.err
    named = ("--image-column", "picture", "--label-column", "species")
    second = shell("evaluate", run, other, *named, "--json")
    assert second.code == 0, second.err
    assert json.loads(first.out)["accuracy"] == json.loads(second.out)["accuracy"]
    assert shell("evaluate", run, other, *named, "--root", animals).code == 1
    alone = shell("evaluate", run, "--label-column", "kind")
    assert alone.code == 2 and "name them" in alone.err


def test_a_folder_with_a_table_is_measured_on_by_its_own_columns(tmp_path: Path, shell: Shell, animals: Path) -> None:
    odd = table(animals / "odd.csv", "where,kind", rows())
    apart = tmp_path / "apart"
    folder(apart / "all", each=6, first=500)
    table(apart / "metadata.csv", "file_name,label", [(f"all/{path}", label) for path, label in rows(500)])
    columns = ("--image-column", "where", "--label-column", "kind")
    answer = shell("train", odd, "--out", tmp_path / "run", *QUICK, *columns, "--val", apart)
    assert answer.code == 0, answer.err


def kept(home: Path, run: Path) -> Path:
    """A file of decisions that change nothing."""
    first = read_issues(run / "issues.csv")["id"][0]
    (home / "kept.csv").write_text(f"id,action\n{first},keep\n")
    return home / "kept.csv"


def read_by(shell: Shell, said: str) -> Answer:
    """What the command in a note would do."""
    words = shlex.split(" ".join(said[said.index("labelsieve train ") :].splitlines()[0].split()[2:]))
    return shell("train", *words, "--dry-run")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_corrected_table_in_another_folder_says_how_it_is_read(tmp_path: Path, shell: Shell, animals: Path, kind: str) -> None:
    columns = ("--image-column", "where", "--label-column", "the kind")
    odd = animals / f"odd.{kind}"
    if kind == "csv":
        table(odd, "where,the kind", rows())
    else:
        odd.write_text("".join(json.dumps({"where": path, "the kind": label}) + "\n" for path, label in rows()))
    run = tmp_path / "run"
    assert shell("train", odd, "--out", run, *QUICK, *columns).code == 0
    same = shell("apply", run, "--out", tmp_path / "new folder" / f"same.{kind}", "--decisions", kept(tmp_path, run))
    assert same.code == 0, same.err
    found = read_by(shell, same.out)
    assert found.code == 0 and "data: 18 pictures" in found.out, found.err
    plain = shell("apply", run, "--out", tmp_path / "plain" / "all.csv", "--decisions", kept(tmp_path, run))
    assert plain.code == 0, plain.err
    if kind == "csv":
        return
    header, first = (tmp_path / "plain" / "all.csv").read_text().splitlines()[:2]
    assert header == "id,path,label" and first.startswith("cat/0.png,cat/0.png,")
    assert "data: 18 pictures" in read_by(shell, plain.out).out
    above = shell("apply", run, "--out", tmp_path / "above.csv", "--decisions", kept(tmp_path, run))
    assert above.code == 0 and shell("inspect", tmp_path / "above.csv").code == 0


def test_a_second_table_in_one_folder_is_refused_with_a_place_that_works(tmp_path: Path, shell: Shell, animals: Path) -> None:
    run = tmp_path / "run"
    assert shell("train", animals, "--out", run, *QUICK).code == 0
    assert shell("apply", run, "--out", tmp_path / "o" / "a.csv", "--decisions", kept(tmp_path, run)).code == 0
    second = shell("apply", run, "--out", tmp_path / "o" / "b.csv", "--decisions", kept(tmp_path, run))
    advised = tmp_path / "o" / "b" / "b.csv"
    assert second.code == 2 and "changes.csv" in second.err and str(advised) in second.err
    assert shell("apply", run, "--out", advised, "--decisions", kept(tmp_path, run)).code == 0


def test_an_export_for_hugging_face_can_be_inspected(
    tmp_path: Path, shell: Shell, animals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    assert shell("train", animals, "--out", run, *QUICK).code == 0
    assert shell("export", run, "--to", "huggingface", "--out", tmp_path / "hf").code == 0
    found = shell("inspect", tmp_path / "hf", "--json")
    assert found.code == 0 and json.loads(found.out)["samples"] == 18

    def refused(*words: object) -> None:
        raise OSError("another disk")

    monkeypatch.setattr(label_files, "hardlink", refused)
    said = shell("export", run, "--to", "huggingface", "--out", tmp_path / "links").out
    words = shlex.split(said[said.index("labelsieve inspect ") :])
    assert shell(*words[1:]).code == 0


def measured(answer: Answer) -> float:
    assert answer.code == 0, answer.err
    return float(json.loads(answer.out)["accuracy"]["both"])


def test_paths_to_measure_on_start_from_their_own_folder_and_only_then_from_the_root(
    tmp_path: Path, shell: Shell, animals: Path
) -> None:
    """Names such as cat/1.png are in every folder: what the root was chosen for must not be measured on instead."""
    (tmp_path / "lists").mkdir()
    train = table(tmp_path / "lists" / "train.csv", "path,label", rows())
    # The same names as the training pictures, with other pictures behind them: every cat looks like a cow.
    mixed = folder(tmp_path / "mixed", classes=("cow", "cat", "dog"), each=6)
    own = table(mixed / "val.csv", "path,label", rows())
    beside = table(tmp_path / "lists" / "val.csv", "path,label", rows())
    found = {}
    for name, val in (("own", own), ("beside", beside)):
        answer = shell("train", train, "--root", animals, "--val", val, "--out", tmp_path / name, *QUICK)
        assert answer.code == 0 and "left out" not in answer.out, answer.err
        found[name] = measured(shell("evaluate", tmp_path / name, "--json"))
    run = tmp_path / "beside"
    assert measured(shell("evaluate", run, mixed, "--json")) == found["own"] != found["beside"]
    assert measured(shell("evaluate", run, beside, "--json")) == found["beside"]
    assert measured(shell("evaluate", run, own, "--root", animals, "--json")) == found["beside"]
    odd = table(mixed / "odd.csv", "where,kind", rows())
    columns = ("--image-column", "where", "--label-column", "kind")
    assert measured(shell("evaluate", run, odd, *columns, "--json")) == found["own"]


def test_absolute_paths_below_the_root_are_measured_on(tmp_path: Path, shell: Shell, animals: Path) -> None:
    train = table(tmp_path / "train.csv", "path,label", rows())
    (tmp_path / "far").mkdir()
    val = table(tmp_path / "far" / "val.csv", "path,label", [(str(animals / path), label) for path, label in rows()])
    answer = shell("train", train, "--root", animals, "--val", val, "--out", tmp_path / "run", *QUICK)
    assert answer.code == 0, answer.err


def test_a_table_to_measure_on_that_leads_nowhere_names_both_places(tmp_path: Path, shell: Shell, animals: Path) -> None:
    train = table(tmp_path / "train.csv", "path,label", rows())
    (tmp_path / "far").mkdir()
    val = table(tmp_path / "far" / "val.csv", "path,label", rows(500))
    answer = shell("train", train, "--root", animals, "--val", val, "--out", tmp_path / "run", *QUICK)
    assert answer.code == 1 and "none of its 18 pictures" in answer.err and '"cat/500.png"' in answer.err
    assert f"below {tmp_path / 'far'}," in answer.err and f"below {animals}," in answer.err
    assert not (tmp_path / "run").exists()
    empty = table(tmp_path / "far" / "empty.csv", "path,label", [])
    answer = shell("train", train, "--root", animals, "--val", empty, "--out", tmp_path / "run", *QUICK)
    assert answer.code == 1 and "no rows" in answer.err


def test_arrays_of_pictures_without_some_labels_go_all_the_way(tmp_path: Path, shell: Shell) -> None:
    """train, inspect, evaluate and apply read the same rows."""
    arrays = stripes()
    arrays["labels"][[20, 30]] = -1  # the first 16 are the test set, too
    np.savez(tmp_path / "a.npz", **arrays)
    skip, run = ("--set", "pictures.skip_unlabelled=true"), tmp_path / "run"
    for verb in ("inspect", "train"):
        refused = shell(verb, tmp_path / "a.npz", *(("--out", run, *QUICK) if verb == "train" else ()))
        assert refused.code == 1 and "--set pictures.skip_unlabelled=true" in refused.err
    assert "2 rows have no label" in shell("inspect", tmp_path / "a.npz", *skip).out
    answer = shell("train", tmp_path / "a.npz", "--out", run, *QUICK, *skip)
    assert answer.code == 0 and "note: 2 rows have no label: left out" in answer.out, answer.err
    assert shell("evaluate", run).code == 0
    assert json.loads(shell("evaluate", run, tmp_path / "a.npz", *skip, "--json").out)["pictures"] == 16
    answer = shell("apply", run, "--out", tmp_path / "new.npz", "--decisions", kept(tmp_path, run))
    assert answer.code == 0, answer.err
    with np.load(tmp_path / "new.npz", allow_pickle=False) as new:
        assert len(new["labels"]) == len(new["images"]) == 46 and list(new["ids"][19:21]) == ["00019", "00021"]
