"""The one loop that trains a run: measures each epoch, leaves everything in its folder if it has one, and stops when asked.

`start` and `resume` (train/start.py) give a `Run`; iterating over `each_epoch(run, ...)` trains it and yields a `Progress` after
each epoch. The caller says when to stop (`Stopper`: Ctrl-C, SIGTERM, a time limit); a stop leaves a checkpoint and the issues
found so far.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from types import FrameType
from typing import Any

import torch

from labelsieve.config.method_settings import divides
from labelsieve.engine.dist import ALONE, Ranks
from labelsieve.errors import ToolError
from labelsieve.methods.contract import Method
from labelsieve.methods.epochs import FINAL, WARM_UP, Diverged, Epoch, learn, verdict_now
from labelsieve.methods.parts.estimate import NoiseEstimate, noise_by_neighbours
from labelsieve.results.card import write_card
from labelsieve.results.kept import write_early_losses
from labelsieve.results.likeness import features_of, laid_out, neighbours
from labelsieve.results.outcome import Outcome, label_issues, remember, scores_of, write_issues
from labelsieve.results.sample_issues import sample_issues
from labelsieve.runs import checkpoint
from labelsieve.runs.findings import findings
from labelsieve.train.decide import decide, left_open, seen_after_warm_up, with_decision
from labelsieve.train.run import Measure, Run, better, keep_answers, keep_estimate, keep_model, save, settle, tested

PASSED_ON = 10.0  # seconds within which torchrun passes on what each rank may have heard itself


def compile_seconds() -> float:
    """What this process has spent in torch.compile so far."""
    dynamo = sys.modules.get("torch._dynamo.utils")  # torch loads it with the first compilation
    if dynamo is None:
        return 0.0
    return float(dynamo.calculate_time_spent().get("total_wall_time", 0.0))


class Pace:
    """Splits the time that goes by into compilation, which happens once, and the rest, which the next epoch takes again."""

    def __init__(self) -> None:
        self.compiled = compile_seconds()

    def without_compilation(self, seconds: float) -> float:
        """Of `seconds` since it was asked last."""
        before, self.compiled = self.compiled, compile_seconds()
        return max(0.0, seconds - (self.compiled - before))


class Stopper:
    """Says when to stop after the current epoch: one more like the last would overrun the time limit, or a signal came.

    What the last epoch spent on compilation is not spent again, so it does not count. Of several ranks all stop where one should,
    and end with the same exit code.
    """

    def __init__(self, limit: float | None = None, began: float | None = None, ranks: Ranks = ALONE) -> None:
        """`began` is when the limit's clock started (`time.monotonic`), if before now: opening data may take minutes."""
        self.limit, self.ranks = limit, ranks
        self.last = time.monotonic()
        self.began = self.last if began is None else began
        self.signal: int | None = None
        self.heard = 0.0
        self.pace = Pace()

    def __call__(self) -> bool:
        now = time.monotonic()
        epoch, self.last = self.pace.without_compilation(now - self.last), now
        over = self.limit is not None and now - self.began + epoch > self.limit
        why = self.ranks.most(self.exit_code or int(over))
        self.signal = why - 128 if why > 128 else self.signal
        return bool(why)

    @property
    def exit_code(self) -> int:
        """As shells say it: 130 for Ctrl-C, 143 for SIGTERM. With 0 a script would go on with a run that is not done."""
        return 0 if self.signal is None else 128 + self.signal

    @contextmanager
    def listening(self, say: Callable[[str], None]) -> Iterator[None]:
        """The first Ctrl-C or SIGTERM (schedulers, `kill`) asks for a stop after this epoch, the second stops at once.

        `say` is told of the first. A scheduler may signal every process, and torchrun passes on to ranks what it hears itself:
        that is one signal.
        """

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def heard(signum: int, frame: FrameType | None) -> None:
            if not self.ranks.meets:
                restore()
            if self.signal is None:
                self.signal, self.heard = signum, time.monotonic()
                again = "press Ctrl-C" if signum == signal.SIGINT else "send the signal"
                say(f"stopping after this epoch; {again} again to stop at once")
            elif time.monotonic() - self.heard > PASSED_ON:
                restore()
                signal.raise_signal(signum)

        before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            restore()


@dataclass(frozen=True)
class Progress:
    """What a caller shows after an epoch. `new_notes` should be said once; `left` are seconds, of the warm-up until it is over.

    How long mixed epochs take is not known before there was one.
    """

    epoch: int
    epochs: int
    record: dict[str, Any]
    seconds: float
    new_notes: tuple[str, ...]
    left: float = 0.0
    warming_up: bool = False


def each_epoch(
    run: Run,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    watch: Callable[[Epoch], None] = lambda epoch: None,
) -> Iterator[Progress]:
    """Train from where the run stands. `stop` is asked after each epoch; when it says so, the run is left ready to resume.

    `watch` is shown each epoch as the method leaves it, evidence included.
    """
    if run.done:
        return
    with run.only_one():
        measure = _measure(run)
        said = {note for record in run.metrics for note in record.get("notes", ())}
        pace = Pace()
        began = saved_at = clock()
        for epoch in _guarded(_epochs(run), run):
            record = _recorded(run, measure, epoch)
            watch(epoch)
            if run.folder is not None and epoch.verdict is not None and is_first_verdict(run, epoch):
                write_early_losses(run.folder, epoch.verdict, run.rows.data, run.rows.truth)
            seconds, began = clock() - began, clock()
            again = pace.without_compilation(seconds)
            _move_on(run, epoch, record, seconds)
            stopping = not run.done and stop()
            _write(run, epoch, stopping or run.done)
            # Last of all: a checkpoint promises that everything up to it is in place, so a killed run redoes the rest.
            if stopping or run.done or clock() - saved_at >= run.config.output.checkpoint_seconds:
                save(run, at_stop=stopping or run.done)
                saved_at = clock()
            notes = tuple(note for note in record.get("notes", ()) if note not in said)
            said.update(notes)
            epochs, warmup = run.parts.method.training.epochs, run.config.training.warmup
            warming_up = divides(run.config) and run.epoch < warmup < epochs
            left = again * ((warmup if warming_up else epochs) - run.epoch)
            if run.epoch == warmup and divides(run.config):  # the next epochs are of another kind
                left = 0.0
            yield Progress(run.epoch, epochs, record, seconds, notes, left, warming_up)
            if stopping:
                return
            began = clock()


def _recorded(run: Run, measure: Measure, epoch: Epoch) -> dict[str, Any]:
    """What is measured of an epoch; the model that it may become is chosen by it."""
    record = measure.record(epoch)
    if epoch.verdict is not None and is_first_verdict(run, epoch):
        if run.decision is not None:
            record = with_decision(record, run.decision)
        if run.parts.held is None and not epoch.verdict.rows:
            record["noise"] = asdict(noise_by_neighbours(epoch.verdict.seen))
    run.chosen = better(run.chosen, record, run.parts.method)
    if epoch.phase == FINAL and run.chosen is not None:
        record |= tested(run.chosen, run.config, run.rows, run.parts.method, run.parts.engine.device)
    return record


def _move_on(run: Run, epoch: Epoch, record: dict[str, Any], seconds: float) -> None:
    """The run stands after this epoch."""
    remember(run.history, epoch)
    run.epoch, run.done = min(epoch.index + 1, run.parts.method.training.epochs), epoch.phase == FINAL
    run.metrics.append(record)
    run.timings.append({"epoch": record["epoch"], "phase": epoch.phase, "seconds": round(seconds, 3)})


def _write(run: Run, epoch: Epoch, at_stop: bool) -> None:
    """Metrics and timings; where the run stops also what it found."""
    if at_stop:
        run.outcome = _outcome(run, epoch)
    if run.folder is None:
        return
    if at_stop:
        keep_answers(run)
        keep_model(run)
    run.folder.write_lines(run.folder.metrics, run.metrics)
    run.folder.write_lines(run.folder.timings, run.timings)
    if run.done:
        write_card(run.folder, run.found, run.record)


def _epochs(run: Run) -> Iterator[Epoch]:
    """The epochs from where the run stands; after the warm-up, what was left open is decided from what the networks see."""
    method, engine = run.parts.method, run.parts.engine
    if left_open(run.config) and run.decision is None:
        yield from learn(method, engine, run.epoch, stop=method.c.warmup)
        seen = seen_after_warm_up(method, engine)
        settle(run, decide(run.config, seen, run.parts.early_noise(seen)))
        keep_estimate(run)
    yield from learn(method, engine, run.epoch)


def _guarded(epochs: Iterator[Epoch], run: Run) -> Iterator[Epoch]:
    """A loss or a weight that is no number ends the run in words, before anything of that epoch is saved."""
    try:
        for epoch in epochs:
            ruined = _not_finite(run.parts.method)
            if ruined is not None:
                steps = [len(each.values) for each in epoch.trained if ruined in each.nets]
                last = f", step {steps[-1]}" if steps else ""
                number = min(epoch.index + 1, run.parts.method.training.epochs)
                raise _diverged(run, f"the weights of network {ruined + 1} are not finite after epoch {number}{last}")
            yield epoch
    except Diverged as error:
        raise _diverged(run, str(error)) from None


def _diverged(run: Run, what: str) -> ToolError:
    lower = f"{run.config.training.lr / 4:g}"
    if run.folder is None:
        return ToolError(f"{what}; try a lower learning rate, such as lr={lower}")
    return ToolError(
        f"{run.folder.path}: {what}. The checkpoint of epoch {checkpoint.load(run.folder.goes_on_from).epoch} is kept; "
        f"try a lower learning rate, for example --set training.lr={lower}, in a new run"
    )


def _not_finite(method: Method) -> int | None:
    """The first network whose weights, or whose cleaners', are no numbers.

    A loss is measured before its step, so an epoch's last step can ruin weights although all its losses were finite.
    """
    kept = {name: value for name, value in method.state_dict().items() if not name.startswith("teacher")}
    for net in method.nets:
        mine = [value for name, value in kept.items() if name.partition(".")[0].endswith(str(net.number))]
        weights = [value for value in (*net.state_dict().values(), *mine) if value.is_floating_point()]
        # One look for all of them: a device waits at each. A cleaner of the user's may keep its state elsewhere.
        if not bool(torch.stack([torch.isfinite(value).all().to(method.facts.device) for value in weights]).all()):
            return net.number
    return None


def early_noise(metrics: Sequence[Mapping[str, Any]]) -> NoiseEstimate | None:
    """What the samples that networks found alike said at the first division; None where there was none on all samples."""
    found = next((line["noise"] for line in metrics if "noise" in line), None)
    return None if found is None else NoiseEstimate(**(found | {"by_class": tuple(found["by_class"])}))


def is_first_verdict(run: Run, epoch: Epoch) -> bool:
    """Is this the first epoch that judges labels?"""
    return epoch.verdict is not None and not any("clean_share" in line for line in run.metrics)


def _measure(run: Run) -> Measure:
    rows, parts = run.rows, run.parts
    val = rows.val if run.config.output.model == "best-val" else None
    return Measure(rows.data, rows.truth, rows.test, parts.method, parts.engine, val, rows.collection.also)


def _outcome(run: Run, epoch: Epoch) -> Outcome | None:
    """What is found as the run stands; None in the warm-up and of a draw of the samples: then there is only a model.

    Into its folder go scores.npz, the list of issues, and for each issue the samples to compare it with.
    """
    verdict = epoch.verdict
    if verdict is None and epoch.phase != WARM_UP:
        verdict = verdict_now(run.parts.method, run.parts.engine)
    if verdict is None or verdict.rows:
        return None
    if run.parts.engine.ranks.rank:  # rank 0 writes
        return None
    rows, method, held = run.rows, run.parts.method, run.parts.held
    noise = run.parts.noise(verdict, early_noise(run.metrics))
    scores = scores_of(verdict, rows.data, method, run.history, noise, held)
    ranked = label_issues(verdict, rows.data, method, run.history, rows.collection.paths, noise, held)
    issues = ranked.with_decisions(rows.decided)
    if run.folder is not None:
        own = sample_issues(rows.data, rows.test)
        issues = replace(issues, sample_issue=own.kind, copy_of=own.copy_of)
        run.folder.write_arrays(run.folder.scores, scores)
        write_issues(run.folder, issues)
        run.folder.write_arrays(run.folder.neighbours, neighbours(verdict, issues))
        if epoch.phase == FINAL:  # a run that is stopped should stop soon
            run.folder.write_arrays(run.folder.map, {"at": laid_out(features_of(verdict, rows.data.images))})
    made_wrong = None if rows.noise is None else rows.noise.flipped.numpy()
    return Outcome(verdict, issues, findings(issues.columns, scores, made_wrong))
