"""What the cells of studies/queue.md came to: a row each beside the published number, and every epoch as a curve file.

`python -m studies.cell_results RUNS --out studies/curves` reads RUNS/CELL of each cell that has begun, prints a Markdown table
and writes CELL.csv; with `--json FILE` all numbers go there, too. Cells that are not done say how far they are.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.metrics import average_precision_score

from labelsieve.errors import UsageError
from labelsieve.reproduce.results import final
from labelsieve.run_files import is_there
from labelsieve.runs import atomic
from labelsieve.runs.findings import Record, number, opinion, rankings, read_findings, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.terminal.console import as_command, console
from studies.queue import QUEUE, Cell, cells, state_of

MEASURES = {  # of a curve file: its columns, and where they stand in a line of metrics.jsonl
    "accuracy": "accuracy.both",
    "accuracy_1": "accuracy.first",
    "accuracy_2": "accuracy.second",
    "clean_share": "clean_share",
    "precision": "clean_precision",
    "recall": "clean_recall",
}
HEAD = (
    "| cell | epochs | last / mean of 10 / best | published | AUC | taken as clean: share, precision, recall "
    "| list: average precision, precision, recall | wrong: said (interval), really | minutes | commit |"
)


def facts(cell: Cell, folder: RunFolder) -> dict[str, Any]:
    """Every number of a cell's row; what a run that is not done can't know yet is left out."""
    record = read_record(folder)
    end = final(record)
    last = record.final
    found: dict[str, Any] = {
        "cell": cell.name,
        "published": float(cell.published) if cell.published else None,
        "epochs": record.epochs_done,
        "of": record.epochs_planned,
        "accuracy": {"last": end.last, "mean of 10": end.tail, "best": end.best} if end else None,
        "auc": {opinion(key): float(np.mean(values)) for key, values in rankings(last).items()},
        "clean": [number(last, MEASURES[name]) for name in ("clean_share", "precision", "recall")],
        "minutes": record.seconds / 60,
        "device": record.environment.get("device"),
        "commit": str(record.environment.get("commit") or "unknown")[:7],
        "seed": record.config.seed,
    }
    return found | (listed(folder) if is_there(folder.issues) and state_of(folder.path) == "done" else {})


def listed(folder: RunFolder) -> dict[str, Any]:
    """How good the list is, and what the run says of the labels, beside what is really wrong."""
    found = read_findings(folder)
    wrong = found.made_wrong
    if wrong is None or not wrong.any():
        return {}
    hits = int((found.is_issue & wrong).sum())
    share = found.share
    return {
        "average precision": float(average_precision_score(wrong, -found.score)),
        "list": [hits / max(int(found.is_issue.sum()), 1), hits / int(wrong.sum())],
        "estimate": [share.share, share.low, share.high] if found.by else None,
        "wrong": float(wrong.mean()),
    }


def row(found: Mapping[str, Any]) -> str:
    """A line of the table."""
    epochs = f"{found['epochs']} of {found['of']}"
    if found["epochs"] >= found["of"]:
        epochs = f"**{epochs}**"
    accuracy = found["accuracy"]
    the_list = _shares([found.get("average precision"), *found.get("list", (None, None))], 3)
    said = "–"
    if found.get("wrong") is not None:
        estimate = found["estimate"]
        words = "unknown" if estimate is None else "{:.1%} ({:.1%} to {:.1%})".format(*estimate)
        said = f"{words}, {found['wrong']:.1%}".replace("%", " %")
    parts = (
        found["cell"],
        epochs,
        " / ".join("–" if value is None else f"{value:.2f}" for value in accuracy.values()) if accuracy else "–",
        "–" if found["published"] is None else f"{found['published']:g}",
        ", ".join(f"{name} {value:.3f}" for name, value in found["auc"].items()) or "–",
        _shares(found["clean"], 3),
        the_list,
        said,
        f"{found['minutes']:.0f}",
        found["commit"],
    )
    return "| " + " | ".join(parts) + " |"


def _shares(values: Sequence[float | None], digits: int) -> str:
    return "–" if all(value is None for value in values) else ", ".join("–" if v is None else f"{v:.{digits}f}" for v in values)


def curve(record: Record) -> str:
    """Every epoch: what the networks know, what is taken as clean, and how each opinion ranks."""
    lines = [line for line in record.metrics if line.get("phase") != "final"]
    opinions = list(dict.fromkeys(key for line in lines for key in rankings(line)))
    measures = {name: place for name, place in MEASURES.items() if any(number(line, place) is not None for line in lines)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["epoch", "phase", *measures, *(f"auc_{opinion(key)}" for key in opinions)])
    for line in lines:
        found = [number(line, place) for place in measures.values()]
        ranks = [rankings(line).get(key) for key in opinions]
        means = [None if values is None else float(np.mean(values)) for values in ranks]
        numbers = [_short(value, 2 if name.startswith("accuracy") else 4) for name, value in zip(measures, found)]
        writer.writerow([line["epoch"], line["phase"], *numbers, *(_short(value, 4) for value in means)])
    return text.getvalue()


def _short(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def main(
    runs: Annotated[Path, typer.Argument(help="The folder with a run folder per cell, as studies.queue keeps them.")],
    out: Annotated[Path | None, typer.Option(help="A folder for the curves; existing ones of these cells are replaced.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="A file for all numbers.")] = None,
    queue: Annotated[Path, typer.Option(help="The table of cells.")] = QUEUE,
) -> None:
    """Show what the cells that have begun came to."""
    begun = [cell for cell in cells(queue.read_text(encoding="utf-8")) if is_there(RunFolder(runs / cell.name).metrics)]
    if not begun:
        raise UsageError(f"{runs}: no cell of {queue.name} has begun there")
    found = [facts(cell, RunFolder(runs / cell.name)) for cell in begun]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for cell in begun:
            atomic.write_text(out / f"{cell.name}.csv", curve(read_record(RunFolder(runs / cell.name))))
    if json_file is not None:
        atomic.write_text(json_file, json.dumps(found, indent=1) + "\n")
    console.print("\n".join([HEAD, "|---" * 10 + "|", *map(row, found)]), soft_wrap=True, markup=False, highlight=False)


if __name__ == "__main__":
    as_command(main)
