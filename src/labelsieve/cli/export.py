"""`labelsieve export RUN --to TARGET`: a run's model or its findings, as files that other programs read."""

from pathlib import Path
from typing import Annotated

import typer


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
