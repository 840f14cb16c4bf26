"""`labelsieve predict RUN PATH...`: what a run's networks say of new pictures or vectors, as CSV or JSON lines."""

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer


def predict(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Picture files and folders of them; for a run on vectors: .npz, .npy, .parquet files. A dash: their names come "
            "from standard input, one a line or, as `find -print0` writes them, with zero bytes between.",
        ),
    ],
    top: Annotated[int, typer.Option("--top", "--top-k", min=1, help="How many classes to give for each picture.")] = 3,
    form: Annotated[str | None, typer.Option("--format", help="csv or jsonl; default: by the name of --out, else csv.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The .csv or .jsonl file to write, which must not exist; default: standard output.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Pictures that are looked at in one go.")] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
) -> None:
    """Classify pictures or vectors: both networks' probabilities, averaged. What cannot be read gets a line that says why."""
    from rich.console import Console

    from labelsieve.data.pictures.unlabelled import find_pictures
    from labelsieve.engine.device import choose_device
    from labelsieve.errors import ToolError, UsageError
    from labelsieve.runs import atomic
    from labelsieve.runs.folder import RunFolder
    from labelsieve.runs.model import load_model
    from labelsieve.runs.predict import FORMATS, Predicted, find_vectors, predictions, vector_predictions
    from labelsieve.runs.validate import choice

    form = form or form_of(out)
    choice("format", form, tuple(FORMATS))
    if out is not None and os.path.lexists(out):
        raise UsageError(f"{out}: it exists, and nothing that exists is overwritten; choose another --out")
    paths = with_piped(paths)
    model = load_model(run, choose_device(device))
    shown = min(top, len(model.classes))
    vectors = len(model.shape) == 1
    if vectors:
        rows = find_vectors(model, RunFolder.open(run).read_config(), paths)
        count, kind, answers, ignored = len(rows), "vectors", vector_predictions(model, rows, shown, batch), Counter[str]()
    else:
        refuse_arrays(paths)
        found = find_pictures(paths)
        count, kind, answers, ignored = len(found), "pictures", predictions(model, found, shown, batch), found.ignored
    aside = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
    broken: list[Predicted] = []

    def write(stream) -> None:  # type: ignore[no-untyped-def]
        lines = FORMATS[form](shown, "id" if vectors else "path")
        stream.write(lines.header())
        done = 0
        for some in answers:
            for one in some:
                stream.write(lines.line(one))
                if one.error is not None:
                    broken.append(one)
            stream.flush()
            done += len(some)
            if done < count:
                aside.print(f"{done:,} of {count:,} {kind}")

    def write_file(draft: Path) -> None:
        with draft.open("w", encoding="utf-8", newline="") as stream:
            write(stream)
        refuse_nothing()  # or an --out without a single answer would stand in the way of the next try

    def refuse_nothing() -> None:
        if len(broken) == count:
            raise ToolError(f"{broken[0].path}: {broken[0].error}; none of the {count} pictures could be read")

    if out is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        write(sys.stdout)
    else:
        atomic.write_file(out, write_file)
    for what, times in ignored.items():
        aside.print(f"passed over: {what}: {times:,}")
    if broken:
        aside.print(f"{len(broken):,} of {count:,} pictures could not be read; see the column error", style="yellow")
    refuse_nothing()


def with_piped(paths: list[Path]) -> list[Path]:
    """The paths, and in place of a dash the names that standard input holds."""
    if Path("-") not in paths:
        return paths
    from labelsieve.errors import UsageError

    text = os.fsdecode(sys.stdin.buffer.read())
    names = text.split("\0") if "\0" in text else [line.removesuffix("\r") for line in text.split("\n")]
    piped = [Path(name) for name in names if name]
    if not piped:
        raise UsageError("-: standard input holds no names; pipe some in, such as `find DIR -name '*.jpg' | labelsieve predict`")
    return [name for path in paths for name in (piped if path == Path("-") else [path])]


def form_of(out: Path | None) -> str:
    """csv or jsonl by the file's ending; another ending is an error, for the file would not be what it says."""
    from labelsieve.errors import UsageError

    endings = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    if out is None:
        return "csv"
    if out.suffix.lower() not in endings:
        raise UsageError(f"{out}: predictions are written as CSV or JSON lines; name a .csv or .jsonl file, or add --format")
    return endings[out.suffix.lower()]


def refuse_arrays(paths: list[Path]) -> None:
    """Arrays of pictures are a data set with labels, which `evaluate` reads; here they would pass for broken pictures."""
    from labelsieve.errors import UsageError

    for path in paths:
        if path.suffix.lower() in (".npz", ".npy", ".parquet"):
            raise UsageError(
                f"{path}: this run's model looks at pictures, which `predict` reads from picture files and folders; write "
                f"them as such, or measure on labelled arrays with `labelsieve evaluate`"
            )
