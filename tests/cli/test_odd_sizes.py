"""Data of unusual shape through the door: 2 classes, 1,000 classes, 200 samples, 100 : 1. They work, and doubts are said."""

from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Shell
from cli.own import QUICK


def labels_of(kind: str) -> np.ndarray:
    counts = {"two": [100, 100], "thousand": [3] * 1000, "uneven": [400, 4, 40]}[kind]
    return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.parametrize(
    ("kind", "doubt", "batch"),
    [
        ("two", "200 samples are few", "batch: 8"),
        ("thousand", "all 1000 classes have fewer than 20", "batch: 32"),
        ("uneven", "100 times the smallest", "batch: 8"),
    ],
)
def test_odd_data_work_and_doubts_are_said(tmp_path: Path, shell: Shell, kind: str, doubt: str, batch: str) -> None:
    labels = labels_of(kind)
    images = np.random.default_rng(0).integers(0, 80, (len(labels), 8, 8)).astype(np.uint8)
    images[np.arange(len(labels)), labels % 8, labels // 8 % 8] = 255
    np.savez(tmp_path / "odd.npz", images=images, labels=labels)
    answer = shell("train", tmp_path / "odd.npz", "--out", tmp_path / "run", *QUICK)
    assert answer.code == 0, answer.err
    assert doubt in answer.out and batch in answer.out
    assert len((tmp_path / "run" / "issues.csv").read_text().splitlines()) == len(labels) + 1
