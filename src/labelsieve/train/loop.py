"""The one loop that trains a run: measures each epoch and leaves everything in its folder, if it has one.

`start` and `resume` (train/start.py) give a `Run`; iterating over `each_epoch(run, ...)` trains it and yields a `Progress` after
each epoch. The caller says when to stop; a stop leaves a checkpoint and the issues found so far.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from labelsieve.errors import ToolError
from labelsieve.methods.algorithm import Diverged, Epoch, learn
from labelsieve.methods.learner import Learner
from labelsieve.methods.parts.estimate import flag_limit, least_wrong
from labelsieve.results.card import write_card
from labelsieve.results.early import write_early_losses
from labelsieve.results.label_score import remember_division
from labelsieve.results.neighbours import neighbours
from labelsieve.results.outcome import label_issues, write_issues, write_scores
from labelsieve.runs import checkpoint
from labelsieve.runs.folder import RunFolder
from labelsieve.train.choice import better, tested
from labelsieve.train.decide import decide, left_open, seen_after_warm_up, with_decision
from labelsieve.train.measure import Measure
from labelsieve.train.run import Run, keep_answers, keep_model, save, settle


@dataclass(frozen=True)
class Progress:
    """What a caller shows after an epoch. `note` is what should be said once."""

    epoch: int
    epochs: int
    record: dict[str, Any]
    seconds: float
    new_notes: tuple[str, ...]


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
        began = saved_at = clock()
        for epoch in _guarded(_epochs(run), run):
            record = _recorded(run, measure, epoch)
            watch(epoch)
            if run.folder is not None and epoch.seen and epoch.index == run.parts.recipe.warmup:
                write_early_losses(run.folder, epoch, run.rows.data, run.rows.truth)
            seconds, began = clock() - began, clock()
            _move_on(run, epoch, record, seconds)
            stopping = not run.done and stop()
            _write(run, epoch, stopping or run.done)
            # Last of all: a checkpoint promises that everything up to it is in place, so a killed run redoes the rest.
            if stopping or run.done or clock() - saved_at >= run.config.output.checkpoint_seconds:
                save(run, at_stop=stopping or run.done)
                saved_at = clock()
            notes = tuple(note for note in record.get("notes", ()) if note not in said)
            said.update(notes)
            yield Progress(run.epoch, run.parts.recipe.epochs, record, seconds, notes)
            if stopping:
                return
            began = clock()


def _recorded(run: Run, measure: Measure, epoch: Epoch) -> dict[str, Any]:
    """What is measured of an epoch; the model that it may become is chosen by it."""
    record = replace(measure, recipe=run.parts.recipe).record(epoch)
    if run.decision is not None and epoch.index == run.parts.recipe.warmup:
        record = with_decision(record, run.decision)
    run.chosen = better(run.chosen, record, run.parts.learners)
    if epoch.phase == "final" and run.chosen is not None:
        record |= tested(run.chosen, run.config, run.rows, run.parts.learners, run.parts.engine.device)
    return record


def _move_on(run: Run, epoch: Epoch, record: dict[str, Any], seconds: float) -> None:
    """The run stands after this epoch."""
    remember_division(run.history, epoch, run.parts.learners)
    run.epoch, run.done = min(epoch.index + 1, run.parts.recipe.epochs), epoch.phase == "final"
    run.metrics.append(record)
    run.timings.append({"epoch": record["epoch"], "phase": epoch.phase, "seconds": round(seconds, 3)})


def _write(run: Run, epoch: Epoch, at_stop: bool) -> None:
    """Metrics and timings; where the run stops also what it found."""
    if run.folder is None:
        return
    if at_stop:
        _write_outcome(run.folder, run, epoch)
    run.folder.write_lines(run.folder.metrics, run.metrics)
    run.folder.write_lines(run.folder.timings, run.timings)
    if run.done:
        write_card(run.folder)


def _epochs(run: Run) -> Iterator[Epoch]:
    """The epochs from where the run stands; after the warm-up, what was left open is decided from what the networks see."""
    warmup = run.parts.recipe.warmup
    if left_open(run.config) and run.decision is None and run.config.method != "ce":
        learners, engine = run.parts.learners, run.parts.engine
        yield from learn(learners, run.parts.recipe, engine, run.parts.prior, run.epoch, run.parts.pinned, stop=warmup)
        settle(run, decide(run.config, run.parts.witnesses(seen_after_warm_up(learners, run.parts.recipe, engine))))
    parts = run.parts
    yield from learn(parts.learners, parts.recipe, parts.engine, parts.prior, run.epoch, parts.pinned)


def _guarded(epochs: Iterator[Epoch], run: Run) -> Iterator[Epoch]:
    """A loss or a weight that is no number ends the run in words, before anything of that epoch is saved."""
    try:
        for epoch in epochs:
            for learner in run.parts.learners:
                if not _has_finite_weights(learner):
                    steps = f", step {len(epoch.terms[learner.number])}" if epoch.terms else ""
                    number = min(epoch.index + 1, run.parts.recipe.epochs)
                    raise _diverged(
                        run, f"the weights of network {learner.number + 1} are not finite after epoch {number}{steps}"
                    )
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


def _has_finite_weights(learner: Learner) -> bool:
    """A loss is measured before its step, so an epoch's last step can ruin weights although all its losses were finite."""
    state = learner.state_dict()
    weights = [value for name, value in state.items() if not name.startswith("teacher.") and value.is_floating_point()]
    # One look for all of them: a device waits at each. A cleaner of the user's may keep its state elsewhere.
    return bool(torch.stack([torch.isfinite(value).all().to(learner.mean.device) for value in weights]).all())


def _measure(run: Run) -> Measure:
    rows, parts = run.rows, run.parts
    val = rows.val if run.config.output.model == "best-val" else None
    return Measure(rows.data, rows.truth, rows.test, parts.recipe, parts.engine, parts.learners, val, rows.collection.also)


def _write_outcome(folder: RunFolder, run: Run, epoch: Epoch) -> None:
    """Scores, issues and model as they stand; in the warm-up, and of a draw of the samples, there is only a model."""
    if epoch.seen and not epoch.rows:
        learners, paths = run.parts.learners, run.rows.collection.paths
        witnesses, held = run.parts.witnesses(epoch.seen), run.parts.held
        data, recipe, limit = run.rows.data, run.parts.recipe, flag_limit(witnesses)
        write_scores(folder, epoch, data, learners, run.history, limit, least_wrong(witnesses), held)
        found = label_issues(epoch, data, recipe, learners, run.history, paths, run.parts.pinned, limit, held)
        issues = found.with_decisions(run.rows.decided)
        write_issues(folder, issues)
        folder.write_arrays(folder.neighbours, neighbours(epoch, issues))
    keep_answers(run)
    keep_model(run)
