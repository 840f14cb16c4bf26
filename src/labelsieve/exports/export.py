"""`export_run`: writes a run as a new folder of checked files for another program. Nothing is overwritten."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelsieve.config.moved import moved_to, to_look_at
from labelsieve.config.schema import Config
from labelsieve.data.pictures.framing import Frame
from labelsieve.data.pictures.options import FLAGS
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.exports import label_files, model_files
from labelsieve.exports.album import Album
from labelsieve.exports.sheet import read_sheet
from labelsieve.predict.model import Model, load_model
from labelsieve.runs import atomic
from labelsieve.runs.features import framed_samples
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.own import check_place
from labelsieve.runs.rows import rows_for

MODELS: dict[str, Callable[[Model, Tensor, Path], model_files.Checked]] = {
    "onnx": model_files.onnx_file,
    "torch-export": model_files.torch_export_file,
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
    found: list[model_files.Checked] = []

    def write(draft: Path) -> None:
        checked = MODELS[target](model, samples, draft)
        found.append(checked)
        label_files.write_json(draft / "model.json", model_files.model_facts(model, checked, samples))

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
