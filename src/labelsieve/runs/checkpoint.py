"""Checkpoints: everything a run needs to go on, as tensors (safetensors) and numbers (JSON). No pickle, ever.

`checkpoint/epoch-000012/` holds `state.safetensors` and `state.json`; the folder appears in one move, so a checkpoint that
can be seen is whole. The one before it is removed only afterwards.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from safetensors.torch import save as as_bytes
from torch import Tensor

from labelsieve import run_files
from labelsieve.doors import Damage, reading
from labelsieve.errors import ToolError
from labelsieve.run_files import STATE as STATE_SHAPE
from labelsieve.run_files import check
from labelsieve.runs import atomic
from labelsieve.runs.folder import epoch_of, refuse_other_folder

FILE_BYTES = 15 * 2**20
MOMENTUM = re.compile(r"\w+\.((optimiser|judge\d?)\.)?momentum\.\d+")  # ours; networks of users may have parts called so
FORMAT = 1
REAL = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
DTYPES = (*REAL, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
STATE = "state.safetensors"


def read_tensors(file: Path, top: Path | None = None) -> dict[str, Tensor]:
    """By name. They are mapped and not copied, from the file that was opened and examined."""
    with run_files.open_file(file, top) as opened:
        again = Path(f"/proc/self/fd/{opened.fileno()}")  # the library opens files by their names only
        found = load_file(again if again.exists() else file)
    odd = next((value.dtype for value in found.values() if value.dtype not in DTYPES), None)
    if odd is not None:
        raise Damage(f"it holds {odd}".replace("torch.", ""))
    return found


def slim(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without momenta and history; matrices and larger in float16, vectors and statistics as they are."""
    kept = {name: value for name, value in tensors.items() if not MOMENTUM.fullmatch(name) and not name.startswith("history.")}
    return {name: _rounded(value) for name, value in kept.items()}


def _rounded(value: Tensor) -> Tensor:
    if not value.is_floating_point() or value.ndim < 2:
        return value
    return value.half() if float(value.abs().max()) < torch.finfo(torch.float16).max else value.float()


def shards(tensors: Mapping[str, Tensor], limit: int = FILE_BYTES) -> Iterator[dict[str, Tensor]]:
    """The tensors in groups that fit a file each, in order; one larger than a file is cut into rows (`name#0`, `name#1`)."""
    group: dict[str, Tensor] = {}
    for name, value in _cut(tensors, limit):
        if group and _bytes(group) + value.nbytes > limit:
            yield group
            group = {}
        group[name] = value
    yield group


def joined(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The way back: what was cut into rows is whole again, and what was rounded is float32, for nobody computes in float16."""
    whole: dict[str, list[tuple[int, Tensor]]] = {}
    for name, value in tensors.items():
        stem, _, number = name.partition("#")
        whole.setdefault(stem, []).append((int(number or 0), value.float() if value.dtype == torch.float16 else value))
    return {
        stem: pieces[0][1] if len(pieces) == 1 else torch.cat([piece for _, piece in sorted(pieces, key=lambda p: p[0])])
        for stem, pieces in whole.items()
    }


def _cut(tensors: Mapping[str, Tensor], limit: int) -> Iterator[tuple[str, Tensor]]:
    for name, value in tensors.items():
        if value.nbytes <= limit or value.ndim == 0:
            yield name, value
            continue
        rows = max(1, limit * len(value) // value.nbytes)
        for number, piece in enumerate(value.split(rows)):
            yield f"{name}#{number}", piece.contiguous()


def _bytes(group: Mapping[str, Tensor]) -> int:
    return sum(value.nbytes for value in group.values())


@dataclass(frozen=True)
class Checkpoint:
    """`epoch` epochs are done; `tensors` is all state by flat name; `facts` are the small things beside it."""

    epoch: int
    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write it as the newest one; what stood there before goes afterwards."""
    refuse_other_folder(folder)
    suffix = "-done" if checkpoint.facts.get("done") else ""
    target = folder / f"epoch-{checkpoint.epoch:06d}{suffix}"
    if target.exists():  # the same epoch again, after a resume: by construction the same content
        return
    facts = {"format": FORMAT, "epoch": checkpoint.epoch, **checkpoint.facts}
    tensors = {name: value.detach().cpu().contiguous() for name, value in checkpoint.tensors.items()}

    def write(draft: Path) -> None:
        (draft / STATE).write_bytes(as_bytes(tensors))
        (draft / "state.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")

    atomic.write_folder(target, write)
    tidy(folder, target)


def save_slim(folder: Path, checkpoint: Checkpoint) -> None:
    """The same in small files and with less in it (`slim`), beside the full one; the slim one before it is replaced."""
    refuse_other_folder(folder)
    target = folder / f"epoch-{checkpoint.epoch:06d}"
    if target.exists():
        return
    tensors = {name: value.detach().cpu().contiguous() for name, value in slim(checkpoint.tensors).items()}
    groups = list(shards(tensors))
    facts = {"format": FORMAT, "epoch": checkpoint.epoch, **checkpoint.facts, "slim": len(groups)}

    def write(draft: Path) -> None:
        for number, group in enumerate(groups):
            (draft / f"part-{number:02d}.safetensors").write_bytes(as_bytes(group))
        (draft / "state.json").write_text(json.dumps(facts), encoding="utf-8")

    atomic.write_folder(target, write)
    tidy(folder, target)


def _read_slim(newest: Path, count: int) -> dict[str, Tensor]:
    """All parts that were written: of one that was not copied, cleaners would begin anew without a word."""
    tensors: dict[str, Tensor] = {}
    for number in range(count):
        tensors |= _tensors(newest / f"part-{number:02d}.safetensors")
    return joined(tensors)


def _tensors(file: Path) -> dict[str, Tensor]:
    return read_tensors(file, file.parents[2])


def tidy(folder: Path, keep: Path | None = None) -> None:
    """Remove all checkpoints but one, the newest unless another is named."""
    refuse_other_folder(folder)
    keep = keep or max(folder.glob("epoch-*"), default=None)
    for path in folder.glob("epoch-*"):
        if path != keep:
            shutil.rmtree(path, ignore_errors=True)


def load(folder: Path) -> Checkpoint:
    """The newest checkpoint, or a `ToolError` that says what is missing or broken."""
    refuse_other_folder(folder)
    found = sorted(folder.glob("epoch-*")) if folder.is_dir() else []
    if not found:
        raise ToolError(
            f"{folder}: no checkpoint is left in this run, so it cannot be resumed; start a new run with --out elsewhere"
        )
    return _read(found[-1])


def _read(newest: Path) -> Checkpoint:
    with reading(newest, "restore the checkpoint or start a new run"):
        try:
            facts = json.loads(run_files.text(newest / "state.json", newest.parents[1]))
            check(facts, STATE_SHAPE, "state.json")
            tensors = _read_slim(newest, facts["slim"]) if facts.get("slim") else _tensors(newest / STATE)
        except FileNotFoundError as error:
            raise ToolError(
                f"{newest}: {Path(error.filename or '').name or 'a file'} is missing, so the checkpoint was half copied or "
                f"half deleted; put it back, or start a new run with --out elsewhere"
            ) from None
        if facts["format"] > FORMAT:
            raise ToolError(f"{newest}: written by a newer labelsieve; upgrade labelsieve to continue this run")
        last = max((line["epoch"] for line in facts.get("metrics", ())), default=facts["epoch"])
        if not facts["epoch"] == last == epoch_of(newest):
            raise Damage(f"state.json is of epoch {facts['epoch']}, and its metrics end with {last}")
        if len(facts.get("values", (0, 0))) != 2:
            raise Damage("its values are not two numbers")
        return Checkpoint(facts.pop("epoch"), tensors, facts)


def pack(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """One flat table of several: {"first": {"a": t}} -> {"first.a": t}, cloned so that shared memory cannot tie entries."""
    return {f"{name}.{key}": torch.clone(value) for name, table in parts.items() for key, value in table.items()}
