"""`labelsieve apply RUN --out DIR|FILE`: the corrected data set, by policy or by people's decisions."""

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
        str | None,
        typer.Option(
            metavar="[FILE]",
            help="What people decided: in the run's own log, or in a CSV with id, action (keep, accept, relabel, drop, unsure) "
            "and label. It comes before the thresholds.",
        ),
    ] = None,
    undecided: Annotated[
        str | None,
        typer.Option(help="With --decisions, labels that nobody decided on: keep (the default), or suggested: as `action` says."),
    ] = None,
    on_conflict: Annotated[
        str | None,
        typer.Option(help="Where reviewers disagree: refuse (the default), latest (the later one counts) or undecided."),
    ] = None,
    copy: Annotated[bool, typer.Option("--copy", help="Copy pictures into the new folder instead of linking them.")] = False,
    symlink: Annotated[bool, typer.Option("--symlink", help="Use symbolic links instead of hard links.")] = False,
    data: Annotated[str | None, typer.Option(help="Where the data are on this machine, if not where the run began.")] = None,
) -> None:
    """Write RUN's data again with corrected labels. The original stays as it is; changes.csv says what changed and why."""
    from labelsieve.data.sources import source_at
    from labelsieve.decisions.settling import REFUSE
    from labelsieve.errors import UsageError, suggest
    from labelsieve.issues.policy import Policy, read_decisions
    from labelsieve.runs.apply import apply_run, logged
    from labelsieve.terminal.console import console

    if out is None:
        raise UsageError("no place is named; add --out DIR or --out FILE")
    if copy and symlink:
        raise UsageError("--copy and --symlink exclude each other; give one")
    if undecided not in (None, "keep", "suggested"):
        raise UsageError(f'--undecided "{undecided}"{suggest(str(undecided), ("keep", "suggested"))}; use keep or suggested')
    if undecided and decisions is None:
        raise UsageError("--undecided goes with --decisions; without decisions the column `action` is followed anyway")
    file = Path(decisions or run).expanduser()
    if on_conflict is not None and (decisions is None or not file.is_dir()):
        raise UsageError("--on-conflict goes with the log of a run; add --decisions without a file, or leave it out")
    policy = Policy(relabel_above, drop_below)
    if undecided == "suggested" and policy != Policy():
        raise UsageError("--undecided suggested and thresholds exclude each other; give one")
    told = None
    if decisions is not None:
        told = logged(file, on_conflict or REFUSE) if not decisions or file.is_dir() else read_decisions(file)
    put = "copy" if copy else "symlink" if symlink else "hardlink"
    done = apply_run(run, out, policy, told, put, source_at(data) if data else None, undecided == "suggested" or None)
    counts = ", ".join(f"{done.actions.get(name, 0)} {words}" for name, words in (("relabel", "relabelled"), ("drop", "dropped")))
    for note in done.notes:
        console.print(f"note: {note}")
    for caution in done.cautions:
        console.print(f"caution: {caution}", style="yellow")
    console.print(f"{counts}, {done.left} samples left: {done.out}")
    console.print(f"what changed and why: {done.changes}")
