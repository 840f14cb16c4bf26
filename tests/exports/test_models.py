"""Exported models answer as ours do, for any batch size; one that does not is never kept."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from labelsieve.errors import ToolError, UsageError
from labelsieve.exports import export
from labelsieve.exports.export import export_run
from labelsieve.predict.model import load_model
from labelsieve.predict.predict import find_samples, predictions
from labelsieve.runs.folder import RunFolder
from runs.file_limit import files_at_most
from runs.tiny import pictures


def some_pixels(count: int) -> torch.Tensor:
    return torch.from_numpy(pictures(count, seed=5)["images"]).unsqueeze(1)


def ours(run: Path, pixels: torch.Tensor) -> torch.Tensor:
    return load_model(run, torch.device("cpu")).probabilities(pixels)


def test_torch_export_gives_our_answers_on_pictures_it_has_not_seen(run: Path) -> None:
    done = export_run(run, "torch-export")
    assert done.path == run / "export" / "torch-export" and "samples of the run's data" in done.words
    loaded = torch.export.load(done.path / "model.pt2").module()
    for count in (1, 5):
        assert torch.allclose(loaded(some_pixels(count)), ours(run, some_pixels(count)), atol=1e-6)
    facts = json.loads((done.path / "model.json").read_text())
    assert facts["classes"] == ["0", "1", "2"]
    assert facts["input"] == {
        "name": "pixels",
        "type": "uint8",
        "shape": ["batch", 1, 8, 8],
        "layout": "NCHW",
        "range": [0, 255],
    }
    assert facts["checked"]["max_abs_difference"] <= 1e-4


def test_onnx_gives_our_answers_and_takes_floats_when_asked(run: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    done = export_run(run, "onnx", pixels="float32")
    session = runtime.InferenceSession(done.path / "model.onnx", providers=["CPUExecutionProvider"])
    assert [(i.name, i.type) for i in session.get_inputs()] == [("pixels", "tensor(float)")]
    for count in (1, 5):
        (found,) = session.run(None, {"pixels": some_pixels(count).float().numpy()})
        assert np.allclose(found, ours(run, some_pixels(count)).numpy(), atol=1e-5)
    assert sorted(path.name for path in done.path.iterdir()) == ["model.json", "model.onnx"]


def test_a_missing_torchvision_is_nothing_to_tell(run: Path) -> None:
    """torch's exporter warned four times of operators that none of our networks has."""
    pytest.importorskip("onnxscript")
    code = "import sys; sys.modules['torchvision'] = None; from labelsieve.cli.main import main; main()"
    words = ["export", str(run), "--to", "onnx", "--out", str(run.parent / "quiet")]
    ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert "Skipping" not in ran.stdout + ran.stderr and "answers differ from ours by at most" in ran.stdout


def test_a_model_that_answers_otherwise_is_refused_and_nothing_is_left(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shifted(export.Ensemble):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return super().forward(pixels) + 2e-4

    monkeypatch.setattr(export, "Ensemble", Shifted)
    with pytest.raises(ToolError, match="differ from this model's by up to 0.0002"):
        export_run(run, "torch-export")
    assert list((run / "export").iterdir()) == []


def test_without_the_data_made_samples_are_used_and_said(run: Path, tmp_path: Path) -> None:
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("stripes.npz", "gone.npz"))
    assert "cannot be opened here" in export_run(run, "torch-export", tmp_path / "here").words


def test_nothing_is_overwritten(run: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(UsageError, match="nothing is overwritten"):
        export_run(run, "torch-export", taken)
    assert list(taken.iterdir()) == []


@pytest.mark.parametrize("target", ["torch-export", "onnx"])
def test_a_disk_that_is_full_is_said_in_words(run: Path, target: str) -> None:
    """torch's own writer ended the process."""
    with files_at_most(2_000), pytest.raises(ToolError, match=r"File too large.*free some space"):
        export_run(run, target)
    assert not (run / "export" / target).exists()


def test_an_unknown_target_is_named_with_the_nearest(run: Path) -> None:
    with pytest.raises(UsageError, match='did you mean "labelstudio"'):
        export_run(run, "label-studio")
    with pytest.raises(UsageError, match="uint8 or float32"):
        export_run(run, "onnx", pixels="int8")


def test_missing_packages_are_named_with_the_extra(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "NEEDED", ("onnx", "no_such_package"))
    with pytest.raises(ToolError, match=r"no_such_package not installed.*labelsieve\[onnx\]"):
        export_run(run, "onnx")


def test_a_run_without_a_model_says_so(run: Path) -> None:
    shutil.move(run / "model.safetensors", run / "elsewhere")
    with pytest.raises(ToolError, match="resume"):
        export_run(run, "torch-export")


@pytest.mark.parametrize("turned", [1, 6])
def test_the_documents_way_to_load_it_gives_what_predict_gives(
    turned: int, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of a photograph: large, stored as the camera was held, and with an odd number of pixels beside the middle."""
    pixels = np.random.default_rng(3).integers(0, 256, (40, 61, 3), dtype=np.uint8).repeat(5, 0).repeat(5, 1)
    monkeypatch.chdir(run.parent)
    exif = Image.Exif()
    exif[0x0112] = turned
    Image.fromarray(pixels).save("new.jpg", exif=exif)
    export_run(run, "torch-export")
    text = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    (code,) = [block for block in text.split("```python\n") if "torch-export/" in block]
    exec(code.partition("```")[0].replace("RUN/", "run/"), {})
    model = load_model(run, torch.device("cpu"))
    ((row,),) = predictions(model, find_samples(model, RunFolder.open(run).read_config(), [Path("new.jpg")], {}).chunks, 1)
    label, share = capsys.readouterr().out.split()
    assert (label, float(share)) == (row.best[0][0], pytest.approx(row.best[0][1], abs=1e-5))
