"""`labelsieve embed`: features of every kind of labelled pictures in a file that `train` and `find_label_issues` read."""

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from backbones.conftest import TINY
from backbones.photos import folder, photo
from cli.conftest import Shell
from labelsieve.backbones.hub import Weights
from labelsieve.data.embeddings import load_embeddings
from labelsieve.errors import ToolError
from labelsieve.nets.zoo import timm_library

pytestmark = pytest.mark.usefixtures("own_cache")
SMALL = ("--size", "32", "--device", "cpu")


@pytest.fixture(scope="module")
def timm() -> ModuleType:
    try:
        return timm_library()
    except ToolError as error:
        pytest.skip(f"the extra zoo is not installed: {error}")


@pytest.fixture(scope="module")
def known(timm: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    path = tmp_path_factory.mktemp("weights") / "tiny.pth"
    torch.save(timm.create_model(TINY).state_dict(), path)
    return "--backbone", TINY, "--weights", str(path)


def test_a_folder_becomes_vectors_with_labels_ids_and_paths(shell: Shell, known: tuple[str, ...], tmp_path: Path) -> None:
    root = folder(tmp_path / "data")
    (root / "dog" / "004.png").write_bytes(b"no picture")
    found = shell("embed", root, *known, "--size", "32", "--device", "cpu", "--out", tmp_path / "f.npz")
    assert found.code == 0 and "none of them is known yet" in found.out
    assert "left out: dog/004.png" in found.out and "19 pictures with" in found.out
    kept = np.load(tmp_path / "f.npz")
    assert kept["features"].shape[0] == 19 and kept["labels"].tolist() == ["cat"] * 10 + ["dog"] * 9
    assert kept["ids"][0] == "cat/000.png" == kept["paths"][0] and kept["left_out"][0][1] == "dog/004.png"
    assert json.loads(str(kept["backbone"]))["name"] == TINY
    train = load_embeddings(tmp_path / "f.npz").train
    assert train.are_vectors and train.ids[12] == "dog/002.png" and train.classes == ("cat", "dog")
    again = shell("embed", root, *known, *SMALL, "--out", tmp_path / "g.npz")
    assert "19 of them are known already" in again.out
    assert np.array_equal(np.load(tmp_path / "g.npz")["features"], kept["features"])


def as_manifest(root: Path) -> Path:
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.png"))
    (root / "table.csv").write_text("path,label\n" + "".join(f"{name},{name.partition('/')[0]}\n" for name in files))
    return root / "table.csv"


def as_arrays(root: Path) -> Path:
    pixels = np.stack([np.asarray(photo(1000 * label + k)) for label in range(2) for k in range(10)])
    test = {"x_test": pixels[:4], "y_test": np.array([0, 0, 0, 1])}
    np.savez(root.parent / "a.npz", images=pixels, labels=np.repeat([0, 1], 10), **test)
    return root.parent / "a.npz"


def as_parquet(root: Path) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    files = sorted(root.rglob("*.png"))
    images = [{"bytes": path.read_bytes(), "path": None} for path in files]
    pq.write_table(pa.table({"image": images, "label": [path.parent.name for path in files]}), root.parent / "p.parquet")
    return root.parent / "p.parquet"


@pytest.mark.parametrize("form", [as_manifest, as_arrays, as_parquet])
def test_every_form_of_the_same_pictures_has_the_same_features(
    shell: Shell, known: tuple[str, ...], tmp_path: Path, form: object
) -> None:
    root = folder(tmp_path / "data")
    assert shell("embed", root, *known, *SMALL, "--out", tmp_path / "f.npz").code == 0
    assert shell("embed", form(root), *known, *SMALL, "--out", tmp_path / "g.npz").code == 0  # type: ignore[operator]
    one, other = np.load(tmp_path / "f.npz"), np.load(tmp_path / "g.npz")
    assert np.allclose(one["features"], other["features"], atol=1e-5)
    assert ("test_features" in other) == (form is as_arrays)


def test_a_known_set_can_be_embedded(shell: Shell, known: tuple[str, ...], tmp_path: Path) -> None:
    found = shell("embed", "digits", *known, "--device", "cpu", "--limit", "40", "--out", tmp_path / "f.npz")
    assert found.code == 0, found.err
    assert len(np.load(tmp_path / "f.npz")["features"]) == 40


def test_what_cannot_be_is_said_in_one_line(
    shell: Shell, known: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, out = folder(tmp_path / "data"), ("--out", tmp_path / "f.npz")
    assert 'no model "resnet188" (did you mean "resnet' in shell("embed", root, "--backbone", "resnet188", *out).err
    wrong = shell("embed", root, "--backbone", "resnet18", *known[2:], *out)
    assert wrong.code == 1 and "these are not the weights of resnet18" in wrong.err
    absent = shell("embed", root, "--backbone", TINY, "--weights", tmp_path / "none.pth", *out)
    assert "no such file of weights; check what --weights names" in absent.err
    monkeypatch.setattr(Weights, "cached", lambda self: None)
    offline = shell("embed", root, "--backbone", TINY, "--offline", *out)
    assert offline.code == 1 and "this is offline" in offline.err and "huggingface.co/timm/test_efficientnet" in offline.err
    np.savez(tmp_path / "v.npz", features=np.zeros((4, 3)), labels=[0, 0, 1, 1])
    assert "these are vectors and no pictures" in shell("embed", tmp_path / "v.npz", *known, *out).err
    assert not (tmp_path / "f.npz").exists()
    (tmp_path / "f.npz").write_bytes(b"mine")
    assert "nothing is overwritten" in shell("embed", root, *known, *out).err and (tmp_path / "f.npz").read_bytes() == b"mine"
    assert "end the name so" in shell("embed", root, *known, "--out", tmp_path / "f.csv").err
