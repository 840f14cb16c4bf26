"""Shows the reading of data: a bar on a terminal, a line now and then elsewhere; then what was found and left out."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from labelsieve.terminal.console import console, say_duration

if TYPE_CHECKING:
    from labelsieve.backbones.backbone import Backbone
    from labelsieve.data.pictures.decoding import Plan
    from labelsieve.runs.rows import Rows, Watch

EVERY = 10.0  # seconds between two plain lines
WORDS = {"looking": "looking at pictures", "decoding": "decoding pictures", "embedding": "computing features"}
WORDS["judging"] = "judging labels: epochs of networks that have not seen them"


class Looking:
    """Called as data are read. `out` is where it is shown."""

    def __init__(self, out: Console = console) -> None:
        self.out = out
        self.bar: Progress | None = None
        self.tasks: dict[str, Any] = {}
        self.said = time.monotonic()
        self.first: dict[str, tuple[float, int]] = {}  # when a kind of work was first heard of, and how much was done then

    def progress(self, what: str, done: int, total: int) -> None:
        words, now = WORDS.get(what, what), time.monotonic()
        since, before = self.first.setdefault(what, (now, done))
        if self.bar is not None:
            if what not in self.tasks:
                self.tasks[what] = self.bar.add_task(words, total=total)
            self.bar.update(self.tasks[what], completed=done, total=total)
        elif now - self.said >= EVERY:
            self.said = now
            left = (total - done) * (now - since) / (done - before) if done > before else 0
            self.out.print(f"{words}: {done:,} of {total:,}" + (f", about {say_duration(left)} left" if left else ""))

    def tell(self, plan: "Plan", cache: Path, count: int) -> None:
        """Said before anything is decoded."""
        from labelsieve.texts import byte_count

        kept = "already decoded in" if (cache / "pixels.npy").exists() else "decoded once, into"
        self.out.print(
            f"{count:,} pictures as {plan.channels} x {plan.size} x {plan.size} pixels, {byte_count(plan.bytes)}, {kept} {cache}"
        )

    def embed(self, backbone: "Backbone", folder: Path, known: int, count: int) -> None:
        """Said before features are computed."""
        frame, which = backbone.sight.frame, f"{known:,} of them are known already" if known else "none of them is known yet"
        which = "all of them are known already" if known == count else which
        self.out.print(
            f"{count:,} pictures through {backbone.name}, at {frame.height} x {frame.width} pixels: {backbone.width:,} features "
            f"each, kept in {folder}; {which}"
        )

    @contextmanager
    def shown(self) -> "Iterator[Watch]":
        from labelsieve.runs.features import Shown
        from labelsieve.runs.rows import Watch

        watch = Watch(self.progress, self.tell, Shown(self.out.print, self.embed))
        if not self.out.is_terminal:
            yield watch
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self.out, transient=True) as self.bar:
            yield watch
        self.bar = None


def say_rows(rows: "Rows", choices: tuple[str, ...], left_out_file: Path | None) -> None:
    """What was read, what was left out, what was chosen, and what to be careful about."""
    from labelsieve.data.doubts import doubts
    from labelsieve.runs.folder import counts
    from labelsieve.texts import quoted

    if rows.opened is not None:
        console.print(f"{rows.opened.layout.path}: {rows.opened.layout.kind} ({rows.opened.layout.why})")
        if rows.opened.ignored:
            passed = ", ".join(f"{what}: {count:,}" for what, count in rows.opened.ignored.items())
            console.print(f"passed over: {passed}")
    if rows.left_out:
        first, what = rows.left_out[0], "picture" if len(rows.left_out) == 1 else "pictures"
        where = f"; all are in {left_out_file}" if left_out_file is not None else ""
        console.print(
            f"left out: {len(rows.left_out):,} {what}, the first is {quoted(first.path)}: {first.reason}{where}",
            style="yellow",
        )
    for line in (*choices, *(f"note: {note}" for note in rows.notes)):
        console.print(line)
    for doubt in doubts(counts(rows)):
        console.print(f"warning: {doubt}", style="yellow")
