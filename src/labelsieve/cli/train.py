"""`labelsieve train DATA --out RUN`: a new run, from what the user says to a finished run folder."""

from pathlib import Path
from typing import Annotated

import typer

Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting by its key; repeatable.")]
TimeLimit = Annotated[
    str | None,
    typer.Option(help="Stop cleanly before this much time has passed: 9m, 1h30m. `resume` goes on."),
]


def train(
    data: Annotated[str, typer.Argument(help="digits, cifar10:PATH, cifar100:PATH, fashion-mnist[:PATH], arrays:FILE.npz")],
    out: Annotated[Path | None, typer.Option(help="The run folder to make; it must not exist.")] = None,
    preset: Annotated[str | None, typer.Option(help="A named group of settings; see `labelsieve presets`.")] = None,
    method: Annotated[str | None, typer.Option(help="ce, dividemix, augdmix or cpc.")] = None,
    cleaner: Annotated[str | None, typer.Option(help="gmm-agn, gmm-awr, cpc-agn, cpc-awr or contrastive.")] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="Wrong labels to make on purpose: sym:0.5, sym-other:0.5, asym:0.4, pair:0.3, matrix:FILE, file:FILE."),
    ] = None,
    network: Annotated[str | None, typer.Option(help="small, small-wide or preact-resnet18.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs in all, the warm-up included.")] = None,
    limit: Annotated[int | None, typer.Option(help="Train on a fixed subset of this size.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, order, views and noise.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    settings: Settings = None,
    time_limit: TimeLimit = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with RUN if it exists.")] = False,
    slim_checkpoint: Annotated[
        bool, typer.Option("--slim-checkpoint", help="At a stop, also leave RUN/slim: a checkpoint in files of at most 16 MiB.")
    ] = False,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="On a GPU, only kernels that repeat bit for bit; slower.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the configuration and what would be made; make nothing.")
    ] = False,
) -> None:
    """Train on DATA and find its wrong labels."""
    from labelsieve.cli.durations import parse_duration
    from labelsieve.cli.going import finish, going
    from labelsieve.errors import UsageError
    from labelsieve.runs.resolve import resolve

    options = {
        "method": method,
        "cleaner": cleaner,
        "network": network,
        "seed": seed,
        "device": device,
        "data.noise": absolute(noise) if noise and noise.startswith(("matrix:", "file:")) else noise,
        "data.limit": limit,
        "training.epochs": epochs,
        "output.slim_checkpoint": slim_checkpoint or None,
        "engine.deterministic": deterministic or None,
    }
    config = resolve(absolute(data), named=preset, options=options, settings=settings or ())
    if dry_run:
        from labelsieve.cli.dry_run import say_plan

        say_plan(config, out)
        return
    if out is None:
        raise UsageError("no run folder is named; add --out RUN")
    seconds = parse_duration(time_limit) if time_limit else None
    finish(going(out, config, resume), seconds)


def absolute(source: str) -> str:
    """The source with its path made absolute, so that the run can be taken up from any folder."""
    name, colon, path = source.partition(":")
    return f"{name}:{Path(path).expanduser().absolute()}" if colon and path else source
