"""The study of odd samples counts what it made."""

from pathlib import Path

import numpy as np
import torch

from data.pictures.test_near_copies import photo
from results.test_sample_issues import clouds
from studies.odd_samples import of_pictures, of_vectors, trust_of_map


def test_spoilt_pictures_are_counted(tmp_path: Path) -> None:
    for seed in range(40):
        photo(seed).save(tmp_path / f"{seed:02}.png")
    columns = [list(column.cells) for column in of_pictures(tmp_path, 5).columns]
    assert columns[0][0] == "alone" and columns[3][0] == "0" and columns[2][-4:] == ["5", "5", "5", "5"]


def test_strangers_are_counted(tmp_path: Path) -> None:
    values, labels = clouds(0)
    np.savez(tmp_path / "own.npz", features=values.numpy(), labels=labels)
    far = 4 * torch.eye(64)[10:40] + 0.1
    np.savez(tmp_path / "far.npz", features=far.numpy(), labels=np.zeros(30, int))
    columns = [list(column.cells) for column in of_vectors(tmp_path / "own.npz", [tmp_path / "far.npz"], 3, 0.0).columns]
    assert [column[-1] for column in columns] == ["far", "1.00", "1.00", "3"] and columns[3][0] == "0"
    assert "trustworthiness of the map" in trust_of_map(tmp_path / "own.npz")
