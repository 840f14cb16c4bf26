"""`labelsieve apply`, `decisions` and `export`: corrected data, people's decisions, and files for other tools."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from labelsieve.decisions.decision import Decision


class WithBareDecisions(TyperCommand):
    """`--decisions` may stand alone: then the run's own log is meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        def alone(place: int) -> bool:
            return place + 1 == len(args) or args[place + 1].startswith("-")

        told = [f"{word}=" if word == "--decisions" and alone(place) else word for place, word in enumerate(args)]
        return super().parse_args(ctx, told)


def apply(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder or file to write; it must not exist. A .csv works for every source: id, label and, where samples "
            "are picture files, path."
        ),
    ] = None,
    decisions: Annotated[
        str | None,
        typer.Option(
            metavar="[FILE]",
            help="The decisions to use: the run's own log (the default), or a CSV with id, action (keep, accept, relabel, "
            "drop, unsure) and label.",
        ),
    ] = None,
    auto: Annotated[
        bool,
        typer.Option(
            "--auto",
            help="Also take corrections the run vouches for, where nobody decided. Refused while the run has a caution.",
        ),
    ] = False,
    on_conflict: Annotated[
        str | None,
        typer.Option(help="If reviewers disagree: refuse (the default), latest (the later one counts) or undecided."),
    ] = None,
    copy: Annotated[bool, typer.Option("--copy", help="Copy pictures into the new folder instead of linking them.")] = False,
    symlink: Annotated[bool, typer.Option("--symlink", help="Use symbolic links instead of hard links.")] = False,
    data: Annotated[str | None, typer.Option(help="Where the data are now, if they moved since the run started.")] = None,
) -> None:
    """Write a copy of the data with corrected labels. They are what people decided; changes.csv says what changed, and the
    original stays as it is."""
    from labelsieve.corrected.apply import apply_run, automatic, check_decided, logged
    from labelsieve.data.sources import source_at
    from labelsieve.decisions.decision import REFUSE
    from labelsieve.errors import UsageError
    from labelsieve.issues.policy import read_decisions
    from labelsieve.runs.findings import read_findings
    from labelsieve.runs.folder import RunFolder
    from labelsieve.terminal.console import console

    if out is None:
        raise UsageError("no place is named; add --out DIR or --out FILE")
    if copy and symlink:
        raise UsageError("--copy and --symlink exclude each other; give one")
    file = Path(decisions or run).expanduser()
    from_log = not decisions or file.is_dir()
    if on_conflict is not None and not from_log:
        raise UsageError("--on-conflict goes with the log of a run, and --decisions names a file; leave one out")
    told = logged(file, on_conflict or REFUSE) if from_log else read_decisions(file)
    folder = RunFolder.open(run)
    found = read_findings(folder) if auto else None
    if found is not None:
        told = automatic(folder, found) | told
    elif from_log:
        check_decided(file, told)
    put = "copy" if copy else "symlink" if symlink else "hardlink"
    done = apply_run(run, out, told, put, source_at(data) if data else None, found)
    counts = ", ".join(f"{done.actions.get(name, 0)} {words}" for name, words in (("relabel", "relabelled"), ("drop", "dropped")))
    for note in done.notes:
        console.print(f"note: {note}")
    console.print(f"{counts}, {done.left} samples left: {done.out}")
    console.print(f"what changed and why: {done.changes}")


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
    taken_back = f"; {back:,} {'decision was' if back == 1 else 'decisions were'} taken back" if back else ""
    console.print(f"{written}{taken_back}")
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


def export(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    to: Annotated[str, typer.Option(help="onnx, torch-export, cleanlab, fiftyone, labelstudio or huggingface.")],
    out: Annotated[Path | None, typer.Option(help="The folder to create; default: RUN/export/TARGET.")] = None,
    pixels: Annotated[str, typer.Option(help="The model's input: uint8 or float32, both from 0 to 255.")] = "uint8",
    data: Annotated[str | None, typer.Option(help="Where the data are now, if they moved since the run started.")] = None,
) -> None:
    """Export a run for another program. A model is run and compared before it is kept."""
    from labelsieve.data.sources import source_at
    from labelsieve.exports.export import export_run
    from labelsieve.terminal.console import console

    done = export_run(run, to, out, pixels, source_at(data) if data else None)
    console.print(f"{done.path}: {done.words}")
