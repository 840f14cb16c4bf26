"""`labelsieve predict RUN PATH...`: what a run's networks say of new pictures, as CSV or JSON lines."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def predict(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Picture files, and folders of pictures.")],
    top: Annotated[int, typer.Option(min=1, help="How many classes to give for each picture.")] = 3,
    form: Annotated[str | None, typer.Option("--format", help="csv or jsonl; default: by the name of --out, else csv.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; default: standard output.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Pictures that are looked at in one go.")] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
) -> None:
    """Classify pictures: both networks' probabilities, averaged. One that cannot be read gets a line that says why."""
    from rich.console import Console

    from labelsieve.data.pictures.unlabelled import find_pictures
    from labelsieve.engine.device import choose_device
    from labelsieve.errors import ToolError, UsageError
    from labelsieve.runs import atomic
    from labelsieve.runs.model import load_model
    from labelsieve.runs.predict import FORMATS, Predicted, predictions
    from labelsieve.runs.validate import choice

    if form is None:
        form = "jsonl" if out is not None and out.suffix.lower() in (".jsonl", ".ndjson") else "csv"
    choice("format", form, tuple(FORMATS))
    if out is not None and (out.is_dir() or any(out.absolute() == path.absolute() for path in paths)):
        raise UsageError(f"{out}: it is a folder or one of the pictures; choose another --out")
    model = load_model(run, choose_device(device))
    found = find_pictures(paths)
    aside = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
    broken: list[Predicted] = []

    def write(stream) -> None:  # type: ignore[no-untyped-def]
        lines = FORMATS[form](min(top, len(model.classes)))
        stream.write(lines.header())
        done = 0
        for some in predictions(model, found, min(top, len(model.classes)), batch):
            for one in some:
                stream.write(lines.line(one))
                if one.error is not None:
                    broken.append(one)
            stream.flush()
            done += len(some)
            if done < len(found):
                aside.print(f"{done:,} of {len(found):,} pictures")

    def write_file(draft: Path) -> None:
        with draft.open("w", encoding="utf-8", newline="") as stream:
            write(stream)

    if out is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        write(sys.stdout)
    else:
        atomic.write_file(out, write_file)
    for what, count in found.ignored.items():
        aside.print(f"passed over: {what}: {count:,}")
    if broken:
        aside.print(f"{len(broken):,} of {len(found):,} pictures could not be read; see the column error", style="yellow")
    if len(broken) == len(found):
        raise ToolError(f"{broken[0].path}: {broken[0].error}; none of the {len(found)} pictures could be read")
