"""The run folder: one place for what a run was told, what it did and what came out. Every write is atomic.

config.yaml, noise.npz (where noise was made), environment.json, checkpoint/, metrics.jsonl, timings.jsonl, scores.npz,
issues.csv, model.safetensors + model.json. A folder that has a config.yaml is a run, and can be resumed.
"""

import csv
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.errors import ToolError, UsageError
from labelsieve.runs import atomic
from labelsieve.runs.config import Config, from_yaml, to_yaml


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
        self.model = path / "model.safetensors"
        self.model_facts = path / "model.json"
        self.checkpoints = path / "checkpoint"

    @classmethod
    def create(cls, path: Path, config: Config) -> "RunFolder":
        """A new folder with the configuration in it; whatever exists at `path` is left as it is and is an error."""
        folder = cls(path)
        if path.exists():
            if folder.config.exists():
                raise UsageError(f"{path}: a run is already there; go on with `labelsieve resume {path}` or choose another --out")
            if not path.is_dir() or any(path.iterdir()):
                raise UsageError(f"{path}: it exists and is not a run; choose another --out")
        with atomic.disk_errors(path):
            folder.checkpoints.mkdir(parents=True)
        atomic.write_text(folder.config, to_yaml(config))
        return folder

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        folder = cls(path)
        if not path.is_dir():
            raise UsageError(f"{path}: there is no run folder; start one with `labelsieve train DATA --out {path}`")
        if not folder.config.is_file():
            raise ToolError(f"{path}: config.yaml is missing, so this is no run folder or it was half deleted; start a new run")
        return folder

    def read_config(self) -> Config:
        return from_yaml(self.config.read_text(encoding="utf-8"), str(self.config))

    def discard(self) -> None:
        """Take back a folder that `create` made and that nothing has been trained in."""
        if not self.environment.exists():
            for path in (self.config, self.noise):
                path.unlink(missing_ok=True)
            for folder in (self.checkpoints, self.path):
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()

    @contextmanager
    def only_one(self) -> Iterator[None]:
        """Hold the run against a second process; the lock falls with the process, however it ends."""
        with atomic.disk_errors(self.path):
            handle = os.open(self.checkpoints, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise ToolError(f"{self.path}: another process is training this run; wait for it or stop it first") from None
        finally:
            os.close(handle)

    def write_json(self, path: Path, facts: Mapping[str, Any]) -> None:
        atomic.write_text(path, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")

    def write_arrays(self, path: Path, arrays: Mapping[str, np.ndarray]) -> None:
        def write(draft: Path) -> None:
            with draft.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)

        atomic.write_file(path, write)

    def write_lines(self, path: Path, records: Sequence[Mapping[str, Any]]) -> None:
        atomic.write_text(path, "".join(json.dumps(record) + "\n" for record in records))

    def read_lines(self, path: Path) -> list[dict[str, Any]]:
        """The records of a JSON-lines file, none where it does not exist; a damaged line is named."""
        if not path.exists():
            return []
        records = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                raise ToolError(f"{path}, line {number}: not a JSON record; the file was changed by hand or damaged") from None
        return records

    def read_issues(self) -> list[dict[str, str]]:
        """The rows of issues.csv, most suspicious first."""
        if not self.issues.is_file():
            raise ToolError(f"{self.issues}: missing; the run has not divided its labels yet: `labelsieve resume {self.path}`")
        with self.issues.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
