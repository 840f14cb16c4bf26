"""Checkpoints: everything a run needs to go on, as tensors (safetensors) and numbers (JSON). No pickle, ever.

`checkpoint/epoch-000012/` holds `state.safetensors` and `state.json`; the folder appears in one move, so a checkpoint that
can be seen is whole. The one before it is removed only afterwards.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from labelsieve.errors import ToolError
from labelsieve.runs import atomic

FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """`epoch` epochs are done; `tensors` is all state by flat name; `facts` are the small things beside it."""

    epoch: int
    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write it as the newest one; what stood there before goes afterwards."""
    suffix = "-done" if checkpoint.facts.get("done") else ""
    target = folder / f"epoch-{checkpoint.epoch:06d}{suffix}"
    before = [path for path in folder.glob("epoch-*") if path != target]
    if target.exists():  # the same epoch again, after a resume: by construction the same content
        return
    facts = {"format": FORMAT, "epoch": checkpoint.epoch, **checkpoint.facts}
    tensors = {name: value.detach().cpu().contiguous() for name, value in checkpoint.tensors.items()}

    def write(draft: Path) -> None:
        save_file(tensors, draft / "state.safetensors")
        (draft / "state.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")

    atomic.write_folder(target, write)
    for path in before:
        shutil.rmtree(path, ignore_errors=True)


def load(folder: Path) -> Checkpoint:
    """The newest checkpoint, or a `ToolError` that says what is missing or broken."""
    found = sorted(folder.glob("epoch-*")) if folder.is_dir() else []
    if not found:
        raise ToolError(f"{folder}: no checkpoint is left in this run, so it cannot go on; start a new run with --out elsewhere")
    newest = found[-1]
    try:
        facts = json.loads((newest / "state.json").read_text(encoding="utf-8"))
        tensors = load_file(newest / "state.safetensors")
        if facts["format"] > FORMAT:
            raise ToolError(f"{newest}: written by a newer labelsieve; upgrade labelsieve to go on with this run")
        return Checkpoint(facts.pop("epoch"), tensors, facts)
    except FileNotFoundError as error:
        raise ToolError(
            f"{newest}: {Path(error.filename or '').name or 'a file'} is missing; the checkpoint was half deleted"
        ) from None
    except (json.JSONDecodeError, SafetensorError, KeyError, TypeError, OSError) as error:
        raise ToolError(f"{newest}: the checkpoint is damaged ({type(error).__name__}); restore it or start a new run") from None


def pack(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """One flat table of several: {"first": {"a": t}} -> {"first.a": t}, cloned so that shared memory cannot tie entries."""
    return {f"{name}.{key}": torch.clone(value) for name, table in parts.items() for key, value in table.items()}
