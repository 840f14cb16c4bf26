"""Starts a run, or resumes one: opens its data, settles what the data decide, builds what trains. train/loop.py trains it."""

from dataclasses import replace
from pathlib import Path

from torch import Tensor

from labelsieve.backbones.backbone import zoo_tensors
from labelsieve.backbones.hub import Say
from labelsieve.backbones.weights import read_weights, start_from
from labelsieve.config.fitting import fitted, mixed_as_published
from labelsieve.config.method_settings import with_section
from labelsieve.config.moved import check_there, moved_to
from labelsieve.config.schema import Config, override
from labelsieve.config.validate import validate_for
from labelsieve.data import label_files
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError, UsageError, command
from labelsieve.nets.zoo import PREFIX
from labelsieve.run_files import is_there
from labelsieve.runs import checkpoint
from labelsieve.runs.checks import check_names, check_place
from labelsieve.runs.data_facts import known_files, write_data_facts
from labelsieve.runs.environment import environment
from labelsieve.runs.features import is_frozen, looking_as, with_backbone
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rounds import round_of
from labelsieve.runs.rows import CPU_SIZE, Rows, Watch, rows_for
from labelsieve.train.choice import check_choice
from labelsieve.train.restore import restored
from labelsieve.train.run import Run, new_run, save
from labelsieve.train.trial import tried


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
    run = new_run(folder, whole, rows, choices)
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
