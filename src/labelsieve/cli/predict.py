"""`labelsieve predict RUN PATH...`: what a run's networks say of new pictures or vectors, as CSV or JSON lines."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from labelsieve.cli.picture_options import Said, reads_data

if TYPE_CHECKING:
    from labelsieve.predict.predict import Lines, NewSamples, Predicted

SOME_UNREAD = 3  # exit code: all that can be read was answered, and a file that was asked for by name is not among it


@reads_data("image_column", "id_column", "root", "encoding")
def predict(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Picture files and folders of them, or data as train reads them: tables, saved data sets, Parquet files with "
            "pictures in them, .npz arrays; for a run on vectors: .npz, .npy, .parquet files. A dash reads names "
            "from standard input: one per line, or with zero bytes between them, as `find -print0` writes them.",
        ),
    ],
    top: Annotated[int, typer.Option("--top", "--top-k", min=1, help="How many classes to print per picture.")] = 3,
    form: Annotated[str | None, typer.Option("--format", help="csv or jsonl; default: by the name of --out, else csv.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The .csv or .jsonl file to write, which must not exist; default: standard output.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Pictures per batch.")] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    *,
    said: Said,
) -> None:
    """Classify pictures or vectors. What cannot be read gets a line that says why.

    Labels are not needed, nor read. Rows of data sets go by their ids, of every split. It ends with 3 where a file that is
    named, not found in a folder or a data set, cannot be read; the others have their predictions then.
    """
    from labelsieve.config.setting import Rule
    from labelsieve.engine.device import choose_device
    from labelsieve.errors import UsageError
    from labelsieve.predict.model import load_model
    from labelsieve.predict.predict import FORMATS, find_samples, predictions
    from labelsieve.runs.atomic import clear_up
    from labelsieve.runs.folder import RunFolder

    form = form or form_of(out)
    Rule("the form of the output", choices=tuple(FORMATS)).check("format", form)
    if out is not None and os.path.lexists(out):
        clear_up(out)
        raise UsageError(f"{out}: it exists, and nothing that exists is overwritten; choose another --out")
    paths = with_piped(paths)
    model = load_model(run, choose_device(device))
    shown = min(top, len(model.classes))
    found = find_samples(model, RunFolder.open(run).read_config(), paths, said.of_data("predict"))
    answers = predictions(model, found.chunks, shown, batch)
    writing = Writing(found, FORMATS[form](shown, found.key))
    writing.to(out, answers)
    if any(one.path in found.named for one in writing.broken):
        raise typer.Exit(SOME_UNREAD)


class Writing:
    """Predictions on their way to a file or standard output; how far they are, and what could not be read, is said beside."""

    def __init__(self, found: "NewSamples", lines: "Lines") -> None:
        from labelsieve.terminal.console import PlainConsole

        self.found, self.lines = found, lines
        self.broken: list[Predicted] = []
        self.aside = PlainConsole(stderr=True)

    def to(self, out: Path | None, answers: "Iterable[list[Predicted]]") -> None:
        """All answers, then what was noticed; a `ToolError` where there is not a single answer."""
        from labelsieve.runs import atomic

        def write_file(draft: Path) -> None:
            with draft.open("w", encoding="utf-8", newline="") as stream:
                self._write(stream, answers)
            self._refuse_nothing()  # or an --out without a single answer would stand in the way of the next try

        for note in self.found.notes:
            self.aside.print(f"note: {note}")
        if out is None:
            sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
            self._write(sys.stdout, answers)
        else:
            atomic.write_new(out, write_file)
        self._tell(out)
        self._refuse_nothing()

    def _write(self, stream: TextIO, answers: "Iterable[list[Predicted]]") -> None:
        from labelsieve.terminal.console import visible

        stream.write(self.lines.header())
        done, shown = 0, visible if stream.isatty() else str
        for some in answers:
            stream.writelines(shown(self.lines.line(one)) for one in some)
            stream.flush()
            self.broken += (one for one in some if one.error is not None)
            done += len(some)
            if done < self.found.count:
                self.aside.print(f"{done:,} of {self.found.count:,} {self.found.things}")

    def _tell(self, out: Path | None) -> None:
        for what, times in self.found.ignored.items():
            self.aside.print(f"passed over: {what}: {times:,}")
        if self.broken:
            self.aside.print(
                f"{len(self.broken):,} of {self.found.count:,} {self.found.things} could not be read; see the column error",
                style="yellow",
            )
        done = self.found.count - len(self.broken)
        if out is not None and done:
            count = f"{done:,}" if not self.broken else f"{done:,} of {self.found.count:,}"
            self.aside.print(f"predictions for {count} {self.found.things}: {out}")

    def _refuse_nothing(self) -> None:
        from labelsieve.errors import ToolError

        if len(self.broken) == self.found.count:
            first, things = self.broken[0], self.found.things
            raise ToolError(f"{first.path}: {first.error}; none of the {self.found.count} {things} could be read")


def with_piped(paths: list[Path]) -> list[Path]:
    """The paths, and in place of a dash the names that standard input holds."""
    if Path("-") not in paths:
        return paths
    from labelsieve.doors import reading
    from labelsieve.errors import UsageError

    with reading("standard input", "pipe names of pictures in"):
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
