"""A run from start or checkpoint to its end: opens a folder, drives `learn`, and leaves everything in place after each epoch.

`begin` and `take_up` give a `Run`; iterating over `drive(run, ...)` trains it and yields a `Progress` after each epoch. The
caller decides when to stop; a stop leaves a checkpoint and the issues found so far.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from labelsieve.data import noise as label_noise
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError
from labelsieve.method.algorithm import Diverged, Epoch, learn
from labelsieve.method.learner import Learner
from labelsieve.runs import checkpoint
from labelsieve.runs.answers import write_answers
from labelsieve.runs.assemble import Parts, Rows, parts_for, rows_for
from labelsieve.runs.card import write_card
from labelsieve.runs.choice import Chosen, better, check_choice, model_of, tested
from labelsieve.runs.config import Config, override
from labelsieve.runs.data_facts import difference, write_data_facts
from labelsieve.runs.decide import Decision, decide, decided, left_open, seen_after_warm_up
from labelsieve.runs.early import write_early_losses
from labelsieve.runs.environment import environment
from labelsieve.runs.fitting import fitted
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.history import ScoreHistory
from labelsieve.runs.measure import Measure, prototype_scores
from labelsieve.runs.neighbours import neighbours
from labelsieve.runs.outcome import label_issues, write_issues, write_model, write_parquet, write_scores
from labelsieve.runs.own import CPU_SIZE, Watch, check_files
from labelsieve.runs.rounds import round_of
from labelsieve.runs.validate import validate_for
from labelsieve.runs.weights import pretrained_tensors, start_from


@dataclass
class Run:
    """An open run: its folder, its objects, and how far it is."""

    folder: RunFolder
    config: Config
    rows: Rows
    parts: Parts
    history: ScoreHistory
    metrics: list[dict[str, Any]]
    timings: list[dict[str, Any]]
    epoch: int = 0  # epochs done
    done: bool = False
    decision: Decision | None = None  # what was left open and has been decided
    chosen: Chosen | None = None  # by the rule best-val: the model so far
    choices: tuple[str, ...] = ()  # what the configuration left open and was settled by the data, in words


@dataclass(frozen=True)
class Progress:
    """What a caller shows after an epoch. `note` is what should be said once."""

    epoch: int
    epochs: int
    record: dict[str, Any]
    seconds: float
    new_notes: tuple[str, ...]


def fingerprint(rows: Rows) -> str:
    """Of the given labels, the pinned ones and the pictures' shape: enough to notice other data under the same name."""
    digest = hashlib.sha256(str((rows.data.shape, rows.data.classes)).encode())
    digest.update(rows.data.labels.numpy().tobytes())
    if rows.pinned is not None:
        digest.update(rows.pinned.numpy().tobytes())
    return digest.hexdigest()


def begin(path: Path, config: Config, watch: Watch | None = None, rows: Rows | None = None) -> Run:
    """A new run in a new folder. If the data turn out not to be usable, the folder is taken back.

    What the configuration leaves open is settled by the data, and written down with the rest. `rows` are the data
    where a caller has them in memory; otherwise the configuration says where they are.
    """
    check_files(config)
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
    if plan is not None and config.pictures.size is None:  # written down, so that another device later reads them alike
        config = override(config, {"pictures.size": plan.size})
        if plan.size == CPU_SIZE and not cuda:
            choices = (f"size: {CPU_SIZE} px at most, for there is no GPU; larger and slower with --size N", *choices)
    validate_for(config, rows.data)
    check_choice(config, rows)
    return config, choices


def take_up(path: Path, *, source: str | None = None, device: str | None = None, watch: Watch | None = None) -> Run:
    """The run in a folder, as its newest checkpoint left it; one killed before its first checkpoint starts anew.

    `source` says where the data are on this machine, `device` what to go on with; both only for this process.
    """
    folder = RunFolder.open(path)
    config = folder.read_config()
    if source is not None:
        config = replace(config, data=replace(config.data, source=source))
    if device is not None:
        config = replace(config, device=device)
    with folder.only_one():
        folder.sweep()
        return _go_on(folder, config, watch) if folder.has_begun() else _start(folder, config, watch)


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
            record = replace(measure, recipe=run.parts.recipe).record(epoch)
            if run.decision is not None and epoch.index == run.parts.recipe.warmup:
                record = _with_decision(record, run.decision)
            run.chosen = better(run.chosen, record, run.parts.learners)
            if epoch.phase == "final" and run.chosen is not None:
                record |= tested(run.chosen, run.config, run.rows, run.parts.learners, run.parts.engine.device)
            watch(epoch)
            if epoch.seen and epoch.index == run.parts.recipe.warmup:
                write_early_losses(run.folder, epoch, run.rows.data, run.rows.truth)
            seconds, began = clock() - began, clock()
            if not epoch.rows:  # a draw is not every sample
                run.history.add(epoch.index, epoch.by_loss, epoch.by_prototype)
            run.epoch, run.done = min(epoch.index + 1, run.parts.recipe.epochs), epoch.phase == "final"
            run.metrics.append(record)
            run.timings.append({"epoch": record["epoch"], "phase": epoch.phase, "seconds": round(seconds, 3)})
            stopping = not run.done and stop()
            if stopping or run.done:
                _write_outcome(run, epoch)
            run.folder.write_lines(run.folder.metrics, run.metrics)
            run.folder.write_lines(run.folder.timings, run.timings)
            if run.done:
                write_card(run.folder)
            # Last of all: a checkpoint promises that everything up to it is in place, so a killed run redoes the rest.
            if stopping or run.done or clock() - saved_at >= run.config.output.checkpoint_seconds:
                _save(run, at_stop=stopping or run.done)
                saved_at = clock()
            notes = tuple(note for note in record.get("notes", ()) if note not in said)
            said.update(notes)
            yield Progress(run.epoch, run.parts.recipe.epochs, record, seconds, notes)
            if stopping:
                return
            began = clock()


def _epochs(run: Run) -> Iterator[Epoch]:
    """The epochs from where the run stands; after the warm-up, what was left open is decided from what the networks see."""
    warmup = run.parts.recipe.warmup
    if left_open(run.config) and run.decision is None and run.config.method != "ce":
        learners, engine = run.parts.learners, run.parts.engine
        yield from learn(learners, run.parts.recipe, engine, run.parts.prior, run.epoch, run.parts.pinned, stop=warmup)
        _follow(run, decide(run.config, seen_after_warm_up(learners, run.parts.recipe, engine)))
    parts = run.parts
    yield from learn(parts.learners, parts.recipe, parts.engine, parts.prior, run.epoch, parts.pinned)


def _follow(run: Run, decision: Decision) -> None:
    run.decision = decision
    run.parts = replace(run.parts, recipe=decided(run.parts.recipe, decision))
    for learner in run.parts.learners:
        learner.teacher.memory = decision.mixture_memory
    run.folder.write_json(run.folder.estimate, decision.facts())


def _with_decision(record: dict[str, Any], decision: Decision) -> dict[str, Any]:
    return record | {"decision": decision.facts(), "notes": [decision.words(), *record.get("notes", ())]}


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
        f"{run.folder.path}: {what}. The checkpoint of epoch {_newest(run.folder)} is kept; "
        f"try a lower learning rate, for example --set training.lr={run.config.training.lr / 4:g}, in a new run"
    )


def _has_finite_weights(learner: Learner) -> bool:
    """A loss is measured before its step, so an epoch's last step can ruin weights although all its losses were finite."""
    state = learner.state_dict()
    weights = [value for name, value in state.items() if not name.startswith("teacher.") and value.is_floating_point()]
    return all(bool(torch.isfinite(value).all()) for value in weights)


def _newest(folder: RunFolder) -> int:
    return checkpoint.load(folder.checkpoints).epoch


def _start(folder: RunFolder, config: Config, watch: Watch | None = None, rows: Rows | None = None) -> Run:
    if rows is None:
        rows = rows_for(config) if watch is None else rows_for(config, watch)
    whole, choices = settled(config, rows)
    run = _assemble(folder, whole, rows, choices)
    if whole.pretrained is not None:
        tensors = pretrained_tensors(whole.pretrained, whole.network)
        used = [start_from(learner.network, tensors, whole.pretrained) for learner in run.parts.learners]
        run.choices += (f"weights: {used[0]} tensors of {whole.pretrained}; the classifier is new",)
    if whole != config:
        folder.write_config(whole)
    if rows.opened is not None:
        write_data_facts(folder, whole, rows)
    if rows.noise is not None:
        label_noise.save(folder.noise, rows.noise, rows.collection.train.labels)
    _save(run)
    folder.write_json(folder.environment, environment(run.parts.engine.device))
    return run


def _go_on(folder: RunFolder, config: Config, watch: Watch | None = None) -> Run:
    slim = not folder.checkpoints.is_dir() and folder.slim.is_dir()
    saved = checkpoint.load(folder.slim if slim else folder.checkpoints)
    rows = rows_for(config) if watch is None else rows_for(config, watch)
    if fingerprint(rows) != saved.facts.get("fingerprint"):
        raise ToolError(
            f"{config.data.source}: not the data this run began with ({difference(folder, rows)}); "
            f"put the old data back, or name them with --data"
        )
    validate_for(config, rows.data)
    run = _assemble(folder, config, rows)
    try:
        _restore(run, saved)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ToolError(
            f"{folder.checkpoints}: the checkpoint does not fit {folder.config} ({type(error).__name__}); one of them was "
            f"changed or damaged: put it back as it was, or start a new run"
        ) from None
    _mend(run)
    return run


def _mend(run: Run) -> None:
    """Write again what was deleted and can be made from the rest; what cannot be made is an error."""
    folder, noise = run.folder, run.rows.noise
    if noise is not None and not folder.noise.exists():
        label_noise.save(folder.noise, noise, run.rows.collection.train.labels)
    if run.rows.opened is not None and not (folder.data_facts.exists() and folder.samples.exists()):
        write_data_facts(folder, run.config, run.rows)
    if not folder.environment.exists():
        folder.write_json(folder.environment, environment(run.parts.engine.device))
    if not run.done:
        return
    if not folder.metrics.exists():
        folder.write_lines(folder.metrics, run.metrics)
    if not folder.predictions.exists():
        _write_answers(run)
    if not (folder.model.exists() and folder.model_facts.exists()):
        _write_model(run)
    lost = [path.name for path in (folder.scores, folder.issues) if not path.exists()]
    if lost:
        raise ToolError(
            f"{folder.path}: the run is done, but {' and '.join(lost)} was deleted and cannot be made again without training; "
            f"put it back, or start a new run with --out elsewhere"
        )
    if not folder.issues_parquet.exists():
        write_parquet(folder)
    if not folder.card.exists():
        write_card(folder)


def _restore(run: Run, saved: checkpoint.Checkpoint) -> None:
    for learner in run.parts.learners:
        learner.load_state_dict(_part(saved, f"learner{learner.number}"))
    run.history.load_state_dict(_part(saved, "history"))
    run.epoch, run.done = saved.epoch, bool(saved.facts.get("done"))
    if saved.facts.get("decision"):
        _follow(run, Decision.from_facts(saved.facts["decision"]))
    if saved.facts.get("chosen"):
        run.chosen = Chosen(**saved.facts["chosen"], tensors=_part(saved, "chosen"))
    for learner in run.parts.learners:  # `learn` sets it before an epoch, but not before the last division
        learner.set_lr(run.parts.recipe.lr_at(max(run.epoch - 1, 0)))
    run.metrics = list(saved.facts["metrics"])
    run.timings = run.folder.read_lines(run.folder.timings)[: len(run.metrics)]


def _assemble(folder: RunFolder, config: Config, rows: Rows, choices: tuple[str, ...] = ()) -> Run:
    history = ScoreHistory(len(rows.data), config.output.history_mib)
    return Run(folder, config, rows, parts_for(config, rows), history, [], [], choices=choices)


def _measure(run: Run) -> Measure:
    rows, parts = run.rows, run.parts
    val = rows.val if run.config.output.model == "best-val" else None
    return Measure(rows.data, rows.truth, rows.test, parts.recipe, parts.engine, parts.learners, val, rows.collection.also)


def state_of(run: Run) -> checkpoint.Checkpoint:
    """Everything the run needs to go on, as it stands now."""
    tables = {f"learner{learner.number}": learner.state_dict() for learner in run.parts.learners}
    tables["history"] = run.history.state_dict()
    decision = None if run.decision is None else run.decision.facts()
    facts = {"fingerprint": fingerprint(run.rows), "metrics": run.metrics, "done": run.done, "decision": decision}
    if run.chosen is not None:
        tables["chosen"] = dict(run.chosen.tensors)
        facts["chosen"] = run.chosen.facts()
    return checkpoint.Checkpoint(run.epoch, checkpoint.pack(tables), facts)


def start_at(run: Run, saved: checkpoint.Checkpoint, timings: list[dict[str, Any]]) -> None:
    """Put a run that has not begun where another stood that did the same so far; it goes on as if it had come there itself."""
    if run.epoch or fingerprint(run.rows) != saved.facts.get("fingerprint"):
        raise ToolError(f"{run.folder.path}: it has begun or has other data, so it cannot start where another run stood")
    with run.folder.only_one():
        _restore(run, saved)
        run.timings = list(timings)
        run.folder.write_lines(run.folder.metrics, run.metrics)
        run.folder.write_lines(run.folder.timings, run.timings)
        _save(run)


def _save(run: Run, at_stop: bool = False) -> None:
    state = state_of(run)
    checkpoint.save(run.folder.checkpoints, state)
    if run.config.output.slim_checkpoint and at_stop:
        checkpoint.save_slim(run.folder.slim, state)


def _part(saved: checkpoint.Checkpoint, name: str) -> dict[str, Any]:
    head = f"{name}."
    return {key.removeprefix(head): value for key, value in saved.tensors.items() if key.startswith(head)}


def _write_outcome(run: Run, epoch: Epoch) -> None:
    """Scores, issues and model as they stand; in the warm-up, and of a draw of the samples, there is only a model."""
    if epoch.seen and not epoch.rows:
        learners, paths = run.parts.learners, run.rows.collection.paths
        write_scores(run.folder, epoch, run.rows.data, learners, run.history)
        found = label_issues(epoch, run.rows.data, run.parts.recipe, learners, run.history, paths, run.parts.pinned)
        issues = found.with_decisions(run.rows.decided)
        write_issues(run.folder, issues)
        run.folder.write_arrays(run.folder.neighbours, neighbours(epoch, issues))
    _write_answers(run)
    _write_model(run)


def _write_answers(run: Run) -> None:
    """Of the model that is kept. One chosen on validation pictures meets the test pictures only once the run is done."""
    held, learners = run.rows.test, run.parts.learners
    if held is None or (run.chosen is not None and not run.done):
        return
    if run.chosen is None:
        seen = [run.parts.engine.predict(learner, held.images) for learner in learners]
        scores = [prototype_scores(learner, prediction) for learner, prediction in zip(learners, seen)]
        write_answers(run.folder, [prediction.logits for prediction in seen], scores, held)
    else:
        model = model_of(run.chosen, run.config, run.rows, learners, run.parts.engine.device)
        looks = model.look(held.images, run.config.engine.eval_batch)
        write_answers(run.folder, [look.logits for look in looks], [look.prototypes for look in looks], held)


def _write_model(run: Run) -> None:
    chosen = None if run.chosen is None else run.chosen.tensors
    write_model(run.folder, run.config, run.parts.learners, run.rows.collection, chosen)
