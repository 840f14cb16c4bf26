"""What a run keeps for figures and comparisons: early_losses.npz and predictions.npz.

early_losses.npz: every sample's loss at the end of the warm-up, which is where the paper looks at loss distributions. By network,
for what it judged there: `loss` and `given` (2, M) and, where true labels are known, `wrong` (2, M); `classes` (K,).
predictions.npz: of each test picture `label` (M,), `top` (M, 5 at most) of both networks together, `first`, `second` and, once
they have learnt, `prototypes` (M,); and `test_set`, a hash that tells test sets apart.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labelsieve.data.noisy_data import Held, NoisyData, Truth
from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError, command
from labelsieve.methods.contract import Verdict
from labelsieve.methods.parts.diagnostics import NAMES, summed
from labelsieve.run_files import is_there
from labelsieve.runs.folder import RunFolder


@dataclass(frozen=True, eq=False)
class EarlyLosses:
    """(2, M) by network; `wrong` is for measuring, and there is none where nobody knows what is true."""

    loss: np.ndarray
    given: np.ndarray
    classes: tuple[str, ...]
    wrong: np.ndarray | None

    @property
    def right(self) -> np.ndarray:
        """(M,) of what the first network judged, where it is known; of a run without draws, every sample."""
        assert self.wrong is not None
        return ~self.wrong[0]


def write_early_losses(folder: RunFolder, verdict: Verdict, data: NoisyData, truth: Truth | None) -> None:
    """`verdict` is the first one: what was seen for it is what the warm-up left."""
    every = torch.arange(len(data))
    rows = [some.cpu() for some in verdict.rows] or [every] * len(verdict.seen)
    arrays = {
        "loss": torch.stack([seen.losses for seen in verdict.seen]).cpu().numpy().astype(np.float32),
        "given": torch.stack([data.labels[some] for some in rows]).numpy(),
        "classes": np.array(data.classes),
    }
    if truth is not None:
        wrong = truth.labels != data.labels
        arrays["wrong"] = torch.stack([wrong[some] for some in rows]).numpy()
    folder.write_arrays(folder.early_losses, arrays)


def read_early_losses(folder: RunFolder) -> EarlyLosses:
    if not is_there(folder.early_losses):
        raise ToolError(
            f"{folder.early_losses}: missing; the run has not finished its warm-up, or was made before runs kept these losses"
        )
    found = read_npz(folder.early_losses, of_run=True)
    missing = [key for key in ("loss", "given", "classes") if key not in found]
    if missing:
        raise ToolError(f"{folder.early_losses}: {', '.join(missing)} missing; the file was changed: put it back")
    return EarlyLosses(found["loss"], found["given"], tuple(found["classes"].tolist()), found.get("wrong"))


TOP = 5
LOOKED_AT = 1000  # pictures that go into a test set's hash, evenly spaced; its labels all do


@dataclass(frozen=True, eq=False)
class Answers:
    """Row i belongs to test picture i of the set that `test_set` names."""

    label: np.ndarray
    top: np.ndarray
    test_set: str

    @property
    def right(self) -> np.ndarray:
        """Where both networks together are right: (M,) bool."""
        found: np.ndarray = self.top[:, 0] == self.label
        return found


def test_set_hash(held: Held) -> str:
    digest = hashlib.sha256(str(tuple(held.images.shape)).encode())
    digest.update(held.labels.cpu().numpy().astype("<i8").tobytes())
    digest.update(held.images[:: max(1, len(held.labels) // LOOKED_AT)].cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def write_answers(folder: RunFolder, logits: Sequence[Tensor], scores: Sequence[Tensor | None], held: Held) -> None:
    """Keep what the networks (M, K) and, once they have learnt, their prototypes (M, K) say of the held pictures."""
    together = summed(logits)
    arrays = {
        "label": held.labels.cpu().numpy(),
        "top": _best(together, min(TOP, together.shape[1])),
        **{name: _best(each, 1)[:, 0] for name, each in zip(NAMES, logits)},
        "test_set": np.array(test_set_hash(held)),
    }
    learnt = [score for score in scores if score is not None]
    if len(learnt) == len(logits):
        arrays["prototypes"] = _best(summed(learnt), 1)[:, 0]
    folder.write_arrays(folder.predictions, arrays)


def _best(scores: Tensor, count: int) -> np.ndarray:
    """The classes (M, count) with the highest scores (M, K), best first; of equal ones the first, as argmax has it."""
    found: np.ndarray = scores.argsort(dim=1, descending=True, stable=True)[:, :count].cpu().numpy().astype(np.int32)
    return found


def read_answers(folder: RunFolder) -> Answers:
    if not is_there(folder.predictions):
        raise ToolError(
            f"{folder.predictions}: missing; the run is not finished, has no test pictures, or was made before runs kept this "
            f"file; {command('resume', folder.path)} finishes it and writes the file"
        )
    found = read_npz(folder.predictions, of_run=True)
    missing = [key for key in ("label", "top", "test_set") if key not in found]
    if missing or len(found["label"]) != len(found["top"]) or not found["top"].shape[1]:
        raise ToolError(f"{folder.predictions}: damaged; delete it, and {command('resume', folder.path)} writes it again")
    return Answers(found["label"], found["top"], str(found["test_set"]))
