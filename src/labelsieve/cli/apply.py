"""`labelsieve apply RUN --out DIR|FILE`: the corrected data set, by what people decided."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand


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
