"""A run from start or checkpoint to its end: opens a folder, drives `learn`, and leaves everything in place after each epoch.

`begin` and `take_up` give a `Run`; iterating over `drive(run, ...)` trains it and yields a `Progress` after each epoch. The
caller decides when to stop; a stop leaves a checkpoint and the issues found so far.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from labelsieve.backbones.backbone import zoo_tensors
from labelsieve.backbones.hub import Say
from labelsieve.backbones.weights import read_weights, start_from
from labelsieve.config.fitting import fitted
from labelsieve.config.moved import check_there, moved_to
from labelsieve.config.schema import Config, override
from labelsieve.config.validate import validate_for
from labelsieve.data import noise as label_noise
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError
from labelsieve.methods.algorithm import Diverged, Epoch, learn
from labelsieve.methods.learner import Learner
from labelsieve.methods.parts.estimate import flag_limit, least_wrong
from labelsieve.nets.zoo import PREFIX
from labelsieve.results.card import write_card
from labelsieve.results.early import write_early_losses
from labelsieve.results.label_score import remember_division
from labelsieve.results.neighbours import neighbours
from labelsieve.results.outcome import label_issues, write_issues, write_scores
from labelsieve.runs import checkpoint
from labelsieve.runs.data_facts import write_data_facts
from labelsieve.runs.environment import environment
from labelsieve.runs.features import is_frozen, with_backbone
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.own import CPU_SIZE, Watch, check_names, check_place
from labelsieve.runs.rounds import round_of
from labelsieve.runs.rows import Rows, rows_for
from labelsieve.train.choice import better, check_choice, tested
from labelsieve.train.decide import decide, left_open, seen_after_warm_up, with_decision
from labelsieve.train.measure import Measure
from labelsieve.train.restore import go_on
from labelsieve.train.run import Run, assemble, follow, keep_answers, keep_model, save

__all__ = ["Progress", "Run", "begin", "drive", "settled", "take_up"]


@dataclass(frozen=True)
class Progress:
    """What a caller shows after an epoch. `note` is what should be said once."""

    epoch: int
    epochs: int
    record: dict[str, Any]
    seconds: float
    new_notes: tuple[str, ...]


def begin(path: Path | str, config: Config, watch: Watch | None = None, rows: Rows | None = None) -> Run:
    """A new run in a new folder. If the data turn out not to be usable, the folder is taken back.

    What the configuration leaves open is settled by the data, and written down with the rest. `rows` are the data
    where a caller has them in memory; otherwise the configuration says where they are.
    """
    path = Path(path)
    check_names(config)
    check_place(path, config)
    begun = round_of(config)
    folder = RunFolder.create(path, config, None if begun is None else begun.text())
    config = folder.own(config)
    with folder.only_one():
        try:
            return _start(folder, config, watch, rows)
        except BaseException:
            folder.discard()
            raise


def settled(config: Config, rows: Rows) -> tuple[Config, tuple[str, ...]]:
    """The configuration with nothing left open, fit for these rows, and a sentence for each choice that was made."""
    shape, cuda = tuple(rows.data.images.shape[1:]), choose_device(config.device).type == "cuda"
    plan = None if rows.opened is None else rows.opened.plan
    config, choices = fitted(config, shape, len(rows.data), cuda)
    if (
        plan is not None and config.pictures.size is None and not is_frozen(config)
    ):  # written down, so that another device later reads them alike
        config = override(config, {"pictures.size": plan.size})
        if plan.size == CPU_SIZE and not cuda:
            choices = (f"size: {CPU_SIZE} px at most, for there is no GPU; larger and slower with --size N", *choices)
    if config.pictures.white is None and rows.collection.white is not None:  # the same for all that is looked at later
        config = override(config, {"pictures.white": rows.collection.white})
    validate_for(config, rows.data)
    check_choice(config, rows)
    return config, choices


def take_up(
    path: Path | str,
    *,
    source: str | None = None,
    device: str | None = None,
    watch: Watch | None = None,
    rows: Rows | None = None,
) -> Run:
    """The run in a folder, as its newest checkpoint left it; one killed before its first checkpoint starts anew.

    `source` says where the data are on this machine, `device` what to go on with; both only for this process. `rows` are the
    data of a run that began with such.
    """
    folder = RunFolder.open(Path(path))
    config = folder.read_config()
    if source is not None:
        config = moved_to(config, source)
    if rows is None:
        check_there(config.data.source)
    if device is not None:
        config = replace(config, device=device)
    with folder.only_one():
        run = go_on(folder, config, watch, rows) if folder.has_begun() else _start(folder, config, watch, rows)
        folder.sweep()
        checkpoint.tidy(folder.goes_on_from)
        return run


def drive(
    run: Run,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    watch: Callable[[Epoch], None] = lambda epoch: None,
) -> Iterator[Progress]:
    """Train from where the run stands. `stop` is asked after each epoch; when it says so, the run is left ready to resume.

    `watch` is shown each epoch as the method leaves it, evidence included, for studies that look without touching.
    """
    if run.done:
        return
    with run.folder.only_one():
        measure = _measure(run)
        said = {note for record in run.metrics for note in record.get("notes", ())}
        began = saved_at = clock()
        for epoch in _guarded(_epochs(run), run):
            record = _recorded(run, measure, epoch)
            watch(epoch)
            if epoch.seen and epoch.index == run.parts.recipe.warmup:
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
    if at_stop:
        _write_outcome(run, epoch)
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
        follow(run, decide(run.config, seen_after_warm_up(learners, run.parts.recipe, engine)))
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
    return ToolError(
        f"{run.folder.path}: {what}. The checkpoint of epoch {checkpoint.load(run.folder.goes_on_from).epoch} is kept; "
        f"try a lower learning rate, for example --set training.lr={run.config.training.lr / 4:g}, in a new run"
    )


def _has_finite_weights(learner: Learner) -> bool:
    """A loss is measured before its step, so an epoch's last step can ruin weights although all its losses were finite."""
    state = learner.state_dict()
    weights = [value for name, value in state.items() if not name.startswith("teacher.") and value.is_floating_point()]
    # One look for all of them: a device waits at each. A cleaner of the user's may keep its state elsewhere.
    return bool(torch.stack([torch.isfinite(value).all().to(learner.mean.device) for value in weights]).all())


def _start(folder: RunFolder, config: Config, watch: Watch | None = None, rows: Rows | None = None) -> Run:
    if rows is None:
        config = with_backbone(folder, config, None if watch is None else watch.shown.say)
        rows = rows_for(config) if watch is None else rows_for(config, watch)
    whole, choices = settled(config, rows)
    run = assemble(folder, whole, rows, choices)
    if whole.pretrained is not None:
        tensors = _pretrained_tensors(whole, None if watch is None else watch.shown.say)
        used = [start_from(learner.network, tensors, whole.pretrained) for learner in run.parts.learners]
        run.choices += (f"weights: {used[0]} tensors of {whole.pretrained}; the classifier is new",)
    if whole != config:
        folder.write_config(whole)
    if rows.opened is not None:
        write_data_facts(folder, whole, rows)
    if rows.noise is not None:
        label_noise.save(folder.noise, rows.noise, rows.collection.train.labels)
    save(run)
    folder.write_json(folder.environment, environment(run.parts.engine.device))
    return run


def _pretrained_tensors(config: Config, say: Say | None) -> dict[str, torch.Tensor]:
    """The tensors in the file that is named, or for "zoo" those that timm has for the network."""
    assert config.pretrained is not None
    if config.pretrained != "zoo":
        return read_weights(Path(config.pretrained))
    return zoo_tensors(config.network.removeprefix(PREFIX), config.features.offline, say or (lambda text: None))


def _measure(run: Run) -> Measure:
    rows, parts = run.rows, run.parts
    val = rows.val if run.config.output.model == "best-val" else None
    return Measure(rows.data, rows.truth, rows.test, parts.recipe, parts.engine, parts.learners, val, rows.collection.also)


def _write_outcome(run: Run, epoch: Epoch) -> None:
    """Scores, issues and model as they stand; in the warm-up, and of a draw of the samples, there is only a model."""
    if epoch.seen and not epoch.rows:
        learners, paths = run.parts.learners, run.rows.collection.paths
        data, recipe, limit = run.rows.data, run.parts.recipe, flag_limit(epoch.seen)
        write_scores(run.folder, epoch, data, learners, run.history, limit, least_wrong(epoch.seen))
        found = label_issues(epoch, data, recipe, learners, run.history, paths, run.parts.pinned, limit)
        issues = found.with_decisions(run.rows.decided)
        write_issues(run.folder, issues)
        run.folder.write_arrays(run.folder.neighbours, neighbours(epoch, issues))
    keep_answers(run)
    keep_model(run)
