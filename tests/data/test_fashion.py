"""Fashion-MNIST's idx files, made small, plain and packed, whole and broken."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from labelsieve.data import fashion
from labelsieve.data.sources import open_data
from labelsieve.errors import ToolError, UsageError

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 28, 28), dtype=np.uint8)
LABELS = np.arange(20, dtype=np.uint8) % 10


def idx(array: np.ndarray) -> bytes:  # type: ignore[type-arg]
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture(params=["", ".gz"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    arrays = {
        "train-images-idx3-ubyte": IMAGES,
        "train-labels-idx1-ubyte": LABELS,
        "t10k-images-idx3-ubyte": IMAGES[:3],
        "t10k-labels-idx1-ubyte": LABELS[:3],
    }
    for name, array in arrays.items():
        put(tmp_path / f"{name}{request.param}", idx(array))
    return tmp_path


def put(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def test_the_four_files_become_a_collection(folder: Path) -> None:
    found = open_data(f"fashion-mnist:{folder}")
    assert found.name == "fashion-mnist" and found.mirror
    assert found.train.images.shape == (20, 1, 28, 28)
    assert np.array_equal(found.train.images[:, 0].numpy(), IMAGES)
    assert found.train.labels.tolist() == LABELS.tolist()
    assert found.train.classes[0] == "T-shirt/top" and found.train.classes[9] == "Ankle boot"
    assert found.test is not None and np.array_equal(found.test.images[:, 0].numpy(), IMAGES[:3])
    assert found.mean == pytest.approx((float((IMAGES / 255).mean()),))


BROKEN: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "cut": ("train-images", lambda: idx(IMAGES)[:-1], "20 x 28 x 28 = 15680 bytes, the file has 15679"),
    "too long": ("train-labels", lambda: idx(LABELS) + b"\0", "= 20 bytes, the file has more"),
    "header only in part": ("t10k-images", lambda: idx(IMAGES)[:9], "9 bytes, too short"),
    "empty": ("t10k-labels", lambda: b"", "0 bytes, too short"),
    "labels for images": ("train-images", lambda: idx(LABELS), "starts with 00000801, not with 00000803"),
    "other element type": ("train-labels", lambda: b"\0\0\x0d\1" + idx(LABELS)[4:], "starts with 00000d01"),
    "label out of range": ("train-labels", lambda: idx(np.arange(20, dtype=np.uint8)), "row 10 has label 10"),
    "test label out of range": (
        "t10k-labels",
        lambda: idx(np.array([1, 2, 77], np.uint8)),
        "row 2 has label 77",
    ),
    "other count": ("train-labels", lambda: idx(LABELS[:19]), "20 pictures, 19 labels"),
    "other size": ("t10k-images", lambda: idx(IMAGES[:3, :14]), r"\(1, 14, 28\)"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_refused(what: str, folder: Path) -> None:
    start, content, says = BROKEN[what]
    put(next(folder.glob(f"{start}*")), content())
    with pytest.raises(ToolError, match=says) as caught:
        open_data(f"fashion-mnist:{folder}")
    assert str(folder) in str(caught.value)


def test_a_missing_file_is_named(folder: Path) -> None:
    next(folder.glob("t10k-labels*")).unlink()
    with pytest.raises(ToolError, match=r": t10k-labels-idx1-ubyte missing; put"):
        open_data(f"fashion-mnist:{folder}")


@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_a_cut_gz_is_refused(part: float, tmp_path: Path, folder: Path) -> None:
    path = folder / "train-images-idx3-ubyte.gz"
    (folder / "train-images-idx3-ubyte").unlink(missing_ok=True)
    packed = gzip.compress(idx(IMAGES))
    path.write_bytes(packed[: int(part * len(packed))])
    with pytest.raises(ToolError, match="train-images"):
        open_data(f"fashion-mnist:{folder}")


def test_without_a_path_the_usual_place_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fashion, "DEBIAN_PLACE", folder)
    assert len(open_data("fashion-mnist").train) == 20
    monkeypatch.setattr(fashion, "DEBIAN_PLACE", folder / "nowhere")
    with pytest.raises(UsageError, match="apt-get install dataset-fashion-mnist"):
        open_data("fashion-mnist")
