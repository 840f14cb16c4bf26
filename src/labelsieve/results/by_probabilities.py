"""What predicted probabilities say of labels by themselves, without features: a ranked list, and how many labels are wrong.

Scores are those of held-out heads (`label_share`), here by somebody else's model. docs/results/cleanlab.md has them beside
cleanlab's.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from labelsieve.issues.table import LabelIssues, rank
from labelsieve.methods.parts.estimate import NoiseEstimate, knows_classes, noise_by
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.heads import HeldOut, label_share

HALF = 0.5


def issues_by_probabilities(
    probs: NDArray[np.floating],
    given: NDArray[np.int64],
    ids: Sequence[str],
    classes: Sequence[str],
    paths: Sequence[str] | None = None,
) -> tuple[LabelIssues, NoiseEstimate]:
    """`probs` (N, K) by a model that has not seen the sample; `given` (N,). Listed are as many as are estimated to be wrong.

    Where the model agrees with labels no more often than luck would, nothing is listed.
    """
    found = estimate_by_probabilities(probs, given)
    shares, labels = torch.from_numpy(probs), torch.from_numpy(given)
    loss = -shares.gather(1, labels.unsqueeze(1)).squeeze(1).double().clamp_min(torch.finfo(torch.float32).tiny).log()
    seen = Evidence(labels, loss, shares, torch.zeros(len(labels), 1))
    issues = rank(
        ids,
        classes,
        given,
        probs,
        label_share(shares, labels).numpy()[None],
        HALF,
        paths=paths,
        evidence={"loss": loss.numpy()},
        most=found.share if knows_classes(seen) else 0.0,
    )
    return replace(issues, alone=True), found


def estimate_by_probabilities(probs: NDArray[np.floating], given: NDArray[np.int64]) -> NoiseEstimate:
    """By one opinion on each sample (`noise_by`)."""
    shares = torch.from_numpy(probs)
    return noise_by(HeldOut(shares, shares.argmax(1)[None], torch.zeros(len(given), 1), "probabilities"), torch.from_numpy(given))
