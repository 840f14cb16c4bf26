"""Twelve bits in sixteen: what is white is written into the run, and predict, evaluate and resume read pictures by it."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from labelsieve.config.schema import override
from labelsieve.data.pictures import pool
from labelsieve.data.pictures.decoding import Plan
from labelsieve.data.pictures.unlabelled import find_pictures, in_chunks
from labelsieve.predict.model import evaluate_model, load_model
from labelsieve.runs.folder import RunFolder
from labelsieve.train.start import restored
from runs.tiny import arrays_file, pictures, tiny_config, whole


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(pool, "FEW", 10**6)


def files(root: Path, scale: int, count: int = 48) -> Path:
    """The striped pictures as PNG files of 16 bits, values times `scale`."""
    made = pictures(count)
    for row, (image, label) in enumerate(zip(made["images"], made["labels"])):
        (root / f"c{label}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.astype(np.uint16) * scale).save(root / f"c{label}" / f"{row}.png")
    return root


def test_of_files(tmp_path: Path) -> None:
    run = whole(tmp_path / "run", tiny_config(f"pictures:{files(tmp_path / 'data', 16)}", data__noise="none"))
    folder = RunFolder.open(tmp_path / "run")
    assert run.config.pictures.white == folder.read_config().pictures.white == 4095
    model = load_model(folder.path, torch.device("cpu"))
    assert model.white == 4095
    dark = files(tmp_path / "dark", 4, 6)  # by themselves they would be taken for ten bits
    plan = Plan(8, 1, model.fit, 6, model.white)
    assert 45 < max(int(chunk.pixels.max()) for chunk in in_chunks(find_pictures([dark]), plan)) < 60
    assert evaluate_model(folder.path, str(dark), "cpu")["pictures"] == 6
    images = run.rows.data.images
    assert torch.equal(restored(folder, folder.read_config()).rows.data.images, images)
    older = override(folder.read_config(), {"pictures.white": None})
    (state,) = folder.checkpoints.glob("*/state.json")
    begun = json.loads(state.read_text())
    del begun["values"]  # which runs of then did not write down, either
    state.write_text(json.dumps(begun))
    assert int(restored(folder, older).rows.data.images.max()) < int(images.max()) // 10  # as it was read when it began


def test_of_arrays(tmp_path: Path) -> None:
    made = pictures()
    twelve = {key: made[key].astype(np.uint16) * 16 for key in ("images", "test_images")}
    run = whole(tmp_path / "run", tiny_config(arrays_file(tmp_path / "x.npz", **twelve)))
    assert run.config.pictures.white == 4095 and any("4,095 is white" in note for note in run.rows.notes)
    assert int((run.rows.data.images[:, 0].int() - torch.from_numpy(made["images"]).int()).abs().max()) <= 1
    assert evaluate_model(tmp_path / "run", None, "cpu")["pictures"] == 16
