"""`labelsieve decisions RUN`: what people decided, as a table, as a file for other tools, and back from one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from labelsieve.decisions.decision import Decision

CONFLICTS = 10  # that are named


def decisions(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    to: Annotated[str | None, typer.Option(help="Export the decisions as csv or labelstudio, to --out.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; it must not exist.")] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Import decisions: a .csv with id, action (accept, keep, relabel, drop, unsure, clear) and label, or Label "
            "Studio's JSON export. All rows or none; what is decided already is not written again.",
        ),
    ] = None,
    reviewer: Annotated[str | None, typer.Option(help="Who decided, if the file doesn't say; default: you.")] = None,
) -> None:
    """Show, export or import what people decided."""
    from labelsieve.cli.review import login
    from labelsieve.errors import UsageError
    from labelsieve.exports.decisions import export_decisions, import_decisions
    from labelsieve.terminal.console import console

    if to is not None and source is not None:
        raise UsageError("--to and --from exclude each other; give one")
    if (to is None) != (out is None):
        raise UsageError("--to and --out go together: --to csv --out FILE.csv, or --to labelstudio --out FILE.json")
    if reviewer is not None and source is None:
        raise UsageError("--reviewer names who decided what comes in with --from; leave it out, or give --from FILE")
    if to is not None and out is not None:
        console.print(f"decisions on {export_decisions(run, to, out):,} samples: {out}")
    elif source is not None:
        new, rows = import_decisions(run, source, reviewer or login(), now())
        rest = "" if new == rows else "; the rest stood already"
        console.print(f"{source}: {rows:,} decision{'' if rows == 1 else 's'}, {new:,} of them new{rest}")
    else:
        say_decisions(run)


def now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


def say_decisions(run: Path) -> None:
    """By reviewer and action, then conflicts, then the rounds so far."""
    from labelsieve.decisions.decision import said
    from labelsieve.decisions.log import DecisionLog
    from labelsieve.runs.folder import RunFolder
    from labelsieve.runs.rounds import round_of, rounds
    from labelsieve.terminal.console import console
    from labelsieve.terminal.training import say_rounds

    folder = RunFolder.open(run)
    log = DecisionLog(run)
    found, count = log.states(), len(log.index)
    conflicts = {name: state for name, state in found.items() if state.conflict}
    say_table([state.current for state in found.values() if state.current is not None])
    back = sum(state.current is None for state in found.values())
    written = f"{count:,} {'entry' if count == 1 else 'entries'} in {log.path}"
    console.print(f"{written}; {back:,} {'sample' if back == 1 else 'samples'} decided and taken back")
    if conflicts:
        console.print(f"conflicts, which the review page settles: {len(conflicts):,}", style="yellow")
        for line in list(said(dict(list(conflicts.items())[:CONFLICTS]))):
            console.print(f"  {line}", markup=False)
    begun = round_of(folder.read_config())
    if begun is not None:
        console.print(f"round {begun.number}; {begun.used:,} decisions of earlier rounds are in its data")
        if folder.issues.exists():
            say_rounds(rounds(folder))


def say_table(standing: "list[Decision]") -> None:
    from rich.table import Table

    from labelsieve.decisions.decision import ACTIONS, CLEAR
    from labelsieve.terminal.console import console

    shown = [action for action in ACTIONS if action != CLEAR]
    table = Table()
    for name in ("reviewer", *shown, "all"):
        table.add_column(name, justify="left" if name == "reviewer" else "right")
    people = sorted({one.who for one in standing})
    for who in (*people, *([None] if len(people) != 1 else [])):  # None: all of them
        own = [one.action for one in standing if who is None or one.who == who]
        table.add_row("all" if who is None else who, *(f"{own.count(action):,}" for action in shown), f"{len(own):,}")
    console.print(table)
