"""`labelsieve bench`: how fast this machine trains, and how near an epoch comes to the network's own limit."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsieve.cli.picture_options import Settings
from labelsieve.terminal.console import check_new

if TYPE_CHECKING:
    from rich.table import Table

    from labelsieve.benchmark.growth import Grown
    from labelsieve.benchmark.large import Profile
    from labelsieve.benchmark.speed import Bench
    from labelsieve.config.schema import Config


def write_json(path: Path | None, facts: dict[str, Any]) -> None:
    """The figures, where a file is named for them."""
    from labelsieve.runs import atomic

    if path is not None:
        atomic.write_text(path, json.dumps(facts, indent=1) + "\n")


def bench(
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file as well.")] = None,
    network: Annotated[str | None, typer.Option(help="Default: preact-resnet18 on CUDA, small on a CPU.")] = None,
    samples: Annotated[int | None, typer.Option(min=2, help="Training pictures; default 50,000 on CUDA, 2,000 on a CPU.")] = None,
    classes: Annotated[int | None, typer.Option(min=2, help="How many classes; default 10, with --profile 14.")] = None,
    method: Annotated[str, typer.Option(help="Time an epoch of this method; `labelsieve methods` lists them.")] = "cpc",
    profile: Annotated[
        str | None,
        typer.Option(
            help="large: one step of ResNet-50 at 224 px, batch 32 + 32 (smaller on a CPU), to see whether it waits for pictures."
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Whole runs on this many pictures of 64 px, stage by stage: 10000,100000,1000000."),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="With --scale: draw how time grows into this new .svg file.")] = None,
    settings: Settings = None,
) -> None:
    """Measure how fast this machine trains. On synthetic pictures of CIFAR's shape."""
    began = time.perf_counter()
    check_new("--json", json_file)
    if scale is not None:
        say_scale(scale, device, network, classes or 100, method, settings, json_file, picture)
        return
    if profile is not None:
        say_profile(profile, device, network, samples, classes or 14, settings, json_file)
        return
    from labelsieve.benchmark.speed import made_rows, measure, measure_method
    from labelsieve.config.fitting import fitted
    from labelsieve.config.method_settings import cell_settings
    from labelsieve.config.presets import cifar10_sym
    from labelsieve.config.resolve import cleaner_of, parse_settings, validate, validate_for
    from labelsieve.config.schema import Config, override
    from labelsieve.engine.device import choose_device
    from labelsieve.methods.dividemix import DivideMix
    from labelsieve.methods.registry import method_named
    from labelsieve.terminal.console import console

    cuda = choose_device(device).type == "cuda"
    count = samples or (50_000 if cuda else 2_000)
    chosen = {"device": device, "network": network or ("preact-resnet18" if cuda else "small"), "data.source": "made pictures"}
    cell = cifar10_sym(0.5) | {"method": method, "cleaner": cleaner_of(method)} | cell_settings(method, "cifar10-sym50", "", "")
    config = override(Config(), cell | chosen | parse_settings(settings or ()))
    validate(config)
    rows = made_rows(count, classes or 10, (3, 32, 32))
    config, _ = fitted(config, rows.data.shape, count, cuda)
    validate_for(config, rows.data)
    if issubclass(method_named(config.method), DivideMix):
        result = measure(config, rows, count // 2, console.print, began=began)
    else:
        result = measure_method(config, rows, console.print, began=began)
    say_speed(result)
    write_json(json_file, asdict(result) | made_with(config))


def made_with(config: "Config") -> dict[str, Any]:
    """What a figure must be read with: versions, commit and threads, and how steps were run."""
    from labelsieve.engine.device import choose_device
    from labelsieve.engine.fast import speed_for
    from labelsieve.runs.environment import environment

    device, engine = choose_device(config.device), config.engine
    speed = speed_for(device, engine.precision, engine.compile, engine.capture)
    return {"environment": environment(device), "engine": asdict(speed) | {"deterministic": engine.deterministic}}


def _epoch_words(shape: Mapping[str, Any]) -> str:
    if "labelled" in shape:
        return f"{shape['method']} epoch, |X| = {shape['labelled']:,} of {shape['samples']:,}"
    return f"{shape['method']} epoch, {shape['trained']:,} pictures trained on, {shape['looked']:,} looked at"


def say_speed(result: "Bench") -> None:
    from labelsieve.terminal.console import console

    shape = result.shape
    rows = {
        "ceiling: images/s trained (4 batches)": f"{result.ceiling['trained']:,.0f}",
        "ceiling: images/s inferred (6 batches)": f"{result.ceiling['inferred']:,.0f}",
        **{name: f"{seconds:.3f} s" for name, seconds in result.parts_s.items()},
        _epoch_words(shape): f"{result.epoch_s:.3f} s",
        "engine_fraction": f"{result.engine_fraction:.3f}",
        "first step after the command": f"{result.startup_s:.1f} s",
    }
    if result.peak_gib is not None:
        rows["peak device memory, of tensors"] = f"{result.peak_gib:.2f} GiB"
        rows["taken from the device for them"] = f"{result.held_gib:.2f} GiB"
    console.print(two_columns(f"labelsieve bench: {shape['network']}, {result.device}", ("what", "figure"), rows))


def two_columns(title: str, header: tuple[str, str], rows: Mapping[str, str]) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column(header[0])
    table.add_column(header[1], justify="right")
    for words, figure in rows.items():
        table.add_row(words, figure)
    return table


def say_profile(
    name: str,
    device: str,
    network: str | None,
    samples: int | None,
    classes: int,
    settings: list[str] | None,
    json_file: Path | None,
) -> None:
    """One step at a large size, apart and together, on made pictures that lie on the host."""
    from labelsieve.benchmark.large import mapped_rows, profile
    from labelsieve.config.fitting import fitted
    from labelsieve.config.presets import clothing1m
    from labelsieve.config.resolve import parse_settings, validate, validate_for
    from labelsieve.config.schema import Config, override
    from labelsieve.engine.device import choose_device
    from labelsieve.errors import UsageError
    from labelsieve.terminal.console import console

    if name != "large":
        raise UsageError(f'there is no profile "{name}"; there is one: large')
    cuda = choose_device(device).type == "cuda"
    chosen = {"device": device, "network": network or ("resnet50" if cuda else "small"), "engine.pictures": "host"}
    chosen["data.source"] = "made pictures"
    tiny = {"pictures.size": 64, "views.crop": 56, "training.batch": 8, "engine.eval_batch": 32}
    config = override(Config(), clothing1m() | chosen | ({} if cuda else tiny) | parse_settings(settings or ()))
    validate(config)
    if config.engine.pictures != "host":  # on a GPU there would be nothing to fetch
        raise UsageError("--profile large fetches pictures from the host; leave engine.pictures as it is")
    side, steps = config.pictures.size or 256, 96 if cuda else 2
    with mapped_rows(samples or (6144 if cuda else 96), classes, side) as rows:
        config, _ = fitted(config, rows.data.shape, len(rows.data), cuda)
        validate_for(override(config, {"training.warmup_batch": config.training.batch}), rows.data)  # no warm-up is timed
        found = profile(config, rows, steps, console.print)
    batch = config.training.batch
    say_step(found, f"{config.views.crop or side} of {side} px, batch {batch} + {batch}")
    more = {"data_ms": found.data_ms, "waiting_ms": found.waiting_ms, "waits": found.waits}
    write_json(json_file, asdict(found) | more | made_with(config))


def say_step(found: "Profile", seen: str) -> None:
    from labelsieve.terminal.console import console

    rows = {
        "the networks alone (step time)": found.step_ms,
        "views, made on the device": found.views_ms,
        "pictures, host to device": found.fetch_ms,
        "views and pictures (data time)": found.data_ms,
        "together, as training runs it": found.together_ms,
        "of that, waiting for pictures": found.waiting_ms,
    }
    figures = {words: f"{value:.2f}" for words, value in rows.items()}
    console.print(two_columns(f"{found.network}, {seen}, {found.device}", ("a step", "ms"), figures))
    console.print(f"evidence: {found.gathered_per_s:,.0f} pictures/s")
    console.print("the step waits for its pictures" if found.waits else "the step does not wait for its pictures")


def say_scale(
    sizes: str,
    device: str,
    network: str | None,
    classes: int,
    method: str,
    settings: list[str] | None,
    json_file: Path | None,
    picture: Path | None,
) -> None:
    """Whole runs of two epochs on made pictures of each size."""
    from labelsieve.benchmark.growth import draw, facts_of, grown
    from labelsieve.config.resolve import cleaner_of, parse_settings, validate
    from labelsieve.config.schema import Config, override
    from labelsieve.errors import UsageError
    from labelsieve.terminal.console import console

    counts = sizes_of(sizes, classes)
    if picture is not None:
        check_new("--picture", picture)
        if find_spec("matplotlib") is None:
            raise UsageError(
                "--picture is drawn with matplotlib, which is missing; install it with: pip install labelsieve[figures]"
            )
    chosen = {
        "method": method,
        "cleaner": cleaner_of(method),
        "device": device,
        "network": network or "small",
        "data.source": "made pictures",
        "engine.pictures": "host",
        "engine.eval_batch": 2048,
        "training.epochs": 2,
        "training.warmup": 1,
        "training.batch": 256,
        "training.warmup_batch": 512,
        "training.mixed": True,
        "training.lambda_u": 25.0,
        "output.checkpoint_seconds": 1e9,
    }
    config = override(Config(), chosen | parse_settings(settings or ()))
    validate(config)
    found = grown(config, counts, classes, config.pictures.size or 64, console.print)
    console.print(scale_table(found))
    if picture is not None:
        draw(found, picture)
    write_json(json_file, facts_of(found) | made_with(config))


def sizes_of(text: str, classes: int) -> list[int]:
    from labelsieve.errors import UsageError

    parts = text.replace(" ", "").split(",")
    if not all(part.isascii() and part.isdigit() and int(part) >= 10 * classes for part in parts):
        raise UsageError(f"--scale {text}: give numbers of pictures with commas between them, of {10 * classes:,} or more each")
    return sorted({int(part) for part in parts})


def scale_table(found: "list[Grown]") -> "Table":
    from rich.table import Table

    from labelsieve.benchmark.growth import exponents

    power = exponents(found)
    table = Table(
        title=f"labelsieve bench --scale, {found[-1].device}: seconds, and GiB of the host's memory", title_justify="left"
    )
    table.add_column("stage")
    for one in found:
        table.add_column(f"{one.samples:,}", justify="right")
    table.add_column("grows as", justify="right")
    for name in dict.fromkeys(name for one in found for name in one.stages):
        cells = [
            f"{one.stages[name].seconds:.1f} s  {one.stages[name].host_gib:.2f}" if name in one.stages else "not run"
            for one in found
        ]
        table.add_row(name, *cells, f"N^{power[name]:.2f}" if name in power else "")
    if any(one.waits is not None for one in found):
        table.add_row("the device waits", *("" if one.waits is None else f"{100 * one.waits:.1f} %" for one in found), "")
    return table
