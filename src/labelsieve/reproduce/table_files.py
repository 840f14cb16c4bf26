"""Writes a table's results as Markdown, CSV and HTML, the same numbers in each."""

from collections.abc import Sequence
from pathlib import Path

from labelsieve.report.page import Section, commands, page, paragraph, table
from labelsieve.reproduce.cells import Table
from labelsieve.reproduce.results import CellResult, Spread
from labelsieve.results.tail import fewer
from labelsieve.runs import atomic
from labelsieve.texts import as_csv

HEADER = ("method", "data", "paper", "best", "difference", "last", "mean of last 10", "seeds", "epochs", "minutes", "mark")
SPREADS = ("last", "mean_last_10", "best")
COLUMNS = (
    *("row", "column", "job", "measure", "paper", "paper_std"),
    *(f"{name}{suffix}" for name in SPREADS for suffix in ("", "_std")),
    *("difference", "seeds", "seeds_wanted", "epochs", "paper_epochs", "minutes", "mark", "mean_last_10_epochs"),
)
OTHER = "*"  # on a number that is no reproduction of the paper's
EXPLAINED = (
    "Accuracy in percent on test pictures, both networks together unless a row says otherwise. Cited: the paper took "
    "the number from others' work. Ours: mean ± standard deviation over seeds. Best is the best epoch, chosen on the test set as "
    "the paper's protocol has it, so it flatters: go by last. Difference: best minus the paper's. The mean of the last 10 epochs "
    "leaves the warm-up out; of fewer, it says of how many. Minutes: of one run, its warm-up included. Runs marked SHORT, "
    "LONGER, SUBSET or SET are of another length, smaller or set otherwise than the paper's, and their numbers are not a "
    "reproduction of it. MIXTURE: such short runs of a cleaner with prototypes show nothing of them. WARM-UP: the best epoch "
    "came before any label was divided, so it says nothing of the cleaner."
)


def write_table(folder: Path, spec: Table, results: Sequence[CellResult], command: str, made_with: str) -> list[Path]:
    """NAME.md, NAME.csv and NAME.html in `folder`."""
    files = {
        "md": as_markdown(spec, results, command, made_with),
        "csv": as_rows(results),
        "html": as_page(spec, results, command, made_with),
    }
    places = []
    for suffix, text in files.items():
        places.append(folder / f"{spec.name}.{suffix}")
        atomic.write_text(places[-1], text)
    return places


def said(value: Spread | None) -> str:
    if value is None:
        return ""
    return f"{value.mean:.2f}" + (f" ± {value.std:.2f}" if value.std is not None else "")


def tail_said(result: CellResult) -> str:
    return said(result.tail) + (fewer(result.tail_epochs) if result.tail else "")


def cells_of(result: CellResult) -> list[str]:
    cell = result.cell
    paper = "" if cell.paper is None else said(Spread(cell.paper, cell.spread)) + (" (cited)" if cell.reported else "")
    difference = "" if result.difference is None else f"{result.difference:+.2f}"
    epochs = f"{result.epochs}" if result.epochs == cell.job.epochs else f"{result.epochs} of {cell.job.epochs}"
    minutes = "" if result.minutes is None else f"{result.minutes:.1f}"
    seeds = f"{result.seeds} of {result.wanted}"
    numbers = [said(result.best), difference, said(result.last), tail_said(result)]
    return [cell.row, cell.column, paper, *numbers, seeds, epochs, minutes, result.mark]


def as_markdown(spec: Table, results: Sequence[CellResult], command: str, made_with: str) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *(cells_of(result) for result in results)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    note = f"\n\n{spec.note}" if spec.note else ""
    return f"# {spec.title}\n\n{body}\n\n{EXPLAINED}{note}\n\nMade with `{command}`; {made_with}.\n"


def as_rows(results: Sequence[CellResult]) -> str:
    return as_csv(COLUMNS, [_row(result) for result in results])


def _row(result: CellResult) -> list[str]:
    cell = result.cell
    spreads = [part for value in (result.last, result.tail, result.best) for part in _parts(value)]
    counts = (result.seeds, result.wanted, result.epochs, cell.job.epochs)
    return [
        *(cell.row, cell.column, cell.job.name, cell.measure),
        *(_number(cell.paper), _number(cell.spread)),
        *spreads,
        _number(result.difference),
        *map(str, counts),
        _number(result.minutes),
        result.mark,
        str(result.tail_epochs) if result.tail else "",
    ]


def _parts(value: Spread | None) -> tuple[str, str]:
    return ("", "") if value is None else (_number(value.mean), _number(value.std))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")


def as_page(spec: Table, results: Sequence[CellResult], command: str, made_with: str) -> str:
    shown = [[_unbroken(cell, place) or None for place, cell in enumerate(cells_of(result))] for result in results]
    # Two tables, for one of eleven columns fits no page.
    numbers = table(("cell", *HEADER[2:7]), [[f"{row[0]}, {row[1]}", *row[2:7]] for row in shown])
    runs = table(("cell", *HEADER[7:]), [[f"{row[0]}, {row[1]}", *row[7:]] for row in shown], words=(0, 4))
    header, rows = grid(results)
    words = "Paper / best of ours; a dash: not published, or not run."
    if any(result.is_other for result in results):
        words += f" {OTHER}: of another length, smaller or set otherwise than the paper's, so no reproduction; marks say how."
    sections = [
        Section("Paper and ours", table(header, rows) + paragraph(words, "note")),
        Section("Cell by cell", numbers + paragraph(EXPLAINED, "note")),
        Section("How they were run", runs),
        Section("Command", commands([command]) + paragraph(f"{made_with}.", "note")),
    ]
    return page(spec.title, spec.note or lead(results), sections)


def _unbroken(text: str, column: int) -> str:
    """A number keeps its deviation, and a count its whole, on one line; a mean may part from what it is of."""
    kept = text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    return kept.replace(" of ", "\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}") if HEADER[column] in ("seeds", "epochs") else kept


def lead(results: Sequence[CellResult]) -> str:
    done = sum(result.seeds > 0 for result in results)
    other = sum(result.is_other for result in results)
    words = f"{done} of {len(results)} cells measured"
    return (
        f"{words}, {other} of them in runs of another length, smaller or set otherwise than the paper's."
        if other
        else f"{words}."
    )


def grid(results: Sequence[CellResult]) -> tuple[list[str], list[list[str | None]]]:
    """In the paper's shape: a row a method, a column a data set, paper's number and ours in each."""
    columns = list(dict.fromkeys(result.cell.column for result in results))
    by_place = {(result.cell.row, result.cell.column): result for result in results}
    rows = list(dict.fromkeys(result.cell.row for result in results))
    return ["", *columns], [[row, *(_pair(by_place.get((row, column))) for column in columns)] for row in rows]


def _pair(result: CellResult | None) -> str | None:
    if result is None:
        return None
    paper = "–" if result.cell.paper is None else f"{result.cell.paper:g}"
    ours = "–" if result.best is None else f"{result.best.mean:.2f}"
    return f"{paper} / {ours}{OTHER if result.best and result.is_other else ''}"
