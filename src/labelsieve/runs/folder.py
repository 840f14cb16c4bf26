"""The run folder: one place for what a run was told, what it did and what came out. Every write is atomic.

docs/data.md lists the files. Of your own data also data.json, samples.csv (id, label) and left_out.csv (id, path, reason). A
folder that has a config.yaml is a run, and can be resumed.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve import run_files
from labelsieve.config.schema import Config, from_yaml, to_yaml
from labelsieve.data.doubts import doubts
from labelsieve.data.pictures.presence import known_from
from labelsieve.disk import hold, lock_file, open_to_hold
from labelsieve.doors import reading
from labelsieve.errors import ToolError, UsageError, command
from labelsieve.run_files import is_there
from labelsieve.runs import atomic
from labelsieve.texts import as_csv

if TYPE_CHECKING:
    from labelsieve.runs.rows import Rows


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.environment = path / "environment.json"
        self.noise = path / "noise.npz"
        self.metrics = path / "metrics.jsonl"
        self.timings = path / "timings.jsonl"
        self.scores = path / "scores.npz"
        self.issues = path / "issues.csv"
        self.issues_parquet = path / "issues.parquet"
        self.neighbours = path / "neighbours.npz"
        self.map = path / "map.npz"
        self.card = path / "README.md"
        self.report = path / "report.html"
        self.model = path / "model.safetensors"
        self.model_facts = path / "model.json"
        self.backbone = path / "backbone.safetensors"
        self.checkpoints = path / "checkpoint"
        self.slim = path / "slim"
        self.estimate = path / "estimate.json"
        self.data_facts = path / "data.json"
        self.samples = path / "samples.csv"
        self.left_out = path / "left_out.csv"
        self.round = path / "round.json"
        self.early_losses = path / "early_losses.npz"
        self.predictions = path / "predictions.npz"

    @classmethod
    def create(cls, path: Path, config: Config, round_text: str | None = None) -> "RunFolder":
        """A new folder with the configuration in it; whatever exists at `path` is left as it is and is an error.

        `round_text` is what people decided before (see `runs/rounds.py`).
        """
        folder = cls(path)
        with atomic.disk_errors(path):
            if is_there(folder.config):
                raise UsageError(
                    f"{path}: a run is already there; resume it with {command('resume', path)} or choose another --out"
                )
            if path.exists() and not folder.is_bare():
                raise UsageError(f"{path}: it exists and is not a run; choose another --out")
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
        try:
            if round_text is not None:  # before the configuration, which makes the folder a run
                atomic.write_text(folder.round, round_text)
            folder.write_config(config)
        except BaseException:
            folder.discard()
            raise
        return folder

    def write_config(self, config: Config) -> None:
        """Put another configuration in place, before anything has been trained. It names its round.json wherever it lies."""
        if config.data.decisions is not None:
            config = replace(config, data=replace(config.data, decisions=self.round.name))
        if config.features.weights == str(self.backbone):
            config = replace(config, features=replace(config.features, weights=self.backbone.name))
        atomic.write_text(self.config, to_yaml(config))

    def is_bare(self) -> bool:
        """An empty folder, or what a process leaves that was killed before it could write the configuration."""
        early = {"checkpoint", ".config.yaml.draft", "round.json", ".round.json.draft", lock_file(self.path / "run").name}
        if not self.path.is_dir() or not {path.name for path in self.path.iterdir()} <= early:
            return False
        if not is_there(self.checkpoints):
            return True
        return is_real_folder(self.checkpoints) and not any(self.checkpoints.iterdir())

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        folder = cls(path)
        if not path.is_dir():
            raise UsageError(f"{path}: there is no run folder; start one with `labelsieve train DATA --out {path}`")
        if (path / "sweep.json").is_file():
            raise UsageError(f"{path}: this is a sweep of `labelsieve reproduce`; name runs in it: {path}/runs/NAME/seedN")
        if not is_there(folder.config):
            raise ToolError(f"{path}: config.yaml is missing, so this is no run folder or it was half deleted; start a new run")
        for inner in (folder.checkpoints, folder.slim):
            refuse_other_folder(inner)
        return folder

    def sweep(self) -> None:
        """Clear away the drafts of processes that were killed, in this folder's own folders, once the run is known to go on."""
        for folder in (self.path, self.checkpoints, self.slim):
            refuse_other_folder(folder, is_top=folder == self.path)
            for path in (*folder.glob(".*.draft"), *folder.glob(".*.part")):
                if is_real_folder(path):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    def has_begun(self) -> bool:
        """Is there anything of training? If so, a missing checkpoint is a loss and not a beginning."""
        return is_there(self.environment) or is_there(self.metrics) or any(self.goes_on_from.glob("epoch-*"))

    @property
    def goes_on_from(self) -> Path:
        """Where its newest checkpoint lies: a slim one counts where no full one is as new, as after a copy over a narrow link."""
        is_slim = _newest_epoch(self.slim) > _newest_epoch(self.checkpoints)
        return self.slim if is_slim else self.checkpoints

    def read_config(self) -> Config:
        from labelsieve.config.resolve import validate  # it knows the networks, and so needs torch

        config = self.config_as_written()
        try:
            validate(config, recorded=True)
        except UsageError as error:
            raise ToolError(f"{self.config}: {error}") from None
        return config

    def config_as_written(self) -> Config:
        """The same without a look at whether the networks and cleaners that it names are there, and so without torch."""
        try:
            with reading(self.config, "restore it or start a new run"):
                return self.own(from_yaml(run_files.text(self.config), str(self.config)))
        except UsageError as error:
            raise ToolError(f"{self.config}: {error}") from None

    def own(self, config: Config) -> Config:
        """The configuration with this folder's own round.json and backbone in it, where it has them."""
        if config.features.use == "frozen" and is_there(self.backbone):
            run_files.open_file(self.backbone).close()
            config = replace(config, features=replace(config.features, weights=str(self.backbone)))
        if config.data.decisions is None:
            return config
        return replace(config, data=replace(config.data, decisions=str(self.round)))

    def discard(self) -> None:
        """Take back a folder that `create` has just made, and in which nothing has been trained."""
        shutil.rmtree(self.path, ignore_errors=True)

    @contextmanager
    def only_one(self) -> Iterator[None]:
        """Hold the run against a second process; the lock falls with the process, however it ends."""
        with atomic.disk_errors(self.path):
            handle = open_to_hold(self.path)
        with ExitStack() as stack:
            if handle is not None:
                stack.callback(os.close, handle)
            try:
                stack.enter_context(hold(handle, self.path / "run", wait=False))
            except BlockingIOError:
                raise ToolError(f"{self.path}: another process is training this run; wait for it or stop it first") from None
            yield

    def write_json(self, path: Path, facts: Mapping[str, Any]) -> None:
        atomic.write_text(path, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")

    def write_arrays(self, path: Path, arrays: Mapping[str, np.ndarray]) -> None:
        def write(draft: Path) -> None:
            with draft.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)

        atomic.write_file(path, write)

    def write_lines(self, path: Path, records: Sequence[Mapping[str, Any]]) -> None:
        atomic.write_text(path, "".join(json.dumps(record) + "\n" for record in records))

    def read_issues(self) -> list[dict[str, str]]:
        """The rows of issues.csv, most suspicious first."""
        return list(self.issue_rows())

    def issue_rows(self) -> Iterator[dict[str, str]]:
        """The same one by one: a million of them take gigabytes."""
        if not is_there(self.issues):
            raise ToolError(f"{self.issues}: missing; the run has not divided its labels yet: {command('resume', self.path)}")
        with reading(self.issues, run_files.REMEDY):
            yield from run_files.rows(self.issues, ("id", "given_label"))


def is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def refuse_other_folder(path: Path, is_top: bool = False) -> None:
    """A `ToolError` where a folder of the run is a link or no folder: what is written and cleared away there is not the run's."""
    if is_there(path) and not is_real_folder(path) and not (is_top and path.is_dir()):
        what = "a link" if path.is_symlink() else "no folder"
        raise ToolError(f"{path}: it is {what}, and what belongs to a run lies in its own folder; move the folder here")


def epoch_of(checkpoint: Path) -> int:
    """By the folder's name, `epoch-000012` or `epoch-000012-done`; -1 where it has another."""
    digits = checkpoint.name.removeprefix("epoch-").removesuffix("-done")
    return int(digits) if digits.isdecimal() else -1


def _newest_epoch(checkpoints: Path) -> int:
    return max(map(epoch_of, checkpoints.glob("epoch-*")), default=-1)


NAMED = 3  # ids that an error names


def counts(rows: "Rows") -> dict[str, int]:
    """{class: training samples}."""
    found = np.bincount(rows.data.labels.numpy(), minlength=len(rows.data.classes))
    return dict(zip(rows.data.classes, found.tolist()))


def write_data_facts(folder: RunFolder, config: Config, rows: "Rows") -> None:
    opened = rows.opened
    assert opened is not None
    by_class = counts(rows)
    facts = {
        "source": config.data.source,
        "layout": opened.layout.kind,
        "why": opened.layout.why,
        "samples": len(rows.data),
        "classes": by_class,
        "shape": list(rows.data.images.shape[1:]),
        "measured_on": 0 if rows.test is None else len(rows.test.labels),
        "trusted": 0 if rows.pinned is None else int(rows.pinned.sum()),
        "left_out": len(rows.left_out),
        "passed_over": dict(opened.ignored),
        "notes": list(rows.notes),
        "doubts": list(doubts(by_class)),
        "files": [str(place) for place in rows.memories],
    }
    folder.write_json(folder.data_facts, facts)
    labels = [rows.data.classes[code] for code in rows.data.labels.tolist()]
    atomic.write_text(folder.samples, as_csv(("id", "given_label"), zip(rows.data.ids, labels)))
    if rows.left_out:
        told = [(row.id, row.path, row.reason) for row in rows.left_out]
        atomic.write_text(folder.left_out, as_csv(("id", "path", "reason"), told))


def known_files(folder: RunFolder) -> dict[str, tuple[int, int]]:
    """The picture files that the run began with, {whole path: (size, time)}; empty where it did not write them down."""
    return known_from(Path(place) for place in run_files.facts(folder.data_facts).get("files") or ())


def difference(folder: RunFolder, rows: "Rows") -> str:
    """How these rows differ from those that the run began with, as far as it wrote them down."""
    if not is_there(folder.samples):
        return "labels, noise, trusted ids or picture size differ"
    with reading(folder.samples, "put it back, or delete it"):
        before = {row["id"]: row["given_label"] for row in run_files.rows(folder.samples, ("id", "given_label"))}
    now = {name: rows.data.classes[code] for name, code in zip(rows.data.ids, rows.data.labels.tolist())}
    reasons = {row.id: row.reason for row in rows.left_out}
    gone = [f"{name} ({reasons[name]})" if name in reasons else name for name in before if name not in now]
    new = [name for name in now if name not in before]
    other = [name for name in now if name in before and now[name] != before[name]]
    said = [_some(what, names) for what, names in (("gone", gone), ("new", new), ("labelled otherwise", other)) if names]
    return "; ".join(said) or "its noise, trusted ids or picture size differ"


def _some(what: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} {'is' if len(names) == 1 else 'are'} {what}: {', '.join(names[:NAMED])}{more}"
