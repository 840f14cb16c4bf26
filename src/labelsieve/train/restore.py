"""Puts a run back where its newest checkpoint left it.

What was deleted meanwhile and can be made from the rest is made again; what cannot is an error that says so.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from labelsieve import run_files
from labelsieve.config.schema import Config
from labelsieve.config.validate import validate_for
from labelsieve.data import label_files
from labelsieve.data.pictures.depth import WHITEST
from labelsieve.errors import ToolError
from labelsieve.issues.reading import read_issues
from labelsieve.methods.parts.momentum import restore
from labelsieve.results.card import write_card
from labelsieve.results.outcome import write_parquet
from labelsieve.runs import checkpoint
from labelsieve.runs.data_facts import difference, known_files, write_data_facts
from labelsieve.runs.environment import environment
from labelsieve.runs.findings import read_findings, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import Rows, Watch, rows_for
from labelsieve.train.choice import Chosen
from labelsieve.train.decide import Decision, by_estimate
from labelsieve.train.run import Run, fingerprint, keep_answers, keep_estimate, keep_model, new_run, save, settle, values

ALIKE = 0.01  # of a deviation: decoders round otherwise by far less


def restored(folder: RunFolder, config: Config, watch: Watch | None = None, rows: Rows | None = None, mends: bool = True) -> Run:
    """The run as its checkpoint has it; with `mends`, what is missing in its folder is written again."""
    saved = checkpoint.load(folder.goes_on_from)
    rows = rows_for(_as_begun(config), watch, known_files(folder)) if rows is None else rows
    if fingerprint(rows) != saved.facts.get("fingerprint"):
        raise ToolError(
            f"{config.data.source}: not the data this run began with ({difference(folder, rows)}); "
            f"put the old data back, or name them with --data"
        )
    _check_values(config, rows, saved.facts.get("values"))
    validate_for(config, rows.data)
    run = new_run(folder, config, rows)
    try:
        _restore(run, saved)
    except ToolError as error:
        raise ToolError(f"{folder.goes_on_from}: {error}") from None
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ToolError(
            f"{folder.goes_on_from}: the checkpoint does not fit {folder.config} ({type(error).__name__}); one of them was "
            f"changed or damaged: put it back as it was, or start a new run"
        ) from None
    if mends:
        _mend(run)
    return run


def _check_values(config: Config, rows: Rows, before: Sequence[float] | None) -> None:
    """A `ToolError` where samples have other values under the same labels; runs of earlier versions did not write these down."""
    now = values(rows)
    if before is not None and len(before) != len(now):
        raise ToolError("the checkpoint is damaged (its values are not two numbers); restore it or start a new run")
    if before is None or max(abs(one - other) for one, other in zip(before, now)) <= ALIKE * max(before[1], now[1]):
        return
    (mean, spread), (old_mean, old_spread) = now, before
    raise ToolError(
        f"{config.data.source}: not the data this run began with: the labels are the same, but the {rows.data.things} have other "
        f"values (mean {old_mean:.4g} and deviation {old_spread:.4g} then, {mean:.4g} and {spread:.4g} now); put the old data "
        f"back, or name them with --data"
    )


def _as_begun(config: Config) -> Config:
    """A run that wrote nothing down of what is white had no 16-bit pictures, or began when 65,535 was white in all."""
    if config.pictures.white is not None or not config.data.source.startswith("pictures:"):
        return config
    return replace(config, pictures=replace(config.pictures, white=WHITEST))


def _mend(run: Run) -> None:
    """Write again what was deleted and can be made from the rest; what cannot be made is an error."""
    folder, noise = run.home, run.rows.noise
    if noise is not None and not folder.noise.exists():
        label_files.save(folder.noise, noise, run.rows.collection.train.labels)
    if run.rows.opened is not None and not (folder.data_facts.exists() and folder.samples.exists()):
        write_data_facts(folder, run.config, run.rows)
    run.environment = run_files.facts(folder.environment) or environment(run.parts.engine.device)
    if not folder.environment.exists():
        folder.write_json(folder.environment, run.environment)
    if not run.done:
        if not folder.estimate.exists():
            keep_estimate(run)
        return
    if not folder.metrics.exists():
        folder.write_lines(folder.metrics, run.metrics)
    if not folder.predictions.exists():
        keep_answers(run)
    if not (folder.model.exists() and folder.model_facts.exists()):
        keep_model(run)
    lost = [path.name for path in (folder.scores, folder.issues) if not path.exists()]
    if lost:
        raise ToolError(
            f"{folder.path}: the run is done, but {' and '.join(lost)} was deleted and cannot be made again without training; "
            f"put it back, or start a new run with --out elsewhere"
        )
    if not folder.issues_parquet.exists():
        write_parquet(folder, read_issues(folder.issues))
    if not (folder.card.exists() and folder.estimate.exists()):
        write_card(folder, read_findings(folder), read_record(folder))


def start_from_state(run: Run, saved: checkpoint.Checkpoint, timings: list[dict[str, Any]]) -> None:
    """Put a run that has not begun where another stood that did the same so far; it goes on as if it had come there itself.

    What the other decided after its warm-up is decided again by this run's settings, from the same estimate.
    """
    if run.epoch or fingerprint(run.rows) != saved.facts.get("fingerprint"):
        raise ToolError(
            f"{run.home.path}: it has begun or has other data, so it cannot start where another run stood; leave out what "
            f"changes data or noise, or train it by itself"
        )
    with run.home.only_one():
        _restore(run, replace(saved, facts={**saved.facts, "decision": _decided_here(run, saved.facts.get("decision"))}))
        run.timings = list(timings)
        run.home.write_lines(run.home.metrics, run.metrics)
        run.home.write_lines(run.home.timings, run.timings)
        keep_estimate(run)
        save(run)


def _decided_here(run: Run, there: dict[str, Any] | None) -> dict[str, Any] | None:
    if not there:
        return None
    decision = Decision.from_facts(there)
    return by_estimate(run.config, decision.estimate, decision.mixed).facts()


def _restore(run: Run, saved: checkpoint.Checkpoint) -> None:
    saved = as_kept_now(saved)
    method = run.parts.method
    for net in method.nets:
        net.load_state_dict(_part(saved, f"learner{net.number}"))
    method.load_state_dict({name: value.to(method.facts.device) for name, value in _part(saved, "method").items()})
    restore(method.tables, _part(saved, "tables"))
    run.history.load_state_dict(_part(saved, "history"))
    run.epoch, run.done = saved.epoch, bool(saved.facts.get("done"))
    if saved.facts.get("decision"):
        settle(run, Decision.from_facts(saved.facts["decision"]))
    if saved.facts.get("chosen"):
        run.chosen = Chosen(**saved.facts["chosen"], tensors=_part(saved, "chosen"))
    run.metrics = list(saved.facts["metrics"])
    run.timings = run_files.records(run.home.timings)[: len(run.metrics)]


def as_kept_now(saved: checkpoint.Checkpoint) -> checkpoint.Checkpoint:
    """Once a network's cleaners stood beside its weights, and whether it had mixed followed from the metrics."""
    if any(name.startswith("method.") for name in saved.tensors):
        return saved
    tensors = {re.sub(r"^learner(\d)\.(teacher|judge)\.", r"method.\2\1.", name): value for name, value in saved.tensors.items()}
    mixed = any(line.get("phase") in ("mixture", "prototypes") for line in saved.facts["metrics"])
    return replace(saved, tensors=tensors | {"method.mixed": torch.tensor(mixed)})


def _part(saved: checkpoint.Checkpoint, name: str) -> dict[str, Any]:
    head = f"{name}."
    return {key.removeprefix(head): value for key, value in saved.tensors.items() if key.startswith(head)}
