"""`labelsieve train DATA --out RUN` and `resume RUN`: from what the user says to a finished run folder.

`--gpus N` gives the same command again as N processes, started as torchrun does.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsieve.cli.picture_options import OPTIONS, Said, Settings, copied_here, reads_data

if TYPE_CHECKING:
    from labelsieve.config.schema import Config
    from labelsieve.train.ranks import Meeting

Gpus = Annotated[
    int | None,
    typer.Option(min=1, help="Train with this many processes, one per GPU of this machine; with --device cpu, on its cores."),
]
PATIENT = 24 * 3600  # seconds that torchrun waits after a first Ctrl-C: the epoch is trained to its end


def is_rank() -> bool:
    return "RANK" in os.environ


def launch(gpus: int, device: str | None) -> None:
    """Start the processes, wait for them, and end as they did."""
    from labelsieve.engine.device import choose_device, usable_cores
    from labelsieve.errors import UsageError

    kind = choose_device(device or "auto").type
    import torch
    import torch.distributed as dist

    if kind == "cpu" and device != "cpu":
        raise UsageError(f"--gpus {gpus}: torch {torch.__version__} sees no GPU here; leave it out, or add --device cpu")
    if kind == "cuda" and gpus > torch.cuda.device_count():
        raise UsageError(f"--gpus {gpus}: there are {torch.cuda.device_count()} here; use --gpus {torch.cuda.device_count()}")
    if not dist.is_available():
        raise UsageError(f"--gpus {gpus}: torch {torch.__version__} was built without torch.distributed; leave it out")
    wait_for_the_epoch()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, usable_cores() // gpus)))
    raise typer.Exit(_ran(gpus))


def wait_for_the_epoch() -> None:
    """Before torch 2.12, torchrun kills what runs 30 seconds after a signal and cannot be told otherwise but here."""
    from torch.distributed.elastic.multiprocessing.api import PContext

    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", str(PATIENT))
    PContext.close.__defaults__ = (None, PATIENT)  # which signal, how long


def _ran(gpus: int) -> int:
    """The exit code of the processes. torchrun's own account of how they ended would bury what they say."""
    import logging

    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable(logging.CRITICAL)
    here = {"rdzv_backend": "c10d", "rdzv_endpoint": "127.0.0.1:0", "local_addr": "127.0.0.1", "run_id": str(os.getpid())}
    config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=gpus, max_restarts=0, **here)  # type: ignore[arg-type]
    try:
        elastic_launch(config, sys.executable)("-m", "labelsieve", *sys.argv[1:])
    except ChildFailedError as error:
        codes = [failure.exitcode for failure in error.failures.values()]
        return next((code for code in codes if code > 0), 1)
    except SignalException as error:
        return 128 + int(error.sigval)
    return 0


@contextmanager
def among_others(gpus: int | None, device: str | None) -> "Iterator[Meeting | None]":
    """This process's meeting with the others that torchrun started, if it did. Only the first of them speaks."""
    if gpus is not None and gpus > 1 and not is_rank():
        launch(gpus, device)
    if not is_rank():
        yield None
        return
    from labelsieve.terminal.console import shortened, visible
    from labelsieve.train.ranks import meeting

    with meeting(device, lambda words: typer.echo(f"error: {shortened(visible(words))}", err=True)) as met:
        yield met


TimeLimit = Annotated[
    str | None,
    typer.Option(help="Stop cleanly within this time: 9m, 1h30m. Continue with `resume`."),
]


MethodFile = Annotated[
    Path | None,
    typer.Option(help="A Python file with a method of your own. It is run: use only files you trust.", metavar="FILE.py"),
]


@reads_data(*OPTIONS, settings=Settings, copies=False)
def train(
    data: Annotated[
        str | None,
        typer.Argument(
            help="A folder with one folder per class, a table of paths and labels (CSV, TSV, Parquet, JSON lines), a saved "
            "data set, arrays or vectors (npz, npy, Parquet); or digits, cifar10:PATH, cifar100:PATH, "
            "fashion-mnist[:PATH], clothing1m:PATH, webvision:PATH. With --decisions you can leave it out: "
            "then it is the reviewed run's data."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to create; it must not exist.")] = None,
    preset: Annotated[str | None, typer.Option(help="A named group of settings; see `labelsieve presets`.")] = None,
    method: Annotated[str | None, typer.Option(help="Which method; `labelsieve methods` lists them. Default: cpc.")] = None,
    method_file: MethodFile = None,
    cleaner: Annotated[str | None, typer.Option(help="gmm-agn, gmm-awr, cpc-agn, cpc-awr or contrastive.")] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Wrong labels to make on purpose: sym:0.5, sym-other:0.5, asym:0.4, pair:0.3, confuse:0.2, matrix:FILE, "
            "file:FILE, cifar-n:FILE:worse."
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="auto, small, small-wide, preact-resnet18(-identity), preact-resnet34, resnet18(-cifar), resnet50 or timm:NAME."
        ),
    ] = None,
    pretrained: Annotated[
        str | None,
        typer.Option(help="Weights to start from: a safetensors or torch file, or zoo to download timm's own."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="auto (the default: by your photos, device and weights), frozen (two small heads on a backbone's features), "
            "tuned (the backbone itself is trained) or none (from scratch)."
        ),
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="A pretrained network of timm for the features.")] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="A file with the backbone's weights; default: timm's own, downloaded if need be."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Download nothing.")] = False,
    trusted: Annotated[
        Path | None, typer.Option(help="Ids of labels you are sure of: one per line, or a table with a column id.")
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A reviewed run: start the next round with its decisions, its data and, unless you say otherwise, its settings.",
        ),
    ] = None,
    on_conflict: Annotated[
        str | None, typer.Option(help="If reviewers disagree: refuse (the default), latest or undecided.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="How common the classes are: given (as in the labels), uniform, or a table with the columns class, frequency."
        ),
    ] = None,
    *,
    said: Said,
    epochs: Annotated[int | None, typer.Option(help="Number of epochs, warm-up included.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only rank the labels, in a few epochs; no full training.")] = False,
    limit: Annotated[int | None, typer.Option(help="Train on a fixed subset of this size.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed: weights, order, views and noise.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    gpus: Gpus = None,
    batchnorm: Annotated[
        str | None,
        typer.Option(help="How several processes normalise: whole (by the whole batch, the default) or rank (each by its part)."),
    ] = None,
    time_limit: TimeLimit = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run folder if it exists.")] = False,
    slim_checkpoint: Annotated[
        bool,
        typer.Option("--slim-checkpoint", help="When stopped, also write RUN/slim: a checkpoint in files of at most 16 MiB."),
    ] = False,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="On a GPU, use only kernels that repeat bit for bit; slower.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="With --dry-run: show every setting, too.")] = False,
) -> None:
    """Train on DATA and find its wrong labels."""
    began = time.monotonic()
    from labelsieve.config.presets import crossed_keys, spoils_own
    from labelsieve.config.resolve import parse_settings, unheeded
    from labelsieve.config.schema import to_yaml
    from labelsieve.data.pictures.recognise import looked_at_once
    from labelsieve.data.sources import whole_path
    from labelsieve.errors import UsageError
    from labelsieve.terminal.console import console, parse_duration
    from labelsieve.terminal.training import opened, show_training

    with among_others(None if dry_run else gpus, device) as met, looked_at_once():
        data = None if data is None else copied_here(data, said)  # here, for what is wrong with it one rank says for all
        if method_file is not None:
            from labelsieve.methods.registry import run_method_file

            method = run_method_file(method_file) if method is None else method
        if on_conflict is not None and decisions is None:
            raise UsageError("--on-conflict goes with --decisions RUN, whose reviewers may disagree; leave it out")
        options = said.options | {
            "method": method,
            "cleaner": cleaner,
            "network": network,
            "pretrained": pretrained,
            "seed": seed,
            "device": device,
            "data.noise": noise,
            "data.limit": limit,
            "data.trusted": trusted,
            "data.on_conflict": on_conflict,
            "training.prior": prior if prior in (None, "given", "uniform") else f"file:{whole_path(prior)}",
            "training.epochs": epochs,
            "training.quick": quick or None,
            "output.slim_checkpoint": slim_checkpoint or None,
            "engine.deterministic": deterministic or None,
            "engine.batchnorm": batchnorm,
        }
        looks = {"use": features, "backbone": backbone, "weights": weights, "offline": offline or None}
        options |= {f"features.{name}": value for name, value in looks.items()}
        if decisions is None and data is not None:
            data, looking = _eyes(data, options, said.settings, preset is not None)
            options |= looking
        elif any(value is not None for value in looks.values()):
            raise UsageError(
                "a next round looks at pictures as the reviewed run did; leave out --features, --backbone and --weights"
            )
        if verbose and not dry_run:
            raise UsageError("--verbose is for --dry-run; a run keeps every setting in its config.yaml")
        config = config_for(data, decisions, preset, options, said.settings)
        told = parse_settings(said.settings).keys() | {key for key in ("pictures.mirror",) if said.options.get(key) is not None}
        made = spoils_own(preset, config.data.source, told | ({"data.noise"} if noise else set())) if preset else ""
        for note in filter(None, (unheeded(config, told | (crossed_keys(preset) if preset else set())), made)):
            console.print(f"note: {note}", style="yellow")
        if dry_run:
            from labelsieve.cli.dry_run import say_plan

            say_plan(config, out, verbose)
            return
        if out is None:
            raise UsageError("no run folder is named; add --out RUN")
        if met is not None:
            met.compare("settings", to_yaml(config), "give all processes the same command")
        seconds = parse_duration(time_limit) if time_limit else None
        show_training(opened(out, config, resume, met), seconds, began)


def _eyes(data: str, options: dict[str, Any], settings: list[str], preset: bool) -> tuple[str, dict[str, Any]]:
    """What DATA is, and how its pictures are looked at; why is said in one line."""
    from labelsieve.config.resolve import given_by, source_of
    from labelsieve.config.schema import Config
    from labelsieve.runs.features import eyes_for
    from labelsieve.terminal.console import console

    given = given_by(options, settings)
    source = source_of(data, Config(), given)
    found = eyes_for(source, given, preset)
    if found.why:
        console.print(found.why)
    return source, dict(found.settings)


def config_for(
    data: str | None, decisions: Path | None, preset: str | None, options: dict[str, Any], settings: list[str]
) -> "Config":
    """The whole configuration: for DATA alone, or for the round after a reviewed run."""
    from labelsieve.config.moved import check_there
    from labelsieve.config.resolve import resolve, resolve_next
    from labelsieve.errors import UsageError, command
    from labelsieve.runs.folder import RunFolder
    from labelsieve.runs.rounds import based_on

    if decisions is not None:
        base = based_on(RunFolder.open(decisions).read_config(), decisions)
        if data is None:
            now = command("train", Path("DATA"), "--decisions", str(decisions), "--out", "NEXT")
            check_there(base.data.source, f"as DATA: {now}")
        return resolve_next(base, data, named=preset, options=options, settings=settings)
    if data is None:
        raise UsageError("no data are named; give a folder, a table or a data set, or --decisions RUN for a reviewed run's")
    return resolve(data, named=preset, options=options, settings=settings)


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
    with among_others(gpus, device) as met:
        source = source_at(copied_here(data, Said({}, []))) if data else None
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
