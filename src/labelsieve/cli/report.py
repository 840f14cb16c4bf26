"""`labelsieve report RUN`: one HTML file on what a run found, which needs nothing but a browser."""

from pathlib import Path
from typing import Annotated

import typer

MARK = b"Written by labelsieve "


def report(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; default: RUN/report.html.")] = None,
    data: Annotated[str | None, typer.Option(help="Where the data are now, if they moved since the run started.")] = None,
) -> None:
    """Write an HTML report of a run. Noise overall and per class, suspicious pictures, how many to check, curves, settings."""
    from labelsieve.data.sources import source_at
    from labelsieve.report.run import run_page
    from labelsieve.results.reporting import run_report
    from labelsieve.runs import atomic
    from labelsieve.runs.folder import RunFolder
    from labelsieve.terminal.console import console

    place = RunFolder.open(run).report if out is None else out
    refuse_other_files(place)
    found, remark = run_report(run, source_at(data) if data else None)
    atomic.write_text(place, run_page(found))
    if remark:
        console.print(f"note: {remark}")
    console.print(f"report: {place}")


def refuse_other_files(place: Path) -> None:
    """A report may take the place of an older one, and of nothing else."""
    from labelsieve import doors, run_files
    from labelsieve.errors import UsageError

    if place.is_dir():
        raise UsageError(f"{place}: it is a folder; name a file, for example --out {place / 'report.html'}")
    try:
        is_ours = not place.exists() or MARK in doors.read_bytes(place, run_files.size_for(place), follow=True)
    except OSError:  # what cannot be read as a file is none of ours
        is_ours = False
    if not is_ours:
        raise UsageError(f"{place}: it exists and is no report of labelsieve; choose another --out")
