"""Starts a run, or resumes one from its newest checkpoint; train/loop.py trains it.

On resuming, what was deleted and can be made from the rest is made again; what cannot is an error that says so.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelsieve import run_files
from labelsieve.backbones.backbone import zoo_tensors
from labelsieve.backbones.hub import Say
from labelsieve.backbones.weights import read_weights, start_from
from labelsieve.config.fitting import fitted, mixed_as_published
from labelsieve.config.method_settings import with_section
from labelsieve.config.moved import check_there, moved_to
from labelsieve.config.resolve import validate_for
from labelsieve.config.schema import Config, override, value_at
from labelsieve.data import label_files
from labelsieve.data.pictures.decode import WHITEST
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError, UsageError, command
from labelsieve.issues.table import read_issues
from labelsieve.methods.contract import Method
from labelsieve.methods.parts.sgd import restore
from labelsieve.methods.registry import method_named
from labelsieve.nets.zoo import PREFIX
from labelsieve.results.card import write_card
from labelsieve.results.outcome import write_parquet
from labelsieve.run_files import is_there
from labelsieve.runs import checkpoint
from labelsieve.runs.checks import check_names, check_place
from labelsieve.runs.environment import environment
from labelsieve.runs.features import is_frozen, looking_as, with_backbone
from labelsieve.runs.findings import read_findings, read_record
from labelsieve.runs.folder import RunFolder, difference, known_files, write_data_facts
from labelsieve.runs.rounds import round_of
from labelsieve.runs.rows import CPU_SIZE, Rows, Watch, rows_for
from labelsieve.train.decide import NoiseDecision, by_estimate, tried
from labelsieve.train.run import (
    Chosen,
    Run,
    check_choice,
    fingerprint,
    keep_answers,
    keep_estimate,
    keep_model,
    new_run,
    save,
    settle,
    values,
)

ALIKE = 0.01  # of a deviation: decoders round otherwise by far less


SETTLED = ("training.batch", "training.warmup_batch", "training.lr", "engine.eval_batch")  # before a run begins


def restored(folder: RunFolder, config: Config, watch: Watch | None = None, rows: Rows | None = None, mends: bool = True) -> Run:
    """The run as its checkpoint has it; with `mends`, what is missing in its folder is written again."""
    saved = checkpoint.load(folder.goes_on_from)
    if is_frozen(config) and not is_there(folder.backbone):  # no download: who resumes a stranger's run did not ask for one
        raise ToolError(f"{folder.backbone}: missing; put back the backbone that came with the run, or start a new run")
    rows = rows_for(_as_begun(config), watch, known_files(folder)) if rows is None else rows
    if fingerprint(rows) != saved.facts.get("fingerprint"):
        raise ToolError(
            f"{config.data.source}: not the data this run began with ({difference(folder, rows)}); "
            f"put the old data back, or name them with --data"
        )
    _check_values(config, rows, saved.facts.get("values"))
    still_open = next((key for key in SETTLED if value_at(config, key) == 0), None)
    if still_open is not None:
        raise ToolError(f'{folder.config}: setting "{still_open}" is 0, and the run began with another value; put that back')
    validate_for(config, rows.data)
    run = new_run(folder, config, rows, watch=watch)
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
    decision = NoiseDecision.from_facts(there)
    return by_estimate(run.config, decision.estimate, decision.mixed).facts()


def _restore(run: Run, saved: checkpoint.Checkpoint) -> None:
    saved = as_kept_now(saved)
    method = run.parts.method
    _check_tensors(method, saved)
    for net in method.nets:
        net.load_state_dict(_part(saved, f"learner{net.number}"))
    method.load_state_dict({name: value.to(method.facts.device) for name, value in _part(saved, "method").items()})
    restore(method.tables, _part(saved, "tables"))
    run.history.load_state_dict(_part(saved, "history"))
    run.epoch, run.done = saved.epoch, bool(saved.facts.get("done"))
    if saved.facts.get("decision"):
        settle(run, NoiseDecision.from_facts(saved.facts["decision"]))
    if saved.facts.get("chosen"):
        run.chosen = Chosen(**saved.facts["chosen"], tensors=_part(saved, "chosen"))
    run.metrics = list(saved.facts["metrics"])
    run.timings = run_files.records(run.home.timings)[: len(run.metrics)]


def _check_tensors(method: Method, saved: checkpoint.Checkpoint) -> None:
    """A `ToolError` where one is not the run's: copied in, it would be stretched, rounded, or zero where it is missing."""
    now = {f"learner{net.number}.{name}": value for net in method.nets for name, value in net.state_dict().items()}
    for name, value in (now | {f"tables.{name}": value for name, value in method.tables.items()}).items():
        then = saved.tensors.get(name)
        if then is None and saved.facts.get("slim") and checkpoint.MOMENTUM.fullmatch(name):
            continue
        if then is None or (then.shape, then.is_floating_point()) != (value.shape, value.is_floating_point()):
            raise ToolError(
                f'"{name}" is missing in the checkpoint, or of another kind or size, so it does not fit config.yaml; put the '
                "one back that was changed, or start a new run"
            )
        if name in now and not bool(then.isfinite().all()):
            raise ToolError(f'"{name}" has values in the checkpoint that are not finite; restore it or start a new run')


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


def start(path: Path | str | None, config: Config, watch: Watch | None = None, rows: Rows | None = None) -> Run:
    """A new run in a new folder, or with no path in memory. If the data turn out not to be usable, the folder is taken back.

    What the configuration leaves open is settled by the data, and written down with the rest. `rows` are the data
    where a caller has them in memory; otherwise the configuration says where they are.
    """
    if path is None:
        return _started(None, config, watch, rows)
    path = Path(path)
    check_names(config)
    check_place(path, config)
    before = round_of(config)
    folder = RunFolder.create(path, config, None if before is None else before.text())
    config = folder.own(config)
    with folder.only_one():
        try:
            return _started(folder, config, watch, rows)
        except BaseException:
            folder.discard()
            raise


def resume(
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
    try:
        method_named(config.method)
    except UsageError as error:
        raise ToolError(f"{folder.config}: {error}") from None
    if source is not None:
        config = moved_to(config, source)
    if rows is None:
        check_there(config.data.source)
    if device is not None:
        config = replace(config, device=device)
    with folder.only_one():
        run = restored(folder, config, watch, rows) if folder.has_begun() else _started(folder, config, watch, rows)
        folder.sweep()
        checkpoint.tidy(folder.goes_on_from)
        return run


def follow(path: Path, source: str | None = None, device: str | None = None, watch: Watch | None = None) -> Run:
    """The run that another process has opened at `path`, as it stands there, to be trained along with it; nothing is written."""
    folder = RunFolder(path)
    if not is_there(folder.config):
        raise ToolError(
            f"{path}: rank 0 has its run there, and this rank sees none; give --out a folder on a disk that all machines share"
        )
    config = folder.read_config()
    if source is not None:
        config = moved_to(config, source)
    if device is not None:
        config = replace(config, device=device)
    run = restored(folder, config, watch, mends=False)
    run.folder = None
    return run


def start_or_resume(path: Path, config: Config, watch: Watch | None = None) -> Run:
    """A new run in `path`, or the one that is there, which must have been started with the same settings."""
    if not RunFolder(path).config.exists():
        return start(path, config, watch)
    return resume(path, watch=watch, rows=_checked_same(path, config, watch))


def _checked_same(path: Path, config: Config, watch: Watch | None) -> Rows | None:
    """A `UsageError` where the run at `path` has other settings. The data come back where they had to be read to tell.

    Settings that were left open are the same when the data settle them the same; decisions, when they are of one run.
    """
    before = RunFolder.open(path).read_config()
    begun = round_of(before)
    if begun is not None and config.data.decisions == begun.parent:  # as they were when the run began
        config = replace(config, data=replace(config.data, decisions=before.data.decisions))
    config = looking_as(before, config)
    same = (config, mixed_as_published(config))  # runs from before the network had a say in mixing go on as they began
    if before in same:
        return None
    rows = rows_for(config, watch, known_files(RunFolder(path)))
    if before not in [settled(one, rows)[0] for one in same]:
        raise UsageError(
            f"{path}: the run there has other settings than this command; use {command('resume', path)} to go on with it as "
            f"it is, or another --out"
        )
    return rows


def settled(config: Config, rows: Rows) -> tuple[Config, tuple[str, ...]]:
    """The configuration with nothing left open, fit for these rows, and a sentence for each choice that was made."""
    shape, cuda = tuple(rows.data.images.shape[1:]), choose_device(config.device).type == "cuda"
    plan = None if rows.opened is None else rows.opened.plan
    config, choices = fitted(with_section(config), shape, len(rows.data), cuda)
    if plan is not None and config.pictures.size is None and not is_frozen(config):  # so that another device reads them alike
        config = override(config, {"pictures.size": plan.size})
        if plan.size == CPU_SIZE and not cuda:
            choices = (f"size: {CPU_SIZE} px at most, for there is no GPU; larger and slower with --size N", *choices)
    if config.pictures.white is None and rows.collection.white is not None:  # the same for all that is looked at later
        config = override(config, {"pictures.white": rows.collection.white})
    validate_for(config, rows.data)
    check_choice(config, rows)
    if config.training.lr == 0:
        trial = tried(config, rows)
        config, choices = override(config, trial.settings()), (*choices, trial.words())
    return config, choices


def _started(folder: RunFolder | None, config: Config, watch: Watch | None, rows: Rows | None) -> Run:
    say = None if watch is None else watch.shown.say
    if rows is None:
        config = config if folder is None else with_backbone(folder, config, say)
        rows = rows_for(config) if watch is None else rows_for(config, watch)
    whole, choices = settled(config, rows)
    run = new_run(folder, whole, rows, choices, watch)
    if whole.pretrained is not None:
        tensors = _pretrained_tensors(whole, say)
        eyes = [eye for net in run.parts.method.nets for eye in net.eyes()]
        used = [start_from(eye.network, tensors, whole.pretrained) for eye in eyes]
        run.choices += (f"weights: {used[0]} tensors of {whole.pretrained}; the classifier is new",)
    if folder is None:
        return run
    if whole != config:
        folder.write_config(whole)
    if rows.opened is not None:
        write_data_facts(folder, whole, rows)
    if rows.noise is not None:
        label_files.save(folder.noise, rows.noise, rows.collection.train.labels)
    save(run)
    run.environment = environment(run.parts.engine.device)
    folder.write_json(folder.environment, run.environment)
    return run


def _pretrained_tensors(config: Config, say: Say | None) -> dict[str, Tensor]:
    """The tensors in the file that is named, or for "zoo" those that timm has for the network."""
    assert config.pretrained is not None
    if config.pretrained != "zoo":
        return read_weights(Path(config.pretrained))
    return zoo_tensors(config.network.removeprefix(PREFIX), config.features.offline, say or (lambda text: None))
