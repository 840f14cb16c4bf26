"""`labelsieve inspect DATA`: what lies there, what is wrong with it, and what `train` would do."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelsieve.cli.picture_options import Said, reads_data

if TYPE_CHECKING:
    from labelsieve.config.fitting import Choice
    from labelsieve.config.presets import Settings
    from labelsieve.data.inspection import Inspection
    from labelsieve.data.pictures.options import PictureOptions
    from labelsieve.data.web_inspection import WebInspection


@reads_data("image_column", "label_column", "id_column", "root", "classes", "size", "encoding", "second_test")
def inspect(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="As for `labelsieve train`: a folder, a table, a saved data set, arrays or vectors; or digits, cifar10:PATH, "
            "cifar100:PATH, fashion-mnist[:PATH], clothing1m:PATH, webvision:PATH.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    said: Said,
    noise: Annotated[
        str | None,
        typer.Option(help="As for `labelsieve train`: show how many labels it would change, and whether a file of labels fits."),
    ] = None,
    device: Annotated[str, typer.Option(help="The device to plan for: auto, cpu, cuda.")] = "auto",
) -> None:
    """Show what DATA holds and what `train` would do. Classes, sizes, formats, broken files, duplicates."""
    from dataclasses import replace

    from rich.console import Console

    from labelsieve.config.fitting import Choice, batch_for
    from labelsieve.config.presets import LITTLE_MIXING
    from labelsieve.config.resolve import check_heeded, refuse_run
    from labelsieve.config.schema import Config, override
    from labelsieve.data.inspection import inspection, known_source
    from labelsieve.data.pictures.options import picture_options
    from labelsieve.data.pictures.websets import WEBSETS
    from labelsieve.data.sources import source_at
    from labelsieve.engine.device import choose_device
    from labelsieve.errors import ToolError
    from labelsieve.runs.features import FROZEN, eyes_for
    from labelsieve.runs.rows import sized_for
    from labelsieve.terminal.console import console
    from labelsieve.terminal.looking import Looking

    refuse_run(data)
    given = said.of_data("inspect")
    options = sized_for(picture_options(override(Config(), given).pictures), device)
    cuda = choose_device(device).type == "cuda"
    path = known_source(data, options)
    check_heeded(source_at(data, options), given)
    name, _, place = str(path).partition(":")
    if isinstance(path, str) and name in WEBSETS:
        say_web_set(name, place, options, noise, as_json)
        return
    with Looking(Console(stderr=True, soft_wrap=True)).shown() as watch:
        found = inspection(path, options, watch.progress)
    changed = {} if noise is None else labels_changed(data, noise, options)
    looks = eyes_for(source_at(data, options), given | {"device": device})
    frozen = looks.settings.get("features.use") == FROZEN
    choice, batch, mixing = would_train(path, found, noise, cuda)
    if frozen:
        found = replace(found, features=looks.why)
        choice, batch, mixing = Choice("mlp", "two small heads on features"), batch_for((1,), found.samples), {}
    if as_json:
        training = {"network": choice.name, "network_why": choice.why, "batch": batch, "features": looks.why} | mixing
        typer.echo(json.dumps(found.as_dict() | training | changed, ensure_ascii=False, default=str))
    else:
        little = ", Beta(0.5, 0.5), weak views" if mixing == LITTLE_MIXING else ""
        say(replace(found, network=f"{choice.name} ({choice.why}), batches of {batch}{little}"))
        if looks.why and not frozen:
            console.print(looks.why)
        if changed:
            share = 100 * changed["labels_changed"] / found.samples
            console.print(f"noise {noise}: {changed['labels_changed']:,} of {found.samples:,} labels differ ({share:.2f} %)")
    classes_found = sum(1 for count in found.training.values() if count)
    if classes_found < 2:
        raise ToolError(f"{data}: {classes_found} class(es) with readable training pictures; training needs at least two")


def say(found: "Inspection | WebInspection") -> None:
    from labelsieve.terminal.console import console

    for line in found.lines():
        console.print(line, style="yellow" if line.lstrip().startswith("warning:") else None)


def would_train(path: "Path | str", found: "Inspection", noise: str | None, cuda: bool) -> "tuple[Choice, int, Settings]":
    """Network, batch and mixing: of a known set (its name) by its preset, of your own data by their size and number."""
    from labelsieve.config.fitting import Choice, batch_for, mixing_for, network_for
    from labelsieve.config.resolve import resolve

    if isinstance(path, str):
        settled = resolve(path, options={"data.noise": noise})
        mixing = {"training.beta": settled.training.beta, "views.policy": settled.views.policy}
        return Choice(settled.network, "its preset"), settled.training.batch, mixing
    choice = network_for(found.shape, found.samples, cuda)
    mixing = mixing_for(choice.name, found.shape) if len(found.shape) == 3 else {}
    return choice, batch_for(found.shape, found.samples), mixing


def say_web_set(name: str, place: str, options: "PictureOptions", noise: str | None, as_json: bool) -> None:
    """What is there of a large set, by its lists; ends in an error where something is missing."""
    from labelsieve.data.web_inspection import web_inspection
    from labelsieve.errors import ToolError, UsageError

    if noise is not None:
        raise UsageError(f"--noise checks labels for sets that are read whole, not for {name}, whose labels are noisy already")
    if not place:
        raise UsageError(f'{name} needs a place: write "{name}:PATH", the folder with its official files')
    found = web_inspection(name, Path(place), options)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False, default=str))
    else:
        say(found)
    if not found.is_whole:
        gone = sum(split.listed - split.there for split in found.splits)
        what = f"{', '.join(found.missing)} missing" if found.missing else f"{gone:,} listed pictures missing"
        raise ToolError(f"{place}: {what}; {found.title} is only partly there: unpack the rest of its official files")


def labels_changed(source: str, noise: str, options: "PictureOptions") -> dict[str, int]:
    """How many labels a noise changes; a file of labels that does not fit the data is an error."""
    from labelsieve.data.noise import inject
    from labelsieve.data.sources import open_source, source_at

    found = open_source(source_at(source, options), options).collection
    data = found.train
    made = inject(noise, data.labels, len(data.classes), 0, groups=found.groups, name=found.name, samples=data.images)
    return {"labels_changed": int(made.flipped.sum())}
