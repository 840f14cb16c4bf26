"""`labelsieve predict` and `evaluate`: a trained model on new pictures, unlabelled or labelled."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from labelsieve.cli.picture_options import Said, reads_data

if TYPE_CHECKING:
    from labelsieve.predict.predict import Lines, NewSamples, Predicted
WORDS = {
    "first": "network 1",
    "second": "network 2",
    "both": "both networks",
    "both_top5": "both networks, among their first five",
    "prototypes_first": "prototypes of network 1",
    "prototypes_second": "prototypes of network 2",
    "prototypes": "both networks' prototypes",
}


@reads_data("image_column", "label_column", "id_column", "root", "encoding")
def evaluate(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    data: Annotated[
        str | None, typer.Argument(help="Labelled pictures in any layout, or a named data set; default: the run's own test set.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    said: Said,
) -> None:
    """Measure a run's accuracy on labelled pictures. Classes are matched by name.

    DATA is read like the run's own data; a column that is missing is looked for by its usual names.
    """
    from rich.console import Console

    from labelsieve.predict.model import evaluate_model
    from labelsieve.terminal.looking import Looking

    with Looking(Console(stderr=True, soft_wrap=True)).shown() as watch:
        result = evaluate_model(run, data, device, watch.progress, said.of_data("evaluate"))
    if as_json:
        typer.echo(json.dumps(result))
    else:
        say_result(result)


def say_result(result: dict[str, Any]) -> None:
    """What `evaluate_model` gives, in words."""
    from rich.table import Table

    from labelsieve.runs.findings import things_of
    from labelsieve.terminal.console import console

    things = things_of(result["data"])
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in result["accuracy"].items():
        low, high = result["interval"]
        table.add_row(WORDS[name], f"{value:.2f} %", f"({low:.2f} to {high:.2f} %)" if name == "both" else "")
    what = "labelled" if result["split"] == "all" else result["split"]
    console.print(f"accuracy on {result['pictures']:,} {what} {of(result['pictures'], things)} of {result['data']}")
    console.print(table)
    console.print(f"in brackets: the 95 % interval for this many {things}")
    for name, found in result["also"].items():
        console.print(f"accuracy on {name}: " + ", ".join(f"{WORDS[key]} {value:.2f} %" for key, value in found.items()))
    if gone := result["also_left_out"]:
        console.print(f"left out of {', '.join(result['also'])}: {gone:,} unreadable {of(gone, 'pictures')}", style="yellow")
    if gone := result["left_out"]:
        console.print(f"left out: {gone:,} {of(gone, 'pictures')} that could not be read", style="yellow")
    for note in result["notes"]:
        console.print(f"note: {note}", style="yellow")
    if result["trained_on"]:
        console.print(f"note: the run was trained on these very {things}, and their labels may be wrong", style="yellow")


def of(count: int, things: str) -> str:
    """`things` as that many of them are called."""
    return things.removesuffix("s") if count == 1 else things


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
        self.computed: list[str] = []
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
        from labelsieve.predict.predict import CsvLines
        from labelsieve.terminal.console import visible
        from labelsieve.texts import computed

        stream.write(self.lines.header())
        done, shown = 0, visible if stream.isatty() else str
        for some in answers:
            stream.writelines(shown(self.lines.line(one)) for one in some)
            stream.flush()
            self.broken += (one for one in some if one.error is not None)
            self.computed += (one.path for one in some if isinstance(self.lines, CsvLines) and computed(one.path))
            done += len(some)
            if done < self.found.count:
                self.aside.print(f"{done:,} of {self.found.count:,} {self.found.things}")

    def _tell(self, out: Path | None) -> None:
        from labelsieve.data.doubts import formulas

        for what, times in self.found.ignored.items():
            self.aside.print(f"passed over: {what}: {times:,}")
        for note in formulas(self.computed, self.found.key, str(out or "what is printed")):
            self.aside.print(f"note: {note}", style="yellow")
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
