"""A run on frozen features does all that a run on pixels does: resume, predict, evaluate, report, review, export, next round."""

import csv
import io
import json
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from backbones.conftest import TINY
from backbones.frozen import OPTIONS, config_for
from backbones.photos import folder, photo
from cli.conftest import Answer, Shell, shell
from labelsieve.backbones.embedding import Embedder
from labelsieve.data.pictures.framing import framed
from labelsieve.errors import ToolError
from labelsieve.exports.export import export_run
from labelsieve.predict.model import evaluate_model, load_model
from labelsieve.results.reporting import run_report
from labelsieve.review.picture_process import encoded_from_arrays
from labelsieve.runs.folder import RunFolder
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.reviewed import decide, next_run

__all__ = ["Answer", "shell"]
pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def done(timm: ModuleType, weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data and a finished run on them; tests copy what they change."""
    place = tmp_path_factory.mktemp("frozen")
    folder(place / "data", each=16)
    config = config_for(place / "data", weights, pictures__cache_dir=str(place / "cache"))
    for _ in each_epoch(start(place / "run", config)):
        pass
    return place


def test_the_run_holds_its_backbone_and_its_pictures_names(done: Path) -> None:
    run = done / "run"
    config = RunFolder.open(run).read_config()
    assert config.features.use == "frozen" and config.features.weights == str(run / "backbone.safetensors")
    assert "weights: backbone.safetensors" in (run / "config.yaml").read_text()
    rows = RunFolder.open(run).read_issues()
    assert len(rows) == 32 and {row["id"] for row in rows} == {row["path"] for row in rows}
    assert {row["id"] for row in rows} >= {"cat/000.png", "dog/015.png"}
    facts = json.loads((run / "model.json").read_text())
    assert facts["backbone"]["name"] == TINY and facts["shape"] == [load_model(run).backbone.width]  # type: ignore[union-attr]


def test_new_pictures_are_predicted_through_the_backbone(done: Path, shell: Shell, tmp_path: Path) -> None:
    folder(tmp_path / "new", each=3)
    (tmp_path / "new" / "bad.png").write_bytes(b"none")
    answer = shell("predict", done / "run", tmp_path / "new", "--device", "cpu")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert answer.code == 0 and len(rows) == 7
    assert [row["path"] for row in rows if row["error"]] == [str(tmp_path / "new" / "bad.png")]
    model = load_model(done / "run")
    assert model.backbone is not None
    pixels = torch.from_numpy(framed(photo(1001), model.backbone.sight.frame))[None]
    shares = model.probabilities(pixels)[0]
    (row,) = [row for row in rows if row["path"].endswith("dog/001.png")]
    assert float(row["probability"]) == pytest.approx(float(shares.max()), abs=1e-4)
    assert row["label"] == model.classes[int(shares.argmax())]
    arrays = np.stack([np.asarray(photo(1001)), np.asarray(photo(2))])
    np.savez(tmp_path / "a.npz", images=arrays)
    rows = list(csv.DictReader(io.StringIO(shell("predict", done / "run", tmp_path / "a.npz").out)))
    assert float(rows[0]["probability"]) == pytest.approx(float(shares.max()), abs=1e-4)


def test_accuracy_is_measured_on_pictures_of_every_form(done: Path, tmp_path: Path) -> None:
    folder(tmp_path / "test", each=4)
    found = evaluate_model(done / "run", str(tmp_path / "test"), "cpu")
    assert found["pictures"] == 8
    images = np.stack([np.asarray(photo(1000 * label + k)) for label in range(2) for k in range(4)])
    np.savez(tmp_path / "a.npz", images=images, labels=np.repeat(["cat", "dog"], 4))
    assert evaluate_model(done / "run", str(tmp_path / "a.npz"), "cpu")["accuracy"] == found["accuracy"]


def test_an_exported_model_has_the_backbone_in_it(done: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    import onnxruntime

    exported = export_run(done / "run", "onnx", tmp_path / "onnx")
    assert "pictures of the run's data" in exported.words
    model = load_model(done / "run")
    assert model.backbone is not None
    pixels = framed(photo(4), model.backbone.sight.frame)[None]
    session = onnxruntime.InferenceSession(tmp_path / "onnx" / "model.onnx")
    (found,) = session.run(["probabilities"], {"pixels": pixels})
    assert np.allclose(found, model.probabilities(torch.from_numpy(pixels)).numpy(), atol=1e-4)
    facts = json.loads((tmp_path / "onnx" / "model.json").read_text())
    assert facts["input"]["shape"] == ["batch", 3, 32, 32] and facts["preprocessing"]["frame"]["scaled"] == [
        *model.backbone.sight.frame.scaled
    ]


def test_report_and_review_show_the_pictures(weights: Path, tmp_path: Path) -> None:
    """Red and blue pictures, two of them in the other's folder: these are listed, and shown as they are."""
    for label, name in enumerate(("red", "blue")):
        (tmp_path / "data" / name).mkdir(parents=True)
        for k in range(20):
            seen = np.asarray(photo(1000 * label + k)) // 3
            seen[..., 0 if (k == 0) == bool(label) else 2] += 170
            Image.fromarray(seen).save(tmp_path / "data" / name / f"{k:03d}.png")
    for _ in each_epoch(start(tmp_path / "run", config_for(tmp_path / "data", weights))):
        pass
    found, remark = run_report(tmp_path / "run")
    seen = [suspect for corner in found.corners for suspect in corner.suspects]
    assert not remark and seen and all(suspect.image.ndim == 3 for suspect in seen)


def test_a_run_is_resumed_bit_for_bit_without_the_weights_file(weights: Path, tmp_path: Path) -> None:
    root, own = folder(tmp_path / "data"), tmp_path / "mine.pth"
    shutil.copy(weights, own)
    config = config_for(root, own, training__epochs=3)
    for _ in each_epoch(start(tmp_path / "whole", config)):
        pass
    run = start(tmp_path / "run", config)
    own.unlink()
    for _ in each_epoch(run, lambda: True):
        pass
    assert not run.done
    for _ in each_epoch(resume(tmp_path / "run")):
        pass
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "run"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (tmp_path / "whole" / "issues.csv").read_text() == (tmp_path / "run" / "issues.csv").read_text()


def test_a_backbone_that_was_exchanged_is_refused(done: Path, weights: Path, tmp_path: Path) -> None:
    shutil.copytree(done / "run", tmp_path / "run")
    changed = torch.load(weights, weights_only=True)
    changed["conv_stem.weight"] *= 2
    torch.save(changed, tmp_path / "other.pth")
    other = start(tmp_path / "other", config_for(done / "data", tmp_path / "other.pth", pictures__cache_dir=str(done / "cache")))
    shutil.copy(other.folder.backbone, tmp_path / "run" / "backbone.safetensors")
    with pytest.raises(ToolError, match="not the weights the run started with"):
        load_model(tmp_path / "run")
    with pytest.raises(ToolError, match="not the weights the run started with"):
        resume(tmp_path / "run")
    (tmp_path / "run" / "backbone.safetensors").unlink()
    with pytest.raises(ToolError, match=r"backbone.safetensors.*no such file"):
        load_model(tmp_path / "run")


def test_a_next_round_follows_the_decisions(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done / "run", tmp_path / "run")
    decide(tmp_path / "run", {"cat/003.png": ("relabel", "dog")})
    following = next_run(tmp_path / "run", tmp_path / "next")
    assert following.done and following.config.features.sha256 == RunFolder.open(done / "run").read_config().features.sha256
    given = {row["id"]: row["given_label"] for row in RunFolder.open(tmp_path / "next").read_issues()}
    assert given["cat/003.png"] == "dog" and given["cat/004.png"] == "cat"
    assert (tmp_path / "next" / "backbone.safetensors").read_bytes() == (done / "run" / "backbone.safetensors").read_bytes()


def test_apply_writes_what_people_decided(done: Path, shell: Shell, tmp_path: Path) -> None:
    shutil.copytree(done / "run", tmp_path / "run")
    decide(tmp_path / "run", {"cat/003.png": ("relabel", "dog"), "dog/001.png": ("drop", None)})
    answer = shell("apply", tmp_path / "run", "--out", tmp_path / "better")
    assert answer.code == 0, answer.err
    assert len(list((tmp_path / "better").rglob("*.png"))) == 31 and len(list((tmp_path / "better" / "dog").iterdir())) == 16


def test_accuracy_is_measured_as_it_trains_on_other_pictures(weights: Path, tmp_path: Path) -> None:
    root, held = folder(tmp_path / "data"), folder(tmp_path / "held", each=3)
    run = start(tmp_path / "run", config_for(root, weights, pictures__val=str(held)))
    for _ in each_epoch(run):
        pass
    assert run.rows.test is not None and len(run.rows.test.labels) == 6
    measured = [line["accuracy"]["both"] for line in run.metrics if "accuracy" in line]
    assert evaluate_model(tmp_path / "run", None, "cpu")["accuracy"]["both"] == measured[-1]


def test_a_run_killed_before_its_backbone_was_written_down_goes_on(weights: Path, tmp_path: Path) -> None:
    """Between the file of weights and its line in config.yaml."""
    root = folder(tmp_path / "data")
    made = start(tmp_path / "run", config_for(root, weights))
    plain = (tmp_path / "run" / "config.yaml").read_text()
    fresh = RunFolder.create(tmp_path / "early", config_for(root, weights))
    shutil.copy(made.folder.backbone, fresh.backbone)  # type: ignore[union-attr]
    assert resume(tmp_path / "early").config.features.sha256 == made.config.features.sha256
    assert (tmp_path / "early" / "config.yaml").read_text() == plain


def test_arrays_train_on_features_and_measure_on_them(timm: ModuleType, weights: Path, tmp_path: Path) -> None:
    images = np.stack([np.asarray(photo(number)) for number in range(24)])
    held = {"x_test": images[:6], "y_test": np.arange(6) % 2}
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(24) % 2, **held)
    run = start(tmp_path / "run", config_for(tmp_path / "a.npz", weights))
    assert run.rows.data.are_vectors and run.rows.test is not None and run.rows.test.images.ndim == 2
    for _ in each_epoch(run):
        pass
    assert evaluate_model(tmp_path / "run", None, "cpu")["pictures"] == 6
    assert not run_report(tmp_path / "run")[1]
    given = {row["id"]: row["given_label"] for row in RunFolder.open(tmp_path / "run").read_issues()}
    picture, kind = encoded_from_arrays(run.config, given, run.rows.data.classes)("00000", 100)
    assert kind.startswith("image/") and np.abs(np.asarray(Image.open(io.BytesIO(picture))).astype(int) - images[0]).mean() < 20


def test_resume_on_the_command_line_knows_its_own_backbone(
    shell: Shell, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder(tmp_path / "data")
    words = ("train", root, "--backbone", TINY, "--weights", weights, *OPTIONS, "--out", tmp_path / "run")
    assert shell(*words, "--time-limit", "1s").code == 0
    counted: list[int] = []
    features = Embedder._seen
    monkeypatch.setattr(Embedder, "_seen", lambda self, block: counted.append(1) or features(self, block))
    again = shell(*words, "--resume")
    assert again.code == 0, again.err
    assert "frozen, of test_efficientnet: as you asked" in again.out and not counted
    changed = torch.load(weights, weights_only=True)
    changed["conv_stem.weight"] *= 2
    torch.save(changed, tmp_path / "other.pth")
    other = [tmp_path / "other.pth" if word == weights else word for word in words]
    assert "has other settings" in shell(*other, "--resume").err


def test_resuming_a_run_that_lost_its_backbone_fetches_none(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    """Its config.yaml may be a stranger's, and name any network of timm."""
    run = Path(shutil.copytree(done / "run", tmp_path / "run"))
    (run / "backbone.safetensors").unlink()
    (run / "config.yaml").write_text((run / "config.yaml").read_text().replace("weights: backbone.safetensors", "weights: null"))
    monkeypatch.setattr("labelsieve.runs.features.own_weights", lambda name: pytest.fail(f"looked for {name}"))
    answer = shell("resume", run)
    assert answer.code == 1 and f"{run / 'backbone.safetensors'}: missing; put back the backbone" in answer.err
