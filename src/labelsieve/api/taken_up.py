"""A fit with `run_dir`: starts a run in that folder, or resumes the same fit where it was interrupted."""

from pathlib import Path

from labelsieve.api.labels import BadInput
from labelsieve.config.schema import Config, dotted_keys, value_at
from labelsieve.runs import checkpoint
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import Rows
from labelsieve.train.run import Run, fingerprint, scales
from labelsieve.train.start import resume, start


def seed_in(path: Path) -> int | None:
    """The seed of the run at `path`: a fit without one of its own goes on with that, as what it settles follows from it."""
    return RunFolder.open(path).read_config().seed if RunFolder(path).config.is_file() else None


def run_in(path: Path, config: Config, rows: Rows) -> Run:
    """The run at `path`, new or as it was left."""
    if not RunFolder(path).config.is_file():
        if path.exists() and not RunFolder(path).is_bare():
            raise BadInput(f"run_dir: {path} exists and is not a run; choose another run_dir")
        return start(path, config, rows=rows)
    _check_same(RunFolder.open(path), config, rows)
    return resume(path, device=config.device, rows=rows)


def _check_same(folder: RunFolder, config: Config, rows: Rows) -> None:
    """`BadInput` where the run is done, or is not this fit's."""
    begun = checkpoint.load(folder.goes_on_from).facts if folder.has_begun() else {}
    if begun and (begun.get("fingerprint"), begun.get("scales")) != (fingerprint(rows), scales(rows)):
        raise BadInput(f"run_dir: in {folder.path} is a run on other data; choose another run_dir")
    if begun.get("done"):
        raise BadInput(f"run_dir: the run in {folder.path} is done; choose another run_dir, or set run_dir=None")
    before = folder.read_config()
    other = [key for key in dotted_keys() if key != "device" and value_at(before, key) != value_at(config, key)]
    other += [f"{config.method}.{key}" for key in config.own if before.own.get(key) != config.own[key]]
    if other:
        first = other[0]
        raise BadInput(
            f"run_dir: in {folder.path} is a run with other settings ({first}: {value_at(before, first)} there, "
            f"{value_at(config, first)} here); choose another run_dir"
        )
