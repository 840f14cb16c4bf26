"""early_losses.npz: every sample's loss at the end of the warm-up, which is where the paper looks at loss distributions.

By network, for what it judged there: `loss` and `given` (2, M) and, where true labels are known, `wrong` (2, M); `classes` (K,).
"""

from dataclasses import dataclass

import numpy as np
import torch

from labelsieve.data.noisy_data import NoisyData, Truth
from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError
from labelsieve.methods.contract import Verdict
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
