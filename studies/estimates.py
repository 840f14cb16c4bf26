"""What whole runs say of known noise: `python -m studies.estimates DATA [--noise SPEC ...] [--quick]`.

Trains on made noise and prints the share of wrong labels that people are shown beside the true one, who estimated it, how good
the list is, whether the counts promised for its first labels held, and what `apply --auto` would do to the labels.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer

from labelsieve.benchmark.against_cleanlab import wrong_labels
from labelsieve.config.resolve import resolve
from labelsieve.corrected.apply import VOUCHED, least_right, sure_corrections
from labelsieve.results.card import cautions
from labelsieve.runs.findings import Findings
from labelsieve.terminal.console import as_command, console
from labelsieve.train.loop import each_epoch
from labelsieve.train.run import Run
from labelsieve.train.start import start

NOISES = ["none", "sym:0.05", "sym:0.2", "sym:0.4", "pair:0.2", "confuse:0.05", "confuse:0.2", "confuse:0.4"]
FIRST = (50, 100, 200)


def trained(data: str, noise: str, limit: int | None, seed: int, quick: bool, settings: Sequence[str]) -> Run:
    options = {"data.noise": noise, "data.limit": limit, "seed": seed, "training.quick": True if quick else None}
    run = start(None, resolve(data, options=options, settings=settings))
    for _ in each_epoch(run):
        pass
    return run


def corrected(run: Run) -> dict[str, str]:
    """{id: label} of what `apply --auto` would change; nothing where it refuses."""
    found = run.found
    if cautions(found, run.record) or least_right(found) < VOUCHED:
        return {}
    labels = dict(zip(found.columns["id"], found.columns["suggested_label"]))
    return {name: labels[name] for name in sure_corrections(found)}


def held(found: Findings, wrong: np.ndarray) -> tuple[int, int]:
    """How many of the counts promised for the first of the list held, and of how many."""
    counts = [(found.expected.at(n), int(wrong[found.order[:n]].sum())) for n in FIRST if n <= len(wrong)]
    return sum(low <= count <= high for (_, low, high), count in counts), len(counts)


def line(run: Run) -> str:
    found, wrong = run.found, wrong_labels(run.rows)
    share, truth = found.share, float(wrong.mean())
    said = f"{share.share:.3f} ({share.low:.3f} to {share.high:.3f})" if share.known else "cannot be known"
    inside = ("held" if share.low <= truth <= share.high else "missed") if share.known else ""
    listed = found.is_issue
    precision, recall = (
        (f"{wrong[listed].mean():.2f}" if listed.any() else "-"),
        (f"{listed[wrong].mean():.2f}" if truth else "-"),
    )
    met = "/".join(map(str, held(found, wrong))) if share.known else "-"
    taken = corrected(run)
    rows = {name: row for row, name in enumerate(run.rows.data.ids)}
    assert run.rows.truth is not None
    true = run.rows.truth.labels.numpy()
    right = sum(found.classes[int(true[rows[name]])] == label for name, label in taken.items())
    spoilt = sum(not wrong[rows[name]] for name in taken)
    list_words = f"{found.by:10s} {precision:>5s} {recall:>5s}  {met:>5s}"
    return f"{truth:.3f}  {said:26s} {inside:6s} {list_words}  {len(taken)}, {right}, {spoilt}"


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`; its true labels must be known.")],
    noise: Annotated[list[str] | None, typer.Option(help="Noise to make; repeatable. Default: eight kinds.")] = None,
    limit: Annotated[int | None, typer.Option(help="Train on a fixed subset of this size.")] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order, views and noise.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="As few epochs as rank labels well.")] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting.")] = None,
) -> None:
    """A line for each kind of noise."""
    console.print(
        "noise         wrong  estimated (interval)              by         list p., r.  yield  --auto: taken, right, spoilt"
    )
    for spec in noise or NOISES:
        console.print(f"{spec:13s} {line(trained(data, spec, limit, seed, quick, settings or ()))}")


if __name__ == "__main__":
    as_command(main)
