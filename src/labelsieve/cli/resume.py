"""`labelsieve resume RUN`: take a run up where it stopped or was killed."""

import time
from pathlib import Path
from typing import Annotated

import typer

from labelsieve.cli.gpus import Gpus, among_others
from labelsieve.cli.picture_options import Said, copied_here
from labelsieve.cli.train import MethodFile, TimeLimit


def resume(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    data: Annotated[str | None, typer.Option(help="Where the data are now, if they moved since the run started.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N; default: as before.")] = None,
    gpus: Gpus = None,
    method_file: MethodFile = None,
    time_limit: TimeLimit = None,
) -> None:
    """Resume a stopped run. On the same machine the result is the same as without the stop."""
    began = time.monotonic()
    from labelsieve.data.sources import source_at
    from labelsieve.terminal.console import interruptible, parse_duration
    from labelsieve.terminal.looking import Looking
    from labelsieve.terminal.training import TOO_EARLY, show_training
    from labelsieve.train import start
    from labelsieve.train.ranks import run_together

    if method_file is not None:
        from labelsieve.methods.registry import run_method_file

        run_method_file(method_file)
    seconds = parse_duration(time_limit) if time_limit else None
    source = source_at(copied_here(data, Said({}, []))) if data else None
    with among_others(gpus, device) as met:
        with interruptible(TOO_EARLY), Looking().shown() as watch:
            resumed = run_together(
                met,
                lambda: start.resume(run, source=source, device=device, watch=watch),
                run,
                source,
                device,
                watch,
            )
        show_training(resumed, seconds, began)
