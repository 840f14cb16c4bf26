"""`labelsieve apply RUN --out DIR|FILE`: the corrected data set, by policy or by a person's decisions."""

from pathlib import Path
from typing import Annotated

import typer


def apply(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder or file to write; it must not exist. A .csv works for every source: id and label."),
    ] = None,
    relabel_above: Annotated[
        float | None,
        typer.Option(
            help="Give an issue its suggested label where suggested_confidence is above this. Then `action` is not used."
        ),
    ] = None,
    drop_below: Annotated[
        float | None,
        typer.Option(help="Drop what is not relabelled and has a label_score below this. Then `action` is not used."),
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(help="A CSV with id, action (keep, relabel, review, drop) and label; it comes before the thresholds."),
    ] = None,
    copy: Annotated[bool, typer.Option("--copy", help="Copy pictures into the new folder instead of linking them.")] = False,
    symlink: Annotated[bool, typer.Option("--symlink", help="Use symbolic links instead of hard links.")] = False,
    data: Annotated[str | None, typer.Option(help="Where the data are on this machine, if not where the run began.")] = None,
) -> None:
    """Write RUN's data again with corrected labels. The original stays as it is; changes.csv says what changed and why."""
    from labelsieve.cli.console import console
    from labelsieve.data.sources import source_at
    from labelsieve.errors import UsageError
    from labelsieve.issues.policy import Policy, read_decisions
    from labelsieve.runs.apply import apply_run

    if out is None:
        raise UsageError("no place is named; add --out DIR or --out FILE")
    if copy and symlink:
        raise UsageError("--copy and --symlink exclude each other; give one")
    policy = Policy(relabel_above, drop_below)
    told = None if decisions is None else read_decisions(decisions)
    put = "copy" if copy else "symlink" if symlink else "hardlink"
    done = apply_run(run, out, policy, told, put, source_at(data) if data else None)
    counts = ", ".join(f"{done.actions.get(name, 0)} {words}" for name, words in (("relabel", "relabelled"), ("drop", "dropped")))
    for note in done.notes:
        console.print(f"note: {note}")
    console.print(f"{counts}, {done.left} samples left: {done.out}")
    console.print(f"what changed and why: {done.changes}")
