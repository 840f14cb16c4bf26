"""labelsieve against cleanlab: the same data, noise and network; rankings of the wrong labels, time and memory come out.

cleanlab gets probabilities from K-fold training of one network with plain cross-entropy, labelsieve trains as it does. Each
works in a process of its own, so that peak memory is its own. True labels are looked at only after both have answered.
"""

import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelsieve.benchmark.ranking import average_precision, recall_at_true_count
from labelsieve.data.augment import views_for
from labelsieve.data.noisy_data import Truth
from labelsieve.errors import ToolError
from labelsieve.method.algorithm import Epoch, learn
from labelsieve.method.stages import warm_up
from labelsieve.runs.assemble import Rows, engine_for, learner_for, parts_for, recipe_for, rows_for
from labelsieve.runs.config import Config, override
from labelsieve.runs.outcome import label_issues

# cleanlab's own ways to score a label; the first is its default.
CLEANLAB_SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


@dataclass(frozen=True)
class Task:
    """What both are given. `budget` (seconds) bounds labelsieve; None lets it train as configured."""

    config: Config
    folds: int = 5
    fold_epochs: int = 10
    budget: float | None = None


@dataclass(frozen=True)
class Ranking:
    """How one of them did: shares of 1, seconds without imports and without opening the data, MiB of the whole process."""

    average_precision: float
    recall: float  # at the true number of wrong labels
    seconds: float
    peak_mib: float
    flagged_precision: float | None  # of the labels it calls wrong, how many are
    flagged_recall: float | None  # of the wrong ones, how many it calls so
    other: dict[str, Any] = field(default_factory=dict)


def compare(task: Task, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Both in turn; with `quick`, labelsieve may take no longer than the K-fold training took."""
    say(f"seed {task.config.seed}: cleanlab, {task.folds} folds of {task.fold_epochs} epochs")
    theirs = in_child(by_cleanlab, task)
    say(f"  average precision {theirs.average_precision:.4f}, {theirs.seconds:.1f} s; labelsieve")
    ours = in_child(by_labelsieve, Task(task.config, task.folds, task.fold_epochs, theirs.seconds if quick else None))
    say(f"  average precision {ours.average_precision:.4f}, {ours.seconds:.1f} s")
    return {"seed": task.config.seed, "cleanlab": asdict(theirs), "labelsieve": asdict(ours)}


def in_child(work: Callable[[Task], Ranking], task: Task) -> Ranking:
    """The work in a fresh process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, task).result()


def by_cleanlab(task: Task) -> Ranking:
    """cleanlab's ranking of the given labels, from out-of-sample probabilities of our network."""
    try:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        raise ToolError('cleanlab is not installed: pip install "labelsieve[compare]"') from None
    rows = rows_for(task.config)
    began = time.perf_counter()
    probs = out_of_sample(task, rows).double().numpy()
    labels = rows.data.labels.numpy()
    scores = {name: get_label_quality_scores(labels, probs, method=name) for name in CLEANLAB_SCORES}
    flagged = find_label_issues(labels, probs)
    seconds = time.perf_counter() - began
    wrong = wrong_labels(rows)
    other = {name: average_precision(score, wrong) for name, score in scores.items()}
    return _ranking(scores[CLEANLAB_SCORES[0]], flagged, wrong, seconds, {"average_precision_by_score": other})


def out_of_sample(task: Task, rows: Rows) -> Tensor:
    """Softmax (N, K) of every row by a network that has not seen it: plain cross-entropy on weak views, fold by fold."""
    from sklearn.model_selection import StratifiedKFold

    config = override(task.config, {"method": "ce", "cleaner": "gmm-agn", "training.epochs": task.fold_epochs})
    parts = parts_for(config, rows)  # sets threads and device as a run does
    recipe, data = recipe_for(config), rows.data
    views = views_for(data.shape, rows.collection.mirror, config.views.policy)
    probs = torch.zeros(len(data), len(data.classes))
    splits = StratifiedKFold(task.folds, shuffle=True, random_state=config.seed).split(np.zeros(len(data)), data.labels)
    for number, (taken, held) in enumerate(splits):
        engine = engine_for(config, data.rows(torch.from_numpy(taken)), views, parts.engine.device)
        learner = learner_for(config, rows.collection, recipe, number, parts.engine.device)
        engine.adopt(learner)
        for epoch in range(task.fold_epochs):
            learner.set_lr(recipe.lr_at(epoch))
            warm_up(learner, recipe, epoch, engine)
        probs[held] = engine.predict(learner, engine.place(data.images[held])).logits.softmax(1).cpu()
    return probs


def by_labelsieve(task: Task) -> Ranking:
    """labelsieve's ranking, as it would stand in issues.csv."""
    rows = rows_for(task.config)
    began = time.perf_counter()
    parts = parts_for(task.config, rows)
    last = None
    for epoch in learn(parts.learners, parts.recipe, parts.engine, parts.prior):
        last = epoch
    assert isinstance(last, Epoch)
    issues = label_issues(last, rows.data, parts.recipe)
    seconds = time.perf_counter() - began
    place = np.empty(len(issues.order))
    place[issues.order] = np.arange(len(place))  # ties are broken as in the list the user reads
    return _ranking(place, issues.is_issue, wrong_labels(rows), seconds, {"epochs": parts.recipe.epochs})


def wrong_labels(rows: Rows) -> np.ndarray:
    if rows.truth is None:
        raise ToolError(
            "the true labels are not known, so there is nothing to measure; make noise on purpose with --noise sym:0.2"
        )
    truth: Truth = rows.truth
    return (truth.labels != rows.data.labels).numpy()


def _ranking(score: np.ndarray, flagged: np.ndarray, wrong: np.ndarray, seconds: float, other: dict[str, Any]) -> Ranking:
    both = int((flagged & wrong).sum())
    return Ranking(
        average_precision(score, wrong),
        recall_at_true_count(score, wrong),
        seconds,
        peak_mib(),
        both / int(flagged.sum()) if flagged.any() else None,
        both / int(wrong.sum()) if wrong.any() else None,
        other | {"flagged": int(flagged.sum()), "wrong": int(wrong.sum()), "samples": len(wrong)},
    )


def peak_mib() -> float:
    """The most memory this process has held. Linux keeps it by program; getrusage would count the parent's as well."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
