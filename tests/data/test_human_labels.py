"""CIFAR-N's official files, made as torch makes them: a saved dict of NumPy arrays; hostile and wrong ones are refused."""

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labelsieve.data.noise import inject
from labelsieve.errors import ToolError, UsageError

TRUE = torch.arange(50) % 10
SAVED_BY_TORCH = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])


def official() -> dict[str, Any]:
    """The six columns of CIFAR-10_human.pt."""
    clean = TRUE.numpy()
    columns = {name: (clean + shift) % 10 for shift, name in enumerate(("aggre_label", "worse_label"), 1)}
    randoms = {f"random_label{k}": (clean + 2 + k) % 10 for k in (1, 2, 3)}
    return {"clean_label": clean, **columns, **randoms}


def saved(path: Path, content: object, zipped: bool = True) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


def given(file: Path, kind: str, name: str = "cifar10") -> torch.Tensor:
    return inject(f"cifar-n:{file}:{kind}", TRUE, 10, 0, name=name).labels


@SAVED_BY_TORCH
def test_each_kind_of_label_is_read(zipped: bool, tmp_path: Path) -> None:
    file = saved(tmp_path / "CIFAR-10_human.pt", official(), zipped)
    kinds = {"aggre": 1, "worse": 2, "random1": 3, "random2": 4, "random3": 5}
    for kind, shift in kinds.items():
        assert torch.equal(given(file, kind), (TRUE + shift) % 10)
    noise = inject(f"cifar-n:{file}:worse", TRUE, 10, 0, name="cifar10")
    assert noise.flipped.all() and noise.spec.endswith(":worse")


@SAVED_BY_TORCH
def test_the_hundred_classes_have_one_kind_under_two_names(zipped: bool, tmp_path: Path) -> None:
    fine = np.arange(200) % 100
    content = {"clean_label": fine, "noisy_label": (fine + 7) % 100}
    file = saved(tmp_path / "CIFAR-100_human.pt", content, zipped)
    for kind in ("noisy", "fine"):
        noise = inject(f"cifar-n:{file}:{kind}", torch.from_numpy(fine), 100, 0, name="cifar100")
        assert np.array_equal(noise.labels.numpy(), (fine + 7) % 100)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clean_label": np.roll(TRUE.numpy(), 1)}, "differ from the data set's in 50 of 50 rows, first in row 0"),
        ({"clean_label": np.arange(49) % 10}, "49 labels for 50 samples"),
        ({"worse_label": np.arange(49) % 10}, "49 labels for 50 samples"),
        ({"worse_label": np.arange(50)}, r"row 10 of \"worse_label\" is 10, outside 0\.\.9"),
        ({"worse_label": np.zeros(50)}, "float64"),
        ({"worse_label": "no"}, "whole numbers"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    file = saved(tmp_path / "CIFAR-10_human.pt", official() | change)
    with pytest.raises(ToolError, match=says) as caught:
        given(file, "worse")
    assert file.name in str(caught.value)


def test_a_missing_column_says_what_there_is(tmp_path: Path) -> None:
    file = saved(tmp_path / "CIFAR-10_human.pt", official())
    with pytest.raises(ToolError, match='no "noisy_label", only aggre_label'):
        given(file, "noisy")
    with pytest.raises(ToolError, match='no "clean_label"'):
        given(saved(tmp_path / "other.pt", {"worse_label": TRUE.numpy()}), "worse")


def test_the_form_and_the_data_set_are_checked(tmp_path: Path) -> None:
    file = saved(tmp_path / "CIFAR-10_human.pt", official())
    with pytest.raises(UsageError, match='did you mean "worse"'):
        given(file, "wors")
    with pytest.raises(UsageError, match="not for .digits"):
        given(file, "worse", "digits")
    with pytest.raises(UsageError, match="cifar-n:FILE:KIND"):
        inject("cifar-n:worse", TRUE, 10, 0, name="cifar10")
    with pytest.raises(ToolError, match=r"nowhere\.pt"):
        given(tmp_path / "nowhere.pt", "worse")


class Hostile:
    """What a pickle could do if it were let."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.witness),)


@SAVED_BY_TORCH
def test_code_in_the_file_is_never_run(zipped: bool, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    file = saved(tmp_path / "CIFAR-10_human.pt", official() | {"worse_label": Hostile(witness)}, zipped)
    with pytest.raises(ToolError, match="nothing was run"):
        given(file, "worse")
    assert not witness.exists()


def test_hostile_headers_and_damaged_archives_are_refused(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    file = tmp_path / "CIFAR-10_human.pt"
    file.write_bytes(pickle.dumps(Hostile(witness)) + pickle.dumps(1) * 4)
    with pytest.raises(ToolError, match="nothing was run"):
        given(file, "worse")
    whole = saved(tmp_path / "whole.pt", official()).read_bytes()
    for cut in (0, 1, 40, len(whole) // 2, len(whole) - 30):
        file.write_bytes(whole[:cut])
        with pytest.raises(ToolError, match=file.name):
            given(file, "worse")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("readme", "nothing")
    file.write_bytes(stream.getvalue())
    with pytest.raises(ToolError, match=r"data\.pkl"):
        given(file, "worse")
    assert not witness.exists()


def test_tensors_are_told_apart_from_arrays(tmp_path: Path) -> None:
    file = saved(tmp_path / "CIFAR-10_human.pt", {"clean_label": TRUE, "worse_label": TRUE})
    with pytest.raises(ToolError, match="torch"):
        given(file, "worse")
