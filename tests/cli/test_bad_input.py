"""Data that cannot be used: an error that names thing, place and remedy, the right exit code, and nothing left behind."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.conftest import TINY, Shell
from runs.tiny import arrays_file, pictures


def nan_pixels() -> Any:
    images = pictures()["images"].astype(np.float32) / 255
    images[7, 3, 3] = np.nan
    return images


CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "label too high": (
        {"labels": np.r_[np.arange(47) % 3, 3], "classes": np.array(["a", "b", "c"])},
        ("row 47", "label 3", "0..2"),
    ),
    "label negative": ({"labels": np.r_[-1, np.arange(47) % 3]}, ("-1", "from 0")),
    "one class": (
        {"labels": np.zeros(48, int), "test_labels": np.zeros(16, int)},
        ("1 class", "at least two"),
    ),
    "nan pixels": ({"images": nan_pixels()}, ("images",)),
    "too few labels": ({"labels": np.arange(40) % 3}, ("48 pictures", "40 labels")),
    "unknown key": ({"lables": np.zeros(48, int)}, ("lables", 'did you mean "labels"')),
    "fewer than a batch": (
        {key: value[:12] for key, value in pictures().items() if key in ("images", "labels")},
        ("12 samples", "batch of 16", "--set training.batch="),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_arrays_that_cannot_be_used(tmp_path: Path, shell: Shell, case: str) -> None:
    changes, words = CASES[case]
    source = arrays_file(tmp_path / "bad.npz", **changes)
    answer = shell("train", source, "--out", tmp_path / "run", *TINY)
    assert answer.code == 1
    for word in ("error: ", "bad.npz", *words):
        assert word in answer.err
    assert not (tmp_path / "run").exists()


def test_pictures_of_mixed_size(tmp_path: Path, shell: Shell) -> None:
    images = np.empty(48, object)
    images[:] = [np.zeros((8, 8 + i % 2), np.uint8) for i in range(48)]
    source = arrays_file(tmp_path / "bad.npz", images=images)
    answer = shell("train", source, "--out", tmp_path / "run", *TINY)
    assert answer.code == 1 and "bad.npz" in answer.err and "one size" in answer.err
    assert not (tmp_path / "run").exists()


def test_the_batch_that_is_advised_works(tmp_path: Path, shell: Shell) -> None:
    few = {key: value[:12] for key, value in pictures().items() if key in ("images", "labels")}
    source = arrays_file(tmp_path / "few.npz", **few)
    answer = shell("train", source, "--out", tmp_path / "run", *TINY)
    advised = [word for word in answer.err.replace(",", " ").split() if "batch=" in word]
    settings = [word for advice in advised for word in ("--set", advice)]
    assert len(advised) == 2
    assert shell("train", source, "--out", tmp_path / "run", *TINY, *settings).code == 0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_npz(tmp_path: Path, shell: Shell, share: float) -> None:
    arrays_file(tmp_path / "bad.npz")
    content = (tmp_path / "bad.npz").read_bytes()
    (tmp_path / "bad.npz").write_bytes(content[: int(share * len(content))])
    answer = shell("train", f"arrays:{tmp_path / 'bad.npz'}", "--out", tmp_path / "run", *TINY)
    assert answer.code == 1 and "bad.npz" in answer.err and "write it again" in answer.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("file", ["data_batch_3", "test_batch", "batches.meta"])
def test_a_truncated_cifar_file(tmp_path: Path, shell: Shell, file: str) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    batch = {"data": np.zeros((20, 3072), np.uint8), "labels": [i % 10 for i in range(20)]}
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        (folder / name).write_bytes(pickle.dumps(batch, 2))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": [f"class {i}" for i in range(10)]}, 2))
    assert shell("train", f"cifar10:{tmp_path}", *TINY, "--dry-run").code == 0
    (folder / file).write_bytes((folder / file).read_bytes()[:-30])
    answer = shell("train", f"cifar10:{tmp_path}", "--out", tmp_path / "run", *TINY)
    assert answer.code == 1 and file in answer.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("digit",), 2, 'did you mean "digits"'),
        (("arrays:missing.npz",), 1, "missing.npz"),
        (("arrays",), 2, "arrays:FILE.npz"),
        (("digits", "--noise", "smy:0.4"), 2, 'did you mean "sym"'),
        (("digits", "--noise", "sym:4"), 2, "from 0 to 1"),
        (("digits", "--noise", "asym:0.4"), 2, "pair:0.4"),
        (("digits", "--noise", "file:missing.npz"), 1, "missing.npz"),
        (("digits", "--method", "cp"), 2, 'did you mean "cpc"'),
        (("digits", "--cleaner", "gmm-awar"), 2, 'did you mean "gmm-awr"'),
        (("digits", "--network", "smal"), 2, 'did you mean "small"'),
        (("digits", "--preset", "cifar10-sim50"), 2, 'did you mean "cifar10-sym50"'),
        (("digits", "--set", "training.epoch=3"), 2, 'did you mean "training.epochs"'),
        (("digits", "--set", "lrr=3"), 2, 'did you mean "lr"'),
        (("digits", "--set", "training.lr"), 2, "key=value"),
        (("digits", "--set", "training.epochs=many"), 2, "a whole number"),
        (("digits", "--set", "training.epochs=2.5"), 2, "a whole number"),
        (("digits", "--set", "training.lr=nan"), 2, "between"),
        (("digits", "--set", "version=2"), 2, "version"),
        (("digits", "--set", "views.policy=cifra"), 2, "policy"),
        (("digits", "--set", "engine.precision=bf61", "--dry-run"), 2, 'did you mean "bf16"'),
        (("digits", "--device", "cpu", "--set", "engine.precision=tf32", "--dry-run"), 2, "on a CPU choose float32"),
        (("digits", "--device", "cpu", "--set", "engine.capture=true", "--dry-run"), 2, "needs a CUDA device"),
        (("digits", "--epochs", "0"), 2, "training.epochs"),
        (("digits", "--limit", "5"), 2, "10 classes"),
        (("digits", "--device", "cud"), 2, 'did you mean "cuda"'),
        (("digits", "--time-limit", "soon"), 2, "1h30m"),
        (("digits", "--seed", "-1"), 2, "seed"),
    ],
)
def test_a_command_written_wrongly(tmp_path: Path, shell: Shell, words: tuple[str, ...], code: int, said: str) -> None:
    answer = shell("train", *words, "--out", tmp_path / "deep" / "run")
    assert answer.code == code
    assert answer.err.startswith("error: ") and said in answer.err
    assert not (tmp_path / "deep" / "run").exists()


def test_a_run_folder_must_be_named(shell: Shell) -> None:
    answer = shell("train", "digits")
    assert answer.code == 2 and "--out" in answer.err


@pytest.mark.parametrize("verb", ["inspect", "evaluate"])
def test_verbs_that_only_read_data_refuse_columns_where_there_is_no_table(
    tmp_path: Path, finished: Path, shell: Shell, verb: str
) -> None:
    run = [finished] if verb == "evaluate" else []
    answer = shell(verb, *run, arrays_file(tmp_path / "mine.npz"), "--label-column", "art")
    assert answer.code == 2 and answer.err.startswith("error: label_column (--label-column) is for a table")
