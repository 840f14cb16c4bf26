"""Which score ranks wrong labels best? One training a setting, all candidate scores on what it left behind.

`python -m studies.scores_study DATA --noise SPEC --out DIR` trains with noise made on purpose, keeps what both
networks and their prototypes said after every epoch (`trail-*.npz`), and ranks every candidate by average precision.
A trail that is there is not trained again; one of other data or settings is refused. The test set is not looked at.
"""

import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from labelsieve.benchmark.against_cleanlab import average_precision, check_some_wrong, recall_at_true_count, wrong_labels
from labelsieve.data.npz import read_npz
from labelsieve.methods.epochs import Epoch
from labelsieve.results.outcome import RECENT, geometric_mean
from labelsieve.runs import atomic
from labelsieve.terminal.console import as_command
from labelsieve.train.run import Run
from studies.known import check_every_row, check_same
from studies.ranking import ranks

CHOSEN = "label_score: geometric mean of prototypes' softmax share and softmax share, last 5, and the former, first"


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
        self.run, self.clock, self.began = run, clock, clock()
        self.wrong = wrong_labels(run.rows)
        self.rows: list[dict[str, np.ndarray]] = []

    def __call__(self, epoch: Epoch) -> None:
        method, verdict = self.run.parts.method, epoch.verdict
        seen = tuple(self.run.parts.engine.evidence(net) for net in method.nets) if verdict is None else verdict.seen
        opinions = {} if verdict is None else verdict.opinions
        ones = torch.ones(len(self.wrong))
        prototype_share = [ones, ones]
        if "prototype" in opinions:
            judges = [method.prototypes(r) for r in range(len(method.nets))]
            scores = [judge.classify(each.features) for judge, each in zip(judges, seen) if judge is not None]
            prototype_share = [_own(score.softmax(1), each.labels) for score, each in zip(scores, seen) if score is not None]
        columns = {
            "share": [_own(each.probs, each.labels) for each in seen],
            "margin": [_margin(each.probs, each.labels) for each in seen],
            "by_loss": opinions.get("loss", (ones, ones)),
            "by_prototype": opinions.get("prototype", (ones, ones)),
            "prototype_share": prototype_share,
        }
        row = {name: torch.stack([part.cpu().float() for part in parts]).numpy() for name, parts in columns.items()}
        self.rows.append(row | {"divided": np.array(verdict is not None), "seconds": np.array(self.clock() - self.began)})

    def trail(self) -> Trail:
        return Trail(**{name: np.stack([row[name] for row in self.rows]) for name in self.rows[0]}, wrong=self.wrong)


def _own(table: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return table.gather(1, labels.unsqueeze(1)).squeeze(1)


def _margin(probs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    others = probs.scatter(1, labels.unsqueeze(1), -1.0).max(1).values
    return (_own(probs, labels) - others + 1) / 2


WORDS = {
    "P": "prototype chance",
    "M": "mixture chance",
    "S": "softmax share",
    "Q": "prototypes' softmax share",
    "G": "softmax margin",
}
# Opinions whose mean is a score, by their letters above.
MIXES = ("P", "M", "S", "Q", "G", "PM", "PS", "MS", "QS", "PMS")


def windows(count: int) -> dict[str, np.ndarray]:
    """How much each of `count` divisions weighs, (count,), by name."""
    steps = np.arange(1, count + 1)
    found = {
        "last epoch": steps == count,
        "last 5": steps > count - 5,
        "second half": steps > count // 2,
        "all": steps > 0,
        "all, later ones more": steps,
    }
    return {name: weights / weights.sum() for name, weights in found.items()}


def candidates(trail: Trail) -> dict[str, np.ndarray]:
    """Every score that is compared, (N,), low = suspicious. Opinions are means over both networks."""
    d = trail.divided if trail.divided.any() else np.ones_like(trail.divided)
    tables = zip(WORDS, (trail.by_prototype, trail.by_loss, trail.share, trail.prototype_share, trail.margin))
    columns = {letter: table[d].mean(1) for letter, table in tables}  # (S, N)
    over = windows(int(d.sum()))
    mean = {(letter, name): weights @ columns[letter] for letter in columns for name, weights in over.items()}
    found: dict[str, Any] = {}
    for mix in MIXES:
        words = " + ".join(WORDS[letter] for letter in mix)
        found |= {f"{words}, {name}": sum(mean[letter, name] for letter in mix) / len(mix) for name in over}
    now, late = "last epoch", "all, later ones more"
    found["ranks of prototype chance + softmax share, last epoch"] = ranks(mean["P", now]) + ranks(mean["S", now])
    found["least prototype chance of both networks, last epoch"] = trail.by_prototype[d][-1].min(0)
    found["prototype chance, all, later ones more + softmax share, last epoch"] = (mean["P", late] + mean["S", now]) / 2
    before = ((mean["P", late] + mean["M", late]) / 2 + mean["S", now]) / 2
    found["prototype + mixture chance, all, later ones more; and softmax share, last epoch"] = before
    latest = _geometric(np.concatenate([columns["Q"][-5:], columns["S"][-5:]]))
    found[CHOSEN] = _geometric(np.stack([latest, latest, columns["Q"][0]])) if len(columns["Q"]) > RECENT else latest
    found["geometric mean of prototypes' softmax share and softmax share, last 5"] = latest
    found["least of prototypes' softmax share and softmax share, last 5"] = np.minimum(mean["Q", "last 5"], mean["S", "last 5"])
    found["softmax share, warm-up too"] = trail.share.mean((0, 1))
    found["softmax margin, warm-up too"] = trail.margin.mean((0, 1))
    return found


def _geometric(tables: np.ndarray) -> np.ndarray:
    mean: np.ndarray = geometric_mean(torch.from_numpy(tables)).numpy()
    return mean


def judged(trail: Trail) -> dict[str, tuple[float, float]]:
    """Candidate -> (average precision, recall at the true number of wrong labels)."""
    found = candidates(trail)
    return {name: (average_precision(s, trail.wrong), recall_at_true_count(s, trail.wrong)) for name, s in found.items()}


def trained(path: Path, data: str, noise: str, seed: int, limit: int | None, settings: Sequence[str]) -> Trail:
    """The trail at `path`, trained first where there is none."""
    import time

    from labelsieve.config.resolve import resolve
    from labelsieve.train.loop import each_epoch
    from labelsieve.train.start import start

    made = {"data": data.partition(":")[0], "noise": noise, "seed": seed, "limit": limit, "settings": list(settings)}
    if not path.exists():
        options = {"data.noise": noise, "seed": seed, "data.limit": limit}
        with tempfile.TemporaryDirectory() as folder:
            config = resolve(data, options=options, settings=settings)
            check_every_row(config)
            run = start(Path(folder) / "run", config)
            check_some_wrong(run.rows)
            watch = Watch(run, time.perf_counter)
            for _ in each_epoch(run, watch=watch):
                pass
        write_arrays(path, vars(watch.trail()) | {"made": np.array(json.dumps(made))})
    arrays = read_npz(path)
    before = arrays.pop("made", None)  # trails of before do not say it
    if before is not None:
        check_same(path, json.loads(str(before)), made)
    return Trail(**arrays)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """An npz in one move, so that a killed study leaves whole files only."""

    def write(draft: Path) -> None:
        with draft.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

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
    from labelsieve.terminal.console import console

    out.mkdir(parents=True, exist_ok=True)
    table: dict[str, list[float]] = {}
    for spec in noise:
        kind = re.sub(r"[^\w.-]", "-", spec)  # a file's path is no folder here
        trails = [trained(out / f"trail-{kind}-{seed}.npz", data, spec, seed, limit, settings or ()) for seed in range(seeds)]
        found = [judged(trail.until(until or len(trail.divided))) for trail in trails]
        for name in found[0]:
            table.setdefault(name, []).append(sum(each[name][0] for each in found) / len(found))
    console.print("mean average precision over seeds: " + ", ".join(noise) + ", and the mean")
    for name, values in sorted(table.items(), key=lambda row: -sum(row[1])):
        console.print("  ".join(f"{value:.4f}" for value in (*values, sum(values) / len(values))) + f"  {name}")


if __name__ == "__main__":
    as_command(main)
