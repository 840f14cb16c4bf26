"""Writes a run's networks for other runtimes. Each file is loaded back and has to give the same answers."""

import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelsieve.errors import ToolError
from labelsieve.predict.model import Model, together

TOLERANCE = 1e-4
BEFORE = "the first frame, turned as its EXIF says, alpha laid on white; then the mode, the crop and the size"
MEANING = "softmax of the mean of both networks' logits"
NEEDED = ("onnx", "onnxscript", "onnxruntime")


class Ensemble(nn.Module):
    """What both networks say together, (B, K), of pixels 0..255, (B, C, H, W), bytes or floats. It normalises them itself."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.networks = nn.ModuleList(expert.network for expert in model.experts)
        self.register_buffer("mean", model.mean)
        self.register_buffer("std", model.std)
        self.seen = model.seen
        self.backbone = model.backbone

    def forward(self, pixels: Tensor) -> Tensor:
        seen = self.seen(pixels) if self.backbone is None else self.backbone(pixels)
        x = (seen.float() - self.mean) / self.std
        return together([network(x)[0] for network in self.networks])


@dataclass(frozen=True)
class Checked:
    """A written model and how far its answers are from ours, over so many samples."""

    file: str
    difference: float
    samples: int


def onnx_file(model: Model, samples: Tensor, folder: Path) -> Checked:
    """`model.onnx`: input `pixels`, output `probabilities`, any batch size; run with onnxruntime and compared."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ToolError(f'{", ".join(missing)} not installed, which --to onnx needs: pip install "labelsieve[onnx]"')
    path = folder / "model.onnx"
    with quiet():
        program = torch.onnx.export(
            ensemble(model),
            (samples[:2],),
            input_names=["pixels"],
            output_names=["probabilities"],
            dynamic_shapes={"pixels": {0: torch.export.Dim("batch")}},
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        program.save(path, external_data=False)
    return _checked(model, samples, path, _onnx_runner(path))


def torch_export_file(model: Model, samples: Tensor, folder: Path) -> Checked:
    """`model.pt2`: `torch.export.load(FILE).module()(pixels)` gives the probabilities, any batch size; loaded and compared."""
    path = folder / "model.pt2"
    with quiet():
        shapes = {"pixels": {0: torch.export.Dim("batch")}}
        content = io.BytesIO()  # torch's own writer ends the whole process where the disk is full
        torch.export.save(torch.export.export(ensemble(model), (samples[:2],), dynamic_shapes=shapes), content)
        path.write_bytes(content.getbuffer())
        loaded = torch.export.load(path).module()
    return _checked(model, samples, path, loaded)


@contextmanager
def quiet() -> Iterator[None]:
    """Without what torch says of its own parts, such as operators of a missing torchvision; answers are checked afterwards."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)


def ensemble(model: Model) -> Ensemble:
    return Ensemble(model).eval().requires_grad_(False)


def _onnx_runner(path: Path) -> Callable[[Tensor], Tensor]:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda pixels: torch.from_numpy(session.run(["probabilities"], {"pixels": pixels.numpy()})[0])


@torch.no_grad()
def _checked(model: Model, samples: Tensor, path: Path, run: Callable[[Tensor], Tensor]) -> Checked:
    """Hold the file against our own answers, for all samples at once and for one alone."""
    differences = []
    for some in (samples, samples[:1]):
        ours, theirs = model.probabilities(some), run(some)
        differences.append(float((ours - theirs).abs().max()) if ours.shape == theirs.shape else float("inf"))
    worst = max(differences)
    if not worst <= TOLERANCE:
        raise ToolError(
            f"{path.name}: its answers differ from this model's by up to {worst:.2g} (at most {TOLERANCE:g} is allowed); "
            f"nothing was written. Please report this with the versions that `labelsieve doctor` shows"
        )
    return Checked(path.name, worst, len(samples))


def model_facts(model: Model, checked: Checked, samples: Tensor) -> dict[str, Any]:
    """All that a program needs beside the file: input, output, class names, preprocessing, and the check's outcome."""
    shape = list(samples.shape[1:])
    pictures = len(shape) == 3
    frame = None if model.backbone is None else model.backbone.sight.frame
    return {
        "file": checked.file,
        "input": {
            "name": "pixels",
            "type": str(samples.dtype).removeprefix("torch."),
            "shape": ["batch", *shape],
            "layout": "NCHW" if pictures else "NC",
            "range": [0, 255] if pictures else None,
        },
        "preprocessing": {
            "resize_to": shape[1:] if pictures else None,
            "mode": {1: "L", 3: "RGB"}.get(shape[0]) if pictures else None,  # Pillow's name
            "resampling": (frame.interpolation if frame else "bicubic") if pictures else None,
            "before": BEFORE if pictures else None,
            "white": model.white,  # the value of 16-bit grey that becomes 255
            "fit": model.fit,  # crop: shorter side resized, middle kept; squash: both sides resized
            "frame": None if frame is None else frame.facts(),  # of a backbone: brought to `scaled`, then its middle is cut
            "normalisation": "inside the model: give it plain values",
            "mean": model.mean.flatten().tolist(),
            "std": model.std.flatten().tolist(),
        },
        "output": {"name": "probabilities", "shape": ["batch", len(model.classes)], "meaning": MEANING},
        "classes": list(model.classes),
        "checked": {"samples": checked.samples, "max_abs_difference": checked.difference},
    }
