"""predictions.npz: what the networks say of each test picture as the run stands, so that runs can be compared picture by picture.

`label` (M,), `top` (M, 5 at most) of both networks together, `first`, `second` and, once they have learnt, `prototypes` (M,), and
`test_set`, a hash that tells test sets apart.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from labelsieve.data.noisy_data import Held
from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError, command
from labelsieve.methods.parts.diagnostics import NAMES, summed
from labelsieve.run_files import is_there
from labelsieve.runs.folder import RunFolder

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
    if missing or found["label"].ndim != 1 or found["top"].ndim != 2 or len(found["label"]) != len(found["top"]):
        raise ToolError(f"{folder.predictions}: damaged; delete it, and {command('resume', folder.path)} writes it again")
    return Answers(found["label"], found["top"], str(found["test_set"]))
