"""Warm-ups that runs of a sweep share: what differs only in what happens afterwards starts where a sibling's warm-up ended.

In the warm-up no cleaner has a say, so the state after it is the same for all methods that have one, bit for bit on a CPU. It is
kept in SWEEP/warm-ups until nobody needs it.
"""

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from labelsieve.config.schema import CleaningConfig, Config, OutputConfig, to_yaml
from labelsieve.errors import ToolError
from labelsieve.methods.registry import method_named
from labelsieve.reproduce.tasks import Task, held
from labelsieve.runs import checkpoint
from labelsieve.train.run import Run, state_of
from labelsieve.train.start import start_from_state


def warm_up_key(config: Config) -> str:
    """The same for configurations whose warm-ups are the same; whatever may matter to it is in it."""
    training = replace(config.training, lambda_u=None)
    data = replace(config.data, source=config.data.source.partition(":")[0])
    alike = replace(
        config,
        method="" if method_named(config.method).warms_up else config.method,  # others are on their own from the first step
        cleaner="",
        cleaning=CleaningConfig(),
        output=replace(OutputConfig(), model=config.output.model),
        training=training,
        data=data,
        device="",
    )
    return hashlib.sha256(to_yaml(alike).encode()).hexdigest()[:16]


class WarmUps:
    """Those of one sweep, for the tasks that one process was given."""

    def __init__(self, sweep: Path, tasks: Sequence[Task]) -> None:
        self.place = sweep / "warm-ups"
        self.keys = {task.name: warm_up_key(task.config) for task in tasks}
        self.tasks = tasks

    def folder(self, task: Task) -> Path:
        return self.place / self.keys[task.name]

    def ready(self, task: Task) -> bool:
        with suppress(OSError):  # another process may remove it while we look
            return any(self.folder(task).glob("epoch-*"))
        return False

    def use(self, task: Task, run: Run) -> bool:
        """Start the run after the warm-up, if it has done nothing yet and a sibling has left it."""
        if run.epoch or not self.ready(task):
            return False
        try:
            saved = checkpoint.load(self.folder(task))
            if saved.epoch != task.config.training.warmup:
                return False
            start_from_state(run, saved, list(saved.facts.get("timings", ())))
        except (ToolError, OSError):  # removed meanwhile, damaged, or of other data: the run warms up by itself
            return False
        return True

    def keep(self, task: Task, run: Run) -> None:
        """Right after its warm-up: leave the state for siblings that have not begun.

        Two processes may get here together; one writes. If it cannot be written, siblings warm up by themselves.
        """
        if run.epoch != task.config.training.warmup or not self._waiting(task):
            return
        state = state_of(run)
        if state.facts["done"] or state.facts["decision"] is not None:
            return
        timings = [line | {"shared": True} for line in run.timings]
        with held(self._lock(task)) as ours, suppress(ToolError):
            if ours and not self.ready(task):
                checkpoint.save(self.folder(task), replace(state, facts={**state.facts, "timings": timings}))

    def tidy(self, task: Task) -> None:
        """Remove a warm-up that no task waits for any more."""
        with held(self._lock(task)) as ours:
            if ours and not self._waiting(task):
                shutil.rmtree(self.folder(task), ignore_errors=True)

    def _lock(self, task: Task) -> Path:
        return self.place.parent / ".locks" / f"warm-up-{self.keys[task.name]}"

    def _waiting(self, task: Task) -> list[Task]:
        key = self.keys[task.name]
        alike = [one for one in self.tasks if self.keys[one.name] == key and one.name != task.name]
        return [one for one in alike if not one.folder.metrics.exists()]
