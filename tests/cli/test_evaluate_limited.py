"""`evaluate` of a run that was measured on a part of its test set: the same pictures again, and the whole set beside them."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import TINY, Shell
from cli.own import QUICK, broken, folder
from labelsieve.data.noisy_data import Held
from labelsieve.data.npz import read_npz
from labelsieve.predict import model
from labelsieve.results.kept import test_set_hash as set_hash

FEW = ("--set", "data.test_limit=6")


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hashes of the sets that were measured on."""
    seen: list[str] = []
    before = model.measured

    def measured(model: Any, held: Held, batch: int = 512) -> dict[str, float]:
        seen.append(set_hash(held))
        return before(model, held, batch)

    monkeypatch.setattr(model, "measured", measured)
    return seen


def split_folder(root: Path) -> list[str]:
    folder(root / "train")
    folder(root / "test", each=7, first=500)
    broken(root / "test" / "dog" / "a.png")
    return [str(root)]


def beside(root: Path) -> list[str]:
    return [str(folder(root / "train")), "--val", str(folder(root / "val", each=7, first=500))]


@pytest.mark.parametrize("make", [split_folder, beside])
def test_own_pictures_are_the_same_as_in_the_run(
    make: Any, tmp_path: Path, shell: Shell, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = tmp_path / "run"
    answer = shell("train", *make(tmp_path / "own"), "--out", run, *QUICK, *FEW)
    assert answer.code == 0, answer.err
    found = json.loads(shell("evaluate", run, "--json").out)
    assert found["pictures"] == 6 and list(found["also"]) == [model.WHOLE]
    assert looked_at[-1] == str(read_npz(run / "predictions.npz")["test_set"]) and looked_at[0] != looked_at[-1]


def test_the_first_line_is_the_runs_own_and_the_whole_set_comes_after_it(
    tmp_path: Path, shell: Shell, source: str, looked_at: list[str]
) -> None:
    run = tmp_path / "run"
    assert shell("train", source, "--out", run, *TINY, *FEW).code == 0
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = [record["accuracy"] for record in records if "accuracy" in record][-1]
    found = json.loads(shell("evaluate", run, "--json").out)
    assert found["pictures"] == 6 and found["accuracy"]["both"] == last["both"]
    assert looked_at[-1] == str(read_npz(run / "predictions.npz")["test_set"])
    whole = json.loads(shell("evaluate", run, source, "--json").out)  # data that are named are measured whole
    assert whole["pictures"] == 16 and not whole["also"] and found["also"] == {model.WHOLE: whole["accuracy"]}
    said = shell("evaluate", run).out
    assert said.startswith("accuracy on 6 test pictures")
    assert f"accuracy on the whole test set: network 1 {whole['accuracy']['first']:.2f} %" in said
    assert "these are the 6 of 16 test pictures that the run was measured on (data.test_limit)" in said


def test_a_limit_beyond_the_set_says_nothing(tmp_path: Path, shell: Shell, source: str) -> None:
    run = tmp_path / "run"
    assert shell("train", source, "--out", run, *TINY, "--set", "data.test_limit=99").code == 0
    found = json.loads(shell("evaluate", run, "--json").out)
    assert found["pictures"] == 16 and not found["also"] and not found["notes"]
