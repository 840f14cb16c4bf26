"""`export_run`: writes a run as a new folder of checked files for another program. Nothing that exists is overwritten."""

import io
import logging
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labelsieve.config.moved import moved_to, to_look_at
from labelsieve.config.schema import Config
from labelsieve.data.pictures.framing import Frame
from labelsieve.data.pictures.options import FLAGS
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.exports import label_files
from labelsieve.exports.label_files import Album, read_sheet
from labelsieve.predict.model import Model, load_model, together
from labelsieve.runs import atomic
from labelsieve.runs.checks import check_place
from labelsieve.runs.features import framed_samples
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import rows_for

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


MODELS: dict[str, Callable[[Model, Tensor, Path], Checked]] = {
    "onnx": onnx_file,
    "torch-export": torch_export_file,
}
LABELS = {
    "fiftyone": label_files.fiftyone_files,
    "labelstudio": label_files.labelstudio_files,
    "huggingface": label_files.huggingface_files,
}
TARGETS = (*MODELS, "cleanlab", *LABELS)
PIXELS = {"uint8": torch.uint8, "float32": torch.float32}
FRAMED = 8  # pictures, the same of a model that a backbone is part of
SAMPLES = 64  # pictures that a written model is held against


@dataclass(frozen=True)
class Exported:
    """Where the files are, and in words what was checked."""

    path: Path
    words: str


def export_run(path: Path, target: str, out: Path | None = None, pixels: str = "uint8", source: str | None = None) -> Exported:
    """Write what `target` wants into a new folder: `out`, or export/TARGET in the run folder.

    `source` says where the data are now.
    """
    if target not in TARGETS:
        raise UsageError(f'"{target}" is not a target{suggest(target, TARGETS)}; there are: {", ".join(TARGETS)}')
    if pixels not in PIXELS:
        raise UsageError(f'pixels are uint8 or float32, not "{pixels}"{suggest(pixels, PIXELS)}')
    folder = RunFolder.open(path)
    config = folder.read_config() if source is None else moved_to(folder.read_config(), source)
    out = out or path / "export" / target
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out}: it exists, and nothing is overwritten; choose another --out or remove it")
    check_place(out, config)
    if target in MODELS:
        return _export_model(config, load_model(path, torch.device("cpu")), target, out, pixels)
    found = read_sheet(folder)
    words = f"{len(found.ids)} samples, {int(found.is_issue.sum())} of them label issues"
    if target == "cleanlab":
        atomic.write_folder(
            out, lambda draft: label_files.cleanlab_files(found, lambda: _probabilities(path, config, found.ids), draft)
        )
        return Exported(out, words)
    album = Album(config, found.ids, found.paths)
    atomic.write_folder(out, lambda draft: LABELS[target](found, album, draft))
    if album.has_links and target == "huggingface":
        words += f"; pictures are links to the old files: labelsieve inspect {shlex.quote(str(out))} {FLAGS['outside']}"
    return Exported(out, words)


def _export_model(config: Config, model: Model, target: str, out: Path, pixels: str) -> Exported:
    samples, which = sample_pictures(config, model, PIXELS[pixels])
    found: list[Checked] = []

    def write(draft: Path) -> None:
        checked = MODELS[target](model, samples, draft)
        found.append(checked)
        label_files.write_json(draft / "model.json", model_facts(model, checked, samples))

    atomic.write_folder(out, write)
    return Exported(out, f"run on {len(samples)} {which}: answers differ from ours by at most {found[0].difference:.2g}")


def sample_pictures(config: Config, model: Model, kind: torch.dtype) -> tuple[Tensor, str]:
    """Some of the run's own samples, or made ones where its data cannot be opened here; and which of them, in words."""
    if model.backbone is not None:
        return _framed_pictures(config, model.backbone.sight.frame, kind)
    try:
        images = _as_trained(rows_for(to_look_at(config)).data.images, model, config)
        chosen = images[torch.linspace(0, len(images) - 1, min(SAMPLES, len(images))).long()]
        which = "samples of the run's data"
    except ToolError:
        generator = torch.Generator().manual_seed(0)
        chosen = torch.randint(256, (SAMPLES, *model.shape), generator=generator)
        which = "made samples (the run's data cannot be opened here)"
    return chosen.to(torch.float32 if len(model.shape) != 3 else kind), which


def _framed_pictures(config: Config, frame: Frame, kind: torch.dtype) -> tuple[Tensor, str]:
    """Some of the run's pictures as its backbone sees them, or made ones."""
    try:
        return framed_samples(to_look_at(config), frame, FRAMED).to(kind), "pictures of the run's data"
    except ToolError:
        made = torch.randint(256, (FRAMED, 3, frame.height, frame.width), generator=torch.Generator().manual_seed(0))
        return made.to(kind), "made samples (the run's data cannot be opened here)"


def _probabilities(path: Path, config: Config, ids: Sequence[str]) -> np.ndarray:
    """Mean softmax (N, K) of the run's networks on the rows they were trained on, in the order of `ids` (N,)."""
    data = rows_for(to_look_at(config)).data
    place = {name: row for row, name in enumerate(data.ids)}
    gone = [name for name in ids if name not in place]
    if gone:
        raise ToolError(
            f'{config.data.source}: {len(gone)} of the run\'s {len(ids)} samples are no longer there, such as "{gone[0]}", and '
            f"probabilities need them all; put them back, or train anew"
        )
    same = tuple(ids) == tuple(data.ids)
    images = data.images if same else data.images[torch.tensor([place[name] for name in ids])]
    model = load_model(path, torch.device("cpu"))
    probs: np.ndarray = model.mean_shares(_as_trained(images, model, config)).double().numpy()
    return probs / probs.sum(1, keepdims=True)


def _as_trained(images: Tensor, model: Model, config: Config) -> Tensor:
    """The samples, or a `ToolError` where they were exchanged for others that the model cannot look at."""
    if tuple(images.shape[1:]) != model.shape:
        raise ToolError(
            f"{config.data.source}: its samples are {tuple(images.shape[1:])} now, and it was trained on {model.shape}; put "
            f"the old ones back, or train anew"
        )
    return images
