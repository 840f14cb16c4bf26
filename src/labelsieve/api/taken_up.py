"""A fit that leaves a run folder: settings and rows go in, what was trained comes out. What was interrupted there goes on."""

from contextlib import closing
from pathlib import Path

from labelsieve.api.labels import BadInput
from labelsieve.config.schema import Config, dotted_keys, value_at
from labelsieve.methods.algorithm import Epoch
from labelsieve.runs import checkpoint
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import Rows
from labelsieve.train.in_memory import Show, Trained
from labelsieve.train.loop import begin, drive, take_up
from labelsieve.train.run import Run, fingerprint, scales


def train_in_folder(path: Path, config: Config, rows: Rows, show: Show, any_seed: bool) -> Trained:
    """To the end of the run at `path`, from its start or where it was interrupted; `any_seed` takes the seed that it has."""
    run = _opened(path, config, rows, any_seed)
    epochs: list[Epoch] = []
    # Closed at once: a notebook keeps an interrupted call's frames, and with them the lock on the run.
    with closing(drive(run, watch=epochs.append)) as steps:  # type: ignore[type-var]
        for step in steps:
            del epochs[:-1]
            show(step.record, step.epochs)
    return Trained(run.parts, epochs[0], run.decision, run.history, run.metrics)


def _opened(path: Path, config: Config, rows: Rows, any_seed: bool) -> Run:
    if not RunFolder(path).config.is_file():
        if path.exists() and not RunFolder(path).is_bare():
            raise BadInput(f"run_dir: {path} exists and is not a run; choose another run_dir")
        return begin(path, config, rows=rows)
    _check_same(RunFolder.open(path), config, rows, any_seed)
    return take_up(path, device=config.device, rows=rows)


def _check_same(folder: RunFolder, config: Config, rows: Rows, any_seed: bool) -> None:
    """`BadInput` where the run is done, or is not this fit's."""
    begun = checkpoint.load(folder.goes_on_from).facts if folder.has_begun() else {}
    if begun and (begun.get("fingerprint"), begun.get("scales")) != (fingerprint(rows), scales(rows)):
        raise BadInput(f"run_dir: in {folder.path} is a run on other data; choose another run_dir")
    if begun.get("done"):
        raise BadInput(f"run_dir: the run in {folder.path} is done; choose another run_dir, or set run_dir=None")
    before = folder.read_config()
    kept = {"seed", "device"} if any_seed else {"device"}
    other = [key for key in dotted_keys() if key not in kept and value_at(before, key) != value_at(config, key)]
    if other:
        first = other[0]
        raise BadInput(
            f"run_dir: in {folder.path} is a run with other settings ({first}: {value_at(before, first)} there, "
            f"{value_at(config, first)} here); choose another run_dir"
        )
