"""labelsieve against cleanlab, with the same data, noise and network: rankings of the wrong labels, time and memory.

cleanlab gets probabilities from K folds of a network or a head (`comparators`), labelsieve trains as it does. Each
works in a process of its own, so that peak memory is its own. True labels are looked at only after both have answered.
"""

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from sklearn.metrics import average_precision_score
from torch import Tensor

from labelsieve.benchmark.comparators import COMPARATORS
from labelsieve.config.schema import Config, override
from labelsieve.corrected.apply import automatic
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError
from labelsieve.methods.contract import Verdict
from labelsieve.methods.epochs import FINAL, Epoch
from labelsieve.results.outcome import label_issues, remember
from labelsieve.runs.rows import Rows, rows_for
from labelsieve.train.loop import each_epoch, early_noise
from labelsieve.train.run import Run
from labelsieve.train.start import start


def right_labels(rows: Rows) -> Tensor:
    """(N,) which given labels are the true ones, on the host."""
    if rows.truth is None:
        raise ToolError(
            "the true labels are not known, so there is nothing to measure; make noise on purpose with --noise sym:0.2"
        )
    return rows.truth.labels == rows.data.labels


def wrong_labels(rows: Rows) -> np.ndarray:
    """(N,) the others."""
    return (~right_labels(rows)).numpy()


def check_some_wrong(rows: Rows) -> None:
    """Of labels that are all right there is no ranking to measure: its average precision would read 0."""
    if not wrong_labels(rows).any():
        raise ToolError("no label is wrong here, so there is nothing to rank; make noise on purpose with --noise sym:0.2")


def average_precision(score: np.ndarray, wrong: np.ndarray) -> float:
    """Area under precision over recall of the wrong labels, most suspicious first; equal scores count as one step."""
    return float(average_precision_score(wrong, -score))


def recall_at_true_count(score: np.ndarray, wrong: np.ndarray) -> float:
    """The share of all wrong labels among the first so many as there are wrong ones; here also the precision there."""
    return share_among_first(score, wrong, int(wrong.sum()))


def share_among_first(score: np.ndarray, hit: np.ndarray, count: int) -> float:
    """How many of the first `count`, lowest score first, are hits.

    Of equal scores at the end of these, as many count as an order by chance would have there on average.
    """
    last = np.partition(score, count - 1)[count - 1]
    before, level = score < last, score == last
    return float((hit[before].sum() + (count - before.sum()) * hit[level].mean()) / count)


FOLD_WORDS = {"same": "the run's own network", "cnn": "a three-convolution CNN", "logistic": "logistic regression"}
FIRST = (50, 100, 200)  # labels of the list, of which a run says how many are wrong

# cleanlab's own ways to score a label; the first is its default.
CLEANLAB_SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


@dataclass(frozen=True)
class Task:
    """What both are given. `budget` (of `Watch.spent`) bounds labelsieve; None lets it train as configured."""

    config: Config
    folds: int = 5
    fold_epochs: int | None = None  # None: as many as the network for the folds usually gets
    folds_network: str = "same"  # one of COMPARATORS
    budget: float | None = None


@dataclass(frozen=True)
class Ranking:
    """How one of them did: shares of 1, seconds without imports and opening the data, MiB of the whole process."""

    average_precision: float
    best_score: float  # average precision of the best of its scores, chosen with the true labels: a bound, not a method
    recall: float  # at the true number of wrong labels
    seconds: float
    cpu_seconds: float
    spent: float  # what a budget counts: CPU seconds on a CPU, seconds on other devices
    peak_mib: float
    flagged_precision: float | None  # of the labels it calls wrong, how many are
    flagged_recall: float | None  # of the wrong ones, how many it calls so
    other: dict[str, Any] = field(default_factory=dict)


def compare(task: Task, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Both in turn; with `quick`, labelsieve may spend no more time than the K-fold training did."""
    say(f"seed {task.config.seed}: cleanlab, {task.folds} folds of {FOLD_WORDS[task.folds_network]}")
    theirs = in_child(by_cleanlab, task)
    say(f"  average precision {theirs.average_precision:.4f}, {theirs.spent:.1f} s spent; labelsieve")
    ours = in_child(by_labelsieve, replace(task, budget=theirs.spent if quick else None))
    say(f"  average precision {ours.average_precision:.4f}, {ours.spent:.1f} s spent")
    return {"seed": task.config.seed, "cleanlab": asdict(theirs), "labelsieve": asdict(ours)}


def in_child(work: Callable[[Task], Ranking], task: Task) -> Ranking:
    """The work in a fresh process of its own, which ends when this one is told to."""
    others = set(active_children())
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        try:
            return pool.submit(work, task).result()
        except BrokenProcessPool:
            raise ToolError(
                "the process that measured was ended from outside, perhaps for want of memory; use fewer samples"
            ) from None
        except KeyboardInterrupt:  # sent to this process alone: the pool would wait until the work is done
            for child in set(active_children()) - others:
                child.terminate()
            raise


def end_with_parent() -> None:
    """A signal that ends the parent, such as a scheduler's, does not reach its child, which would train on for nobody."""

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def by_cleanlab(task: Task) -> Ranking:
    """cleanlab's ranking of the given labels, from out-of-sample probabilities of our network."""
    try:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        raise ToolError('cleanlab is not installed: pip install "labelsieve[compare]"') from None
    rows = rows_for(task.config)
    wrong = wrong_labels(rows)
    watch = Watch(choose_device(task.config.device))
    probs = out_of_sample(task, rows).numpy()
    labels = rows.data.labels.numpy()
    scores = {name: get_label_quality_scores(labels, probs, method=name) for name in CLEANLAB_SCORES}
    flagged = find_label_issues(labels, probs, n_jobs=1)  # its worker processes need a parent that was not spawned itself
    return watch.ranking(scores, flagged, wrong, {})


def out_of_sample(task: Task, rows: Rows) -> Tensor:
    """Shares (N, K), float64, of every row by what has not seen it."""
    probs = COMPARATORS[task.folds_network](task.config, rows, task.folds, task.fold_epochs).double()
    return probs / probs.sum(1, keepdim=True)


def by_labelsieve(task: Task) -> Ranking:
    """labelsieve's ranking, as it stands in issues.csv; measuring on test pictures, which is no part of it, is left out."""
    config = task.config if task.budget is None else override(task.config, {"training.quick": True})
    with TemporaryDirectory() as home:
        rows = replace(rows_for(config), test=None)
        wrong = wrong_labels(rows)
        watch = Watch(choose_device(config.device))
        run = start(Path(home) / "run", config, rows=rows)
        last = last_division(run, task.budget, watch.spent)
        noise = run.parts.noise(last, early_noise(run.metrics))
        issues = label_issues(last, run.rows.data, run.parts.method, run.history, None, noise, run.parts.held)
        place = np.empty(len(issues.order))
        place[issues.order] = np.arange(len(place))  # ties are broken as in the list the user reads
        plain = last.chance.cpu().numpy()
        found = watch.ranking({"label_score": place, "last chance": plain}, issues.is_issue, wrong, {"epochs": run.epoch})
        return replace(found, other=found.other | told(run, wrong)) if run.done else found


def told(run: Run, wrong: np.ndarray) -> dict[str, Any]:
    """What a finished run says of the share and of the first labels, beside the truth, and what `apply --auto` would make of it.

    A run that says it cannot know has no interval, and `--auto` is refused there.
    """
    found, truth = run.found, run.rows.truth
    assert truth is not None
    share, expected = found.share, found.expected
    try:
        corrections, refused = automatic(run.home, found), False
    except ToolError:
        corrections, refused = {}, True
    classes, place = run.rows.data.classes, {name: row for row, name in enumerate(run.rows.data.ids)}
    true = truth.labels.numpy()
    right = sum((classes[true[place[name]]] == one.label) - int(not wrong[place[name]]) for name, one in corrections.items())
    counts = [count for count in FIRST if count <= len(wrong) and share.known]
    return {
        "interval": [share.low, share.share, share.high] if share.known else None,
        "yield": [[count, *expected.at(count)[1:], int(wrong[found.order[:count]].sum())] for count in counts],
        "auto": {"refused": refused, "corrections": len(corrections)},
        "right_before": 1 - float(wrong.mean()),
        "right_after": 1 - float(wrong.mean()) + right / len(wrong),
    }


def last_division(run: Run, budget: float | None, clock: Callable[[], float]) -> Verdict:
    """Train to the end, or as far as fits into `budget` on the clock, and divide. Who judges beside the networks comes first."""
    seen: list[Epoch] = []
    _ = run.parts.held
    times = [clock()]

    def late() -> bool:
        """Would another epoch, were it as long as the longest so far, and a division go beyond the budget?"""
        times.append(clock())
        longest = max(after - before for before, after in pairwise(times))
        return budget is not None and times[-1] + 1.2 * longest > budget

    for _ in each_epoch(run, stop=late, watch=lambda epoch: seen.append(epoch)):
        del seen[:-1]
    if not run.done:
        seen = [Epoch(run.epoch, FINAL, (), run.parts.method.verdict(run.parts.engine))]
        remember(run.history, seen[0])
    verdict = seen[-1].verdict
    assert verdict is not None
    return verdict


class Watch:
    """Counts from when it is made: seconds, CPU seconds, and `spent`, that of them which other programs disturb least."""

    def __init__(self, device: torch.device) -> None:
        self.began, self.cpu_began, self.on_cpu = time.perf_counter(), time.process_time(), device.type == "cpu"

    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def cpu_seconds(self) -> float:
        return time.process_time() - self.cpu_began

    def spent(self) -> float:
        """On a CPU that others use as well, seconds say little about the work; on an idle one both are the same."""
        return self.cpu_seconds() if self.on_cpu else self.seconds()

    def ranking(self, scores: dict[str, np.ndarray], flagged: np.ndarray, wrong: np.ndarray, other: dict[str, Any]) -> Ranking:
        """Stop the watch, then measure: the first score is the tool's own choice."""
        seconds, cpu, spent = self.seconds(), self.cpu_seconds(), self.spent()
        both = int((flagged & wrong).sum())
        found = {name: average_precision(score, wrong) for name, score in scores.items()}
        first = next(iter(scores.values()))
        return Ranking(
            next(iter(found.values())),
            max(found.values()),
            recall_at_true_count(first, wrong),
            seconds,
            cpu,
            spent,
            peak_mib(),
            both / int(flagged.sum()) if flagged.any() else None,
            both / int(wrong.sum()) if wrong.any() else None,
            other | {"flagged": int(flagged.sum()), "wrong": int(wrong.sum()), "samples": len(wrong), "scores": found},
        )


def means(found: list[dict[str, Any]]) -> dict[str, float]:
    """Over rows, of every figure that is always known."""
    names = ("average_precision", "best_score", "recall", "seconds", "cpu_seconds", "peak_mib")
    return {name: sum(each[name] for each in found) / len(found) for name in names}


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """In words: how much of cleanlab's error is left, every row that is lost, how often what was said held, what --auto did."""
    ours, theirs = ([row[tool]["average_precision"] for row in rows] for tool in ("labelsieve", "cleanlab"))
    left = (len(rows) - sum(ours)) / max(len(rows) - sum(theirs), 1e-12)
    said = [row["labelsieve"]["other"] for row in rows if "interval" in row["labelsieve"]["other"]]
    known = [one for one in said if one["interval"] is not None]
    held = [one for one in known if one["interval"][0] <= 1 - one["right_before"] <= one["interval"][2]]
    firsts = [first for one in known for first in one["yield"]]
    met = [first for first in firsts if first[1] <= first[3] <= first[2]]
    worse = [one for one in said if one["right_after"] < one["right_before"]]
    return [
        f"of cleanlab's error (1 - average precision, its default score) labelsieve leaves {left:.2f}",
        lost(rows),
        f"the interval held the truth in {len(held)} of {len(known)} rows; no percentage in {len(said) - len(known)}",
        f"the yield held in {len(met)} of {len(firsts)}",
        f"after apply --auto fewer labels were right in {len(worse)} of {len(said)}",
    ]


def lost(rows: list[dict[str, Any]]) -> str:
    """In words: the rows in which labelsieve ranks no better than cleanlab's default score, or than the best of its scores."""

    def named(score: str) -> str:
        theirs = [row for row in rows if row["labelsieve"]["average_precision"] <= row["cleanlab"][score]]
        return f"{len(theirs)} of {len(rows)}" + (f" ({', '.join(map(name_of, theirs))})" if theirs else "")

    return (
        f"lost rows: {named('average_precision')}; to the best of cleanlab's scores, chosen with the truth: {named('best_score')}"
    )


def name_of(row: dict[str, Any]) -> str:
    return " ".join(str(row[name]) for name in ("data", "size", "noise") if row.get(name) is not None) + f" seed {row['seed']}"


def peak_mib() -> float:
    """The most memory this process has held. Linux keeps it by program; getrusage would count the parent's as well."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
