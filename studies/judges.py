"""Which prototypes judge better than the mixture that teaches them? One run, many judges beside it, all on the same evidence.

`python -m studies.judges DATA --out RUN --table FILE.csv` trains (or goes on with) a run and lets every variant
learn from each epoch's evidence, without any say in the training. Measured on the training set are the AUC of clean against wrong
labels and how right the tenth is that a judge ranks first; the test set is not looked at.
"""

import csv
import io
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from labelsieve.benchmark.against_cleanlab import check_some_wrong, right_labels
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.errors import UsageError, suggest
from labelsieve.methods.contract import Verdict
from labelsieve.methods.dividemix import PEERS
from labelsieve.methods.epochs import Epoch
from labelsieve.methods.parts.cleaners import MixtureCleaner, PrototypeCleaner
from labelsieve.methods.parts.diagnostics import auc
from labelsieve.methods.parts.streams import WEAK_FEATURES
from labelsieve.runs import atomic
from labelsieve.terminal.console import as_command, check_new, console
from labelsieve.terminal.training import line, opened
from labelsieve.train.loop import each_epoch
from labelsieve.train.run import Run
from studies.known import check_every_row
from studies.ranking import head

# name -> settings of the judge, and of what it is taught and shown
VARIANTS: dict[str, dict[str, Any]] = {
    "ruled (linear, d 128, plain features, 1 pass)": {},
    "class-agnostic teacher": {"per_class": False},
    "class-aware teacher": {"per_class": True},
    "class-aware teacher, losses ranged over each class": {"per_class": True, "own_range": True},
    "2 layers": {"depth": 2},
    "cosine, scale 10": {"cosine": 10.0},
    "unit features": {"unit": True},
    "3 passes": {"passes": 3},
    "alpha 1": {"alpha": 1.0},
    "lr / 10": {"lr": 0.002},
    "features of weak views": {"weak": True},
    "mean of the last 5 scores": {"memory": 5},
    "taught by its own network's mixture": {"own": True},
    "judges before it learns": {"first": True},
    "teacher at 0.9": {"threshold": 0.9},
    "teacher at 0.99": {"threshold": 0.99},
}


TEACHER = "the teacher: mixture over the losses"


def chosen(words: Sequence[str]) -> list[str]:
    """The variants that begin with any of these words, in their own order; all of them without words."""
    for word in words:
        if not any(name.startswith(word) for name in VARIANTS):
            raise UsageError(f'--judge "{word}": no judge begins so{suggest(word, VARIANTS)}; there are: {", ".join(VARIANTS)}')
    return [name for name in VARIANTS if not words or name.startswith(tuple(words))]


class Shadow:
    """One variant for both networks."""

    def __init__(self, name: str, settings: dict[str, Any], run: Run) -> None:
        self.name = name
        self.per_class = settings.get("per_class")
        self.unit, self.weak = settings.get("unit", False), settings.get("weak", False)
        self.own, self.first = settings.get("own", False), settings.get("first", False)
        self.threshold = settings.get("threshold")  # None: the run's own
        known = {key: settings[key] for key in ("depth", "cosine", "passes", "alpha", "lr") if key in settings}
        base: dict[str, Any] = {"dim": run.config.cleaning.dim, "lr": run.config.training.lr, "batch": run.config.training.batch}
        memory = run.config.cleaning.mixture_memory or 1
        own_range = settings.get("own_range", False)
        self.teachers = [MixtureCleaner(bool(self.per_class), memory, own_range=own_range) for _ in PEERS]
        self.judges = [PrototypeCleaner(**(base | known), seed=100 + r) for r, _ in PEERS]
        self.scores: list[deque[Tensor]] = [deque(maxlen=settings.get("memory", 1)) for _ in PEERS]
        capture = getattr(run.parts.engine, "captured_pass", None)
        if capture is not None and run.parts.engine.device.type == "cuda":
            for judge in self.judges:
                judge.prepare = capture

    def watch(self, verdict: Verdict, weak: Sequence[Tensor], threshold: float) -> list[Tensor]:
        """Learn from the verdict as the run's own prototypes do, then judge: the scores (N,) of each network."""
        threshold = threshold if self.threshold is None else self.threshold
        by_loss = list(verdict.opinions["loss"])
        if self.per_class is not None:
            for teacher, seen in zip(self.teachers, verdict.seen):
                teacher.learn(seen)
            by_loss = [teacher.judge(seen) for teacher, seen in zip(self.teachers, verdict.seen)]
        found = []
        for r, peer in PEERS:
            seen = replace(verdict.seen[r], features=self._features(verdict.seen[r].features))
            judge, clean = self.judges[r], by_loss[r if self.own else peer] > threshold
            before = judge.judge(seen) if self.first and judge.learnt_ else None
            judge.learn(seen, clean, self._features(weak[r]) if self.weak else None)
            self.scores[r].append(judge.judge(seen) if before is None else before)
            found.append(torch.stack(list(self.scores[r])).mean(0))
        return found

    def _features(self, features: Tensor) -> Tensor:
        return torch.nn.functional.normalize(features, dim=1) * features.shape[1] ** 0.5 if self.unit else features


class Study:
    """All variants beside one run; a row of the table for each of them and each epoch."""

    def __init__(self, run: Run, table: Path, judges: Sequence[str] = tuple(VARIANTS)) -> None:
        check_some_wrong(run.rows)
        self.run, self.path = run, table
        self.right = right_labels(run.rows).to(run.parts.engine.device)
        self.shadows = [Shadow(name, VARIANTS[name], run) for name in judges]
        self.rows: list[dict[str, Any]] = []
        self.weak = self._weak_features(run.epoch)

    def watch(self, epoch: Epoch) -> None:
        verdict = epoch.verdict
        if verdict is not None:
            self._add(epoch, TEACHER, verdict.opinions["loss"])
            for shadow in self.shadows:
                self._add(epoch, shadow.name, shadow.watch(verdict, self.weak, verdict.thresholds["loss"]))
            self._write()  # after every epoch: a study that is killed has measured something all the same
        # An epoch is shown after its training, and its evidence is from before: weak views are looked at an epoch ahead.
        self.weak = self._weak_features(epoch.index + 1)

    def _weak_features(self, epoch: int) -> list[Tensor]:
        """Of each network as it stands, before it trains in this epoch; none of one that divides nothing."""
        method, look = self.run.parts.method, self.run.parts.engine
        if not method.c.warmup <= epoch <= method.training.epochs or not any(shadow.weak for shadow in self.shadows):
            return []
        return [look.evidence(net, None, "weak", method.stream(WEAK_FEATURES, epoch, net)).features for net in method.nets]

    def _add(self, epoch: Epoch, name: str, scores: Sequence[Tensor]) -> None:
        found = [auc(each, self.right) for each in scores]
        known = [value for value in found if value is not None]
        mean = sum(known) / len(known) if known else None
        right = self.right.cpu().numpy()
        tenth = sum(head(each.cpu().numpy(), right, 0.1) for each in scores) / len(scores)
        facts = {"auc": mean, "first": found[0], "second": found[1], "tenth": tenth}
        self.rows.append({"epoch": epoch.index + 1, "judge": name} | facts)

    def _write(self) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, ("epoch", "judge", "auc", "first", "second", "tenth"))
        writer.writeheader()
        writer.writerows(self.rows)
        atomic.write_text(self.path, text.getvalue())

    def table(self, last: int = 5) -> list[tuple[str, float, float, float]]:
        """(judge, mean AUC over the last epochs, its difference from the teacher's, right of the first tenth), best first."""
        epochs = sorted({row["epoch"] for row in self.rows})[-last:]
        means: dict[str, list[float]] = {}
        for name in dict.fromkeys(row["judge"] for row in self.rows):
            lines = [row for row in self.rows if row["judge"] == name and row["epoch"] in epochs]
            means[name] = [sum(row[key] for row in lines) / len(lines) for key in ("auc", "tenth")]
        teacher = means[TEACHER][0]
        return sorted(((name, area, area - teacher, tenth) for name, (area, tenth) in means.items()), key=lambda row: -row[1])


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`.")],
    out: Annotated[Path, typer.Option(help="The run folder; made, or gone on with.")],
    table: Annotated[Path, typer.Option(help="The CSV file to write, every epoch's AUC of every judge; it must not exist.")],
    preset: Annotated[str | None, typer.Option(help="A named group of settings.")] = None,
    noise: Annotated[str | None, typer.Option(help="Wrong labels to make on purpose.")] = None,
    until: Annotated[int, typer.Option(help="Stop after this epoch; `labelsieve resume` goes on without the study.")] = 10**9,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting.")] = None,
    judge: Annotated[
        list[str] | None, typer.Option(help="Only judges whose names begin so; repeat. All of them take most of an epoch.")
    ] = None,
) -> None:
    """Train a run with judges beside it, and print how they rank."""
    check_new("--table", table)
    judges = chosen(judge or ())
    config: Config = resolve(data, named=preset, options={"data.noise": noise}, settings=settings or ())
    check_every_row(config)
    run = opened(out, config, resume=True)
    first = max(run.epoch, run.parts.method.c.warmup) + 1
    if run.done:
        raise UsageError(f"{out}: this run is done, so no judge can learn beside it; name another --out")
    if until < first:
        raise UsageError(f"--until {until}: the next epoch that judges can learn from is {first}; stop after that one or later")
    study = Study(run, table, judges)
    for step in each_epoch(run, stop=lambda: run.epoch >= until, watch=study.watch):
        console.print(line(step))
    console.print("AUC     against the teacher, right of the first tenth, judge; mean of the last epochs")
    for name, value, gain, tenth in study.table():
        console.print(f"{value:.4f}  {gain:+.4f}  {tenth:.3f}  {name}")


if __name__ == "__main__":
    as_command(main)
