"""Which score ranks wrong labels best? One training a setting, all candidate scores on what it left behind.

`python -m labelsieve.benchmark.scores_study DATA --noise SPEC --out DIR` trains with noise made on purpose, keeps what both
networks and their prototypes said after every epoch (`trail-*.npz`), and ranks every candidate by average precision.
A trail that is there is not trained again. The test set is not looked at.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from labelsieve.benchmark.ranking import average_precision, ranks, recall_at_true_count
from labelsieve.data.npz import read_npz
from labelsieve.method.algorithm import Epoch
from labelsieve.runs import atomic
from labelsieve.runs.train import Run


@dataclass(frozen=True)
class Trail:
    """What a run said of every given label, epoch by epoch: (S, 2, N), warm-up epochs first (their chances are 1)."""

    share: np.ndarray  # softmax share of the given label
    margin: np.ndarray  # that share less the largest other one, scaled to [0, 1]
    by_loss: np.ndarray
    by_prototype: np.ndarray
    prototype_share: np.ndarray  # softmax over the prototypes' scores, of the given label
    divided: np.ndarray  # (S,) bool: not a warm-up epoch
    seconds: np.ndarray  # (S,) since the start, when the row was known
    wrong: np.ndarray  # (N,) bool

    def until(self, epochs: int) -> "Trail":
        """As if the run had ended after so many rows."""
        columns = {name: value if name == "wrong" else value[:epochs] for name, value in vars(self).items()}
        return Trail(**columns)


class Watch:
    """Collects a trail beside a run, without any say in it."""

    def __init__(self, run: Run, clock: Callable[[], float]) -> None:
        assert run.rows.truth is not None
        self.run, self.clock, self.began = run, clock, clock()
        self.wrong = (run.rows.truth.labels != run.rows.data.labels).numpy()
        self.rows: list[dict[str, np.ndarray]] = []

    def __call__(self, epoch: Epoch) -> None:
        seen = epoch.seen or tuple(self.run.parts.engine.gather(each) for each in self.run.parts.learners)
        ones = torch.ones(len(self.wrong))
        prototype_share = [ones, ones]
        if epoch.by_prototype:
            judges = [each.judge for each in self.run.parts.learners]
            scores = [judge.classify(each.features) for judge, each in zip(judges, seen) if judge is not None]
            prototype_share = [_own(score.softmax(1), each.labels) for score, each in zip(scores, seen)]
        columns = {
            "share": [_own(each.probs, each.labels) for each in seen],
            "margin": [_margin(each.probs, each.labels) for each in seen],
            "by_loss": epoch.by_loss or [ones, ones],
            "by_prototype": epoch.by_prototype or [ones, ones],
            "prototype_share": prototype_share,
        }
        row = {name: torch.stack([part.cpu().float() for part in parts]).numpy() for name, parts in columns.items()}
        self.rows.append(row | {"divided": np.array(bool(epoch.seen)), "seconds": np.array(self.clock() - self.began)})

    def trail(self) -> Trail:
        return Trail(**{name: np.stack([row[name] for row in self.rows]) for name in self.rows[0]}, wrong=self.wrong)


def _own(table: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return table.gather(1, labels.unsqueeze(1)).squeeze(1)


def _margin(probs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    others = probs.scatter(1, labels.unsqueeze(1), -1.0).max(1).values
    return (_own(probs, labels) - others + 1) / 2


def _last(column: np.ndarray, divided: np.ndarray, count: int | None = None) -> np.ndarray:
    """Mean over the networks and the last `count` divided epochs (all of them: None)."""
    kept = column[divided] if divided.any() else column
    return kept[-count if count else None :].mean((0, 1))


def candidates(trail: Trail) -> dict[str, np.ndarray]:
    """Every score that is compared, (N,), low = suspicious."""
    d, every = trail.divided, np.ones_like(trail.divided)
    prototype, share, margin = (_last(column, d, 1) for column in (trail.by_prototype, trail.share, trail.margin))
    long = {name: _last(getattr(trail, name), d) for name in ("by_loss", "by_prototype", "share", "margin", "prototype_share")}
    five = {name: _last(getattr(trail, name), d, 5) for name in ("by_loss", "by_prototype", "share", "margin")}
    whole = _last(trail.share, every)
    return {
        "prototype chance": prototype,
        "mixture chance": _last(trail.by_loss, d, 1),
        "softmax share": share,
        "softmax margin": margin,
        "prototype softmax share": _last(trail.prototype_share, d, 1),
        "least of both networks' prototype chances": trail.by_prototype[-1].min(0),
        "mean of prototype chance and share": (prototype + share) / 2,
        "rank mean of prototype chance and share": ranks(prototype) + ranks(share),
        "geometric mean of prototype chance and share": np.sqrt(prototype * share),
        "prototype chance, last 5 epochs": five["by_prototype"],
        "share, last 5 epochs": five["share"],
        "mean of prototype chance and share, last 5 epochs": (five["by_prototype"] + five["share"]) / 2,
        "mixture chance, all epochs": long["by_loss"],
        "prototype chance, all epochs": long["by_prototype"],
        "share, all epochs": long["share"],
        "share, warm-up too": whole,
        "margin, all epochs": long["margin"],
        "margin, warm-up too": _last(trail.margin, every),
        "share in the warm-up": trail.share[~d].mean((0, 1)) if (~d).any() else share,
        "prototype softmax share, all epochs": long["prototype_share"],
        "mean of prototype chance and share, all epochs": (long["by_prototype"] + long["share"]) / 2,
        "mean of prototype chance, share, and share over all epochs": (prototype + share + whole) / 3,
        "mean of prototype and mixture chance and share, all epochs": (long["by_prototype"] + long["by_loss"] + long["share"])
        / 3,
        "rank mean of prototype chance and share, all epochs": ranks(long["by_prototype"]) + ranks(long["share"]),
    }


def judged(trail: Trail) -> dict[str, tuple[float, float]]:
    """Candidate -> (average precision, recall at the true number of wrong labels)."""
    found = candidates(trail)
    return {name: (average_precision(s, trail.wrong), recall_at_true_count(s, trail.wrong)) for name, s in found.items()}


def trained(path: Path, data: str, noise: str, seed: int, limit: int | None, settings: Sequence[str]) -> Trail:
    """The trail at `path`, trained first where there is none."""
    import time

    from labelsieve.runs.resolve import resolve
    from labelsieve.runs.train import begin, drive

    if not path.exists():
        options = {"data.noise": noise, "seed": seed, "data.limit": limit}
        with tempfile.TemporaryDirectory() as folder:
            run = begin(Path(folder) / "run", resolve(data, options=options, settings=settings))
            watch = Watch(run, time.perf_counter)
            for _ in drive(run, watch=watch):
                pass
        _write(path, watch.trail())
    return Trail(**read_npz(path))


def _write(path: Path, trail: Trail) -> None:
    def write(draft: Path) -> None:
        with draft.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **vars(trail))

    atomic.write_file(path, write)


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`.")],
    out: Annotated[Path, typer.Option(help="The folder for the trails; made where it is missing.")],
    noise: Annotated[list[str], typer.Option(help="Wrong labels to make on purpose; repeatable.")],
    seeds: Annotated[int, typer.Option(help="How many seeds, from 0 on.")] = 3,
    limit: Annotated[int | None, typer.Option(help="Train on a fixed subset of this size.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting.")] = None,
    until: Annotated[int | None, typer.Option(help="Rank as if the run had ended after so many epochs.")] = None,
) -> None:
    """Train once for each noise and seed, and print the candidates' mean average precision, best first."""
    from labelsieve.cli.console import console

    out.mkdir(parents=True, exist_ok=True)
    table: dict[str, list[float]] = {}
    for spec in noise:
        kind = spec.replace(":", "-")
        trails = [trained(out / f"trail-{kind}-{seed}.npz", data, spec, seed, limit, settings or ()) for seed in range(seeds)]
        found = [judged(trail.until(until or len(trail.divided))) for trail in trails]
        for name in found[0]:
            table.setdefault(name, []).append(sum(each[name][0] for each in found) / len(found))
    console.print("mean average precision over seeds: " + ", ".join(noise) + ", and the mean")
    for name, values in sorted(table.items(), key=lambda row: -sum(row[1])):
        console.print("  ".join(f"{value:.4f}" for value in (*values, sum(values) / len(values))) + f"  {name}")


if __name__ == "__main__":
    typer.run(main)
