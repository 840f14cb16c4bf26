"""`labelsieve inspect PATH`: what lies there, what is wrong with it, and what `train` would do."""

import json
from typing import Annotated

import typer

from labelsieve.cli.picture_options import (
    Classes,
    Encoding,
    IdColumn,
    ImageColumn,
    LabelColumn,
    Root,
    Size,
    picture_settings,
)


def inspect(
    data: Annotated[str, typer.Argument(metavar="PATH", help="A folder, a table, a saved data set, arrays or vectors.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    root: Root = None,
    classes: Classes = None,
    size: Size = None,
    encoding: Encoding = None,
    device: Annotated[str, typer.Option(help="The device that training would use: auto, cpu, cuda.")] = "auto",
) -> None:
    """Look at every picture at PATH: classes, sizes, formats, broken files, duplicates, and what `train` would do."""
    from dataclasses import replace

    from rich.console import Console

    from labelsieve.cli.console import console
    from labelsieve.cli.looking import Looking
    from labelsieve.data.inspection import inspection, known_source
    from labelsieve.engine.device import choose_device
    from labelsieve.errors import ToolError
    from labelsieve.runs.config import Config, override
    from labelsieve.runs.fitting import batch_for, network_for
    from labelsieve.runs.own import picture_options

    said = picture_settings(image_column, label_column, id_column, root, classes, size, None, False, encoding)
    options = picture_options(override(Config(), {key: value for key, value in said.items() if value is not None}).pictures)
    cuda = choose_device(device).type == "cuda"
    path = known_source(data)
    with Looking(Console(stderr=True, soft_wrap=True)).shown() as watch:
        found = inspection(path, options, watch.progress)
    choice = network_for(found.shape, found.samples, cuda)
    batch = batch_for(found.shape, found.samples)
    if as_json:
        training = {"network": choice.name, "network_why": choice.why, "batch": batch}
        typer.echo(json.dumps(found.as_dict() | training, ensure_ascii=False, default=str))
    else:
        told = replace(found, network=f"{choice.name} ({choice.why}), batches of {batch}")
        for line in told.lines():
            console.print(line, style="yellow" if line.startswith("warning:") else None)
    classes_found = sum(1 for count in found.training.values() if count)
    if classes_found < 2:
        raise ToolError(f"{data}: {classes_found} class(es) with readable training pictures; training needs at least two")
