"""`labelsieve bench`: the speed of this machine, and how near an epoch comes to the network's own limit."""

import json
from pathlib import Path
from typing import Annotated

import typer

from labelsieve.cli.train import Settings


def bench(
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file as well.")] = None,
    network: Annotated[str | None, typer.Option(help="Default: preact-resnet18 on CUDA, small on a CPU.")] = None,
    samples: Annotated[int | None, typer.Option(help="Training pictures; default 50,000 on CUDA, 2,000 on a CPU.")] = None,
    classes: Annotated[int, typer.Option(help="How many classes.")] = 10,
    settings: Settings = None,
) -> None:
    """Measure ceiling, whole epoch and parts on made pictures of CIFAR's shape, half of them labelled."""
    from dataclasses import asdict

    from rich.table import Table

    from labelsieve.benchmark.speed import made_rows, measure
    from labelsieve.cli.console import console
    from labelsieve.engine.device import choose_device
    from labelsieve.runs import atomic
    from labelsieve.runs.config import Config, override
    from labelsieve.runs.presets import cifar10_sym
    from labelsieve.runs.resolve import parse_settings
    from labelsieve.runs.validate import validate

    cuda = choose_device(device).type == "cuda"
    count = samples or (50_000 if cuda else 2_000)
    chosen = {"device": device, "network": network or ("preact-resnet18" if cuda else "small")}
    config = override(Config(), cifar10_sym(0.5) | chosen | parse_settings(settings or ()))
    validate(config)
    result = measure(config, made_rows(count, classes, (3, 32, 32)), count // 2, console.print)
    table = Table(title=f"labelsieve bench: {config.network}, {result.device}", title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_row("ceiling: images/s trained (4 batches)", f"{result.ceiling['trained']:,.0f}")
    table.add_row("ceiling: images/s inferred (6 batches)", f"{result.ceiling['inferred']:,.0f}")
    for name, seconds in result.parts_s.items():
        table.add_row(name, f"{seconds:.3f} s")
    table.add_row(f"CPC epoch, |X| = {count // 2:,} of {count:,}", f"{result.epoch_s:.3f} s")
    table.add_row("engine_fraction", f"{result.engine_fraction:.3f}")
    table.add_row("first step after", f"{result.startup_s:.1f} s")
    if result.peak_gib is not None:
        table.add_row("peak device memory", f"{result.peak_gib:.2f} GiB")
    console.print(table)
    if json_file is not None:
        atomic.write_text(json_file, json.dumps(asdict(result), indent=1) + "\n")
