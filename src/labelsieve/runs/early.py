"""early_losses.npz: every sample's loss at the end of the warm-up, which is where the paper looks at loss distributions.

`loss` (2, N) by network, `given` (N,), `classes` (K,) and, where true labels are known, `wrong` (N,).
"""

from dataclasses import dataclass

import numpy as np
import torch

from labelsieve.data.noisy_data import NoisyData, Truth
from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError
from labelsieve.method.algorithm import Epoch
from labelsieve.runs.folder import RunFolder


@dataclass(frozen=True, eq=False)
class EarlyLosses:
    """Row i belongs to sample i; `wrong` is for measuring, and there is none where nobody knows what is true."""

    loss: np.ndarray
    given: np.ndarray
    classes: tuple[str, ...]
    wrong: np.ndarray | None


def write_early_losses(folder: RunFolder, epoch: Epoch, data: NoisyData, truth: Truth | None) -> None:
    """`epoch` is the first one that divides: what it has seen is what the warm-up left."""
    arrays = {
        "loss": torch.stack([seen.losses for seen in epoch.seen]).cpu().numpy().astype(np.float32),
        "given": data.labels.numpy(),
        "classes": np.array(data.classes),
    }
    if truth is not None:
        arrays["wrong"] = (truth.labels != data.labels).numpy()
    folder.write_arrays(folder.early_losses, arrays)


def read_early_losses(folder: RunFolder) -> EarlyLosses:
    if not folder.early_losses.is_file():
        raise ToolError(
            f"{folder.early_losses}: missing; the run has not finished its warm-up, or was made before runs kept these losses"
        )
    found = read_npz(folder.early_losses)
    missing = [key for key in ("loss", "given", "classes") if key not in found]
    if missing:
        raise ToolError(f"{folder.early_losses}: {', '.join(missing)} missing; the file was changed: put it back")
    return EarlyLosses(found["loss"], found["given"], tuple(found["classes"].tolist()), found.get("wrong"))
