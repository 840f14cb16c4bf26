"""Does it pay to train again halfway through a review? `python -m studies.review_rounds DATA --noise SPEC` counts.

A scripted reviewer takes the most suspicious labels first and answers with the true ones. A plan is the number of decisions in
each round, such as (200, 200) or (400,). All plans of a seed start from the same first run, and each ends with a training on
all its decisions, whose test accuracy and remaining wrong labels are measured: (200, 200) trains three times, (400,) twice.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from labelsieve.cli.bench import write_json
from labelsieve.cli.picture_options import Settings
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.corrected.apply import sure_corrections
from labelsieve.decisions.decision import ACCEPT, KEEP, RELABEL, Decision
from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import UsageError
from labelsieve.issues.policy import changes_of
from labelsieve.runs.findings import read_findings
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rounds import based_on
from labelsieve.terminal.console import as_command, check_new, console
from labelsieve.train.loop import each_epoch
from labelsieve.train.run import Run
from labelsieve.train.start import start

WHO = "script"
HEADS = {"left_suggested": "left, suggestions followed", "accuracy": "accuracy, %"}


@dataclass(frozen=True)
class Outcome:
    """Of one plan and seed. `found` counts decisions that corrected a wrong label; what is left is counted over all samples.

    `left_suggested` and `dropped`: what `apply --auto` would leave, were it not for cautions, by the last run's suggestions.
    """

    plan: str
    seed: int
    wrong: int
    decisions: int
    found: int
    left: int
    left_suggested: int
    dropped: int
    accuracy: float | None
    trainings: int
    seconds: float


def compare(config: Config, plans: Sequence[Sequence[int]], where: Path, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """The outcome of each plan, as facts, as soon as it is known."""
    began = time.monotonic()
    say(f"seed {config.seed}: first run")
    first = trained(where / "first", config)
    if first.rows.truth is None:
        raise UsageError(f"{config.data.source}: true labels are not known, so nothing can be measured; add --noise SPEC")
    spent = time.monotonic() - began
    for plan in plans:
        began = time.monotonic()
        name = " + ".join(map(str, plan))
        last = followed(first, plan, where / name.replace(" ", ""))
        found = outcome(first, last, name, len(plan) + 1, spent + time.monotonic() - began)
        say(f"  {name}: {found.found} found, {found.left} wrong labels left, accuracy {found.accuracy}")
        yield asdict(found)


def followed(first: Run, plan: Sequence[int], where: Path) -> Run:
    """The run that was trained on all decisions of the plan."""
    where.mkdir(parents=True)
    shutil.copytree(first.home.path, where / "1", ignore=shutil.ignore_patterns("checkpoint"))
    run = replace(first, folder=RunFolder(where / "1"))
    for number, count in enumerate(plan, 2):
        review(run, count)
        run = trained(where / str(number), based_on(run.config, run.home.path))
    return run


def trained(path: Path, config: Config) -> Run:
    run = start(path, config)
    for _ in each_epoch(run):
        pass
    return run


def review(run: Run, count: int) -> None:
    """Decide on the `count` most suspicious labels that are not decided yet, by what is true."""
    data, truth = run.rows.data, run.rows.truth
    assert truth is not None
    true = dict(zip(data.ids, (data.classes[k] for k in truth.labels.tolist())))
    open_rows = [row for row in run.home.read_issues() if not row["decided"]][:count]
    log = []
    for number, row in enumerate(open_rows):
        label = true[row["id"]]
        action = KEEP if label == row["given_label"] else ACCEPT if label == row["suggested_label"] else RELABEL
        log.append(Decision(f"{number}", row["id"], action, label, WHO, "", float(row["label_score"])))
    DecisionLog(run.home.path).append(log)


def outcome(first: Run, last: Run, plan: str, trainings: int, seconds: float) -> Outcome:
    wrong, left = wrong_of(first), wrong_of(last)
    found = read_findings(last.home)
    true = dict(zip(last.rows.data.ids, _true_names(last)))
    said = changes_of(found.columns, found.classes, sure_corrections(found))
    accuracies = [record["accuracy"]["both"] for record in last.metrics if "accuracy" in record]
    return Outcome(
        plan=plan,
        seed=first.config.seed,
        wrong=wrong,
        decisions=sum(action != "" for action in last.rows.decided or ()),
        found=wrong - left,
        left=left,
        left_suggested=sum(one.new is not None and one.new != true[one.id] for one in said),
        dropped=sum(one.new is None for one in said),
        accuracy=accuracies[-1] if accuracies else None,
        trainings=trainings,
        seconds=round(seconds, 1),
    )


def wrong_of(run: Run) -> int:
    assert run.rows.truth is not None
    return int((run.rows.truth.labels != run.rows.data.labels).sum())


def _true_names(run: Run) -> list[str]:
    assert run.rows.truth is not None
    return [run.rows.data.classes[k] for k in run.rows.truth.labels.tolist()]


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`.")],
    noise: Annotated[list[str] | None, typer.Option(help="Wrong labels to make on purpose, e.g. sym:0.2; repeatable.")] = None,
    plan: Annotated[
        list[str] | None,
        typer.Option(help="Decisions round by round, e.g. 200,200; repeatable. Default: 200,200 and 400."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0 on; each makes its own noise.")] = 3,
    limit: Annotated[int | None, typer.Option(help="Use a fixed subset of this size.")] = None,
    network: Annotated[str | None, typer.Option(help="Default: the data's own.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of each training; default: the data's own.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    settings: Settings = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as well.")] = None,
) -> None:
    """Review most suspicious labels first, answered by the truth: does training again between decisions pay?"""
    check_new("--json", json_file)
    plans = [decisions_of(text) for text in plan or ["200,200", "400"]]
    rows: list[dict[str, Any]] = []
    for spec in noise or ["none"]:
        for seed in range(seeds):
            told = {"data.noise": spec, "seed": seed, "data.limit": limit, "network": network, "device": device}
            config = resolve(data, options=told | {"training.epochs": epochs}, settings=settings or ())
            console.print(f"{data}, noise {spec}")
            with tempfile.TemporaryDirectory() as place:
                for found in compare(config, plans, Path(place), console.print):
                    rows.append({"noise": spec} | found)
                    # At once: what was measured is not lost with what comes after it.
                    write_json(json_file, {"data": data, "limit": limit, "epochs": config.training.epochs, "rows": rows})
    say(rows)


def decisions_of(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(word) for word in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise UsageError(f'--plan "{text}" is not a list of numbers of decisions; write 200,200 or 400')
    return found


def say(rows: Sequence[dict[str, Any]]) -> None:
    """Means over seeds, a line for each noise and plan."""
    table = Table(title="means over seeds", title_justify="left")
    names = ("wrong", "found", "left", "left_suggested", "accuracy")
    for head in ("noise", "plan", *(HEADS.get(name, name) for name in names)):
        table.add_column(head, justify="left" if head in ("noise", "plan") else "right")
    for noise, plan in dict.fromkeys((row["noise"], row["plan"]) for row in rows):
        own = [row for row in rows if (row["noise"], row["plan"]) == (noise, plan)]
        table.add_row(noise, plan, *(mean([row[name] for row in own]) for name in names))
    console.print(table)


def mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.1f}" if known else ""


if __name__ == "__main__":
    as_command(main)
