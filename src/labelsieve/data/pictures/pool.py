"""Runs decoding tasks in child processes; a picture that crashes one costs only itself.

Plain child processes rather than multiprocessing: they never run the user's main script again, hold no torch,
and end by themselves when this process is killed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any

from labelsieve.data.pictures.options import named
from labelsieve.data.pictures.tasks import Task, crashed, perform
from labelsieve.errors import ToolError

FEW = 200  # fewer pictures than this are done here: starting processes would take longer
START = "from labelsieve.data.pictures.tasks import serve; serve()"


class Died(Exception):
    """A decoding process ended in the middle of a task."""


def worker_count(wanted: int | None, pictures: int) -> int:
    """The processes to use: as many as asked for, else one a core and at most 16; 0 means "in this process"."""
    if wanted is None and pictures < FEW:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return wanted if wanted is not None else min(cores, 16)


def run_tasks(count: int, make: Callable[[int], Task], workers: int) -> Iterator[tuple[int, list[Any]]]:
    """(k, answers) for the tasks make(0) .. make(count - 1), in whatever order they are done."""
    idle: SimpleQueue[Child] = SimpleQueue()
    children = started(min(workers, count))
    if not children:
        yield from ((k, _here(make(k))) for k in range(count))
        return
    for child in children:
        idle.put(child)

    def work(k: int) -> tuple[int, list[Any]]:
        child = idle.get()
        try:
            return k, child.carefully(make(k))
        finally:
            idle.put(child)

    pool = ThreadPoolExecutor(len(children))
    try:
        for done in as_completed([pool.submit(work, k) for k in range(count)]):
            yield done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in children:
            child.end()


def started(workers: int) -> "list[Child]":
    """So many processes that are ready, or none where processes cannot be started."""
    children = [Child() for _ in range(workers)]
    try:
        for child in children:
            child.greet()
    except (OSError, Died):
        for child in children:
            child.end()
        return []
    return children


def _here(task: Task) -> list[Any]:
    try:
        return perform(task)
    except OSError as error:
        raise _cannot_write(task, error.strerror or str(error)) from None


def _cannot_write(task: Task, why: str) -> ToolError:
    return ToolError(
        f"{task.get('file', 'cache')}: could not be written ({why}); free some space or choose another "
        f"{named('cache_dir')}, then start again: what is decoded is kept"
    )


class Child:
    """One decoding process, started on first use and again after it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def greet(self) -> "subprocess.Popen[str]":
        """The running process."""
        if self._process is not None:
            return self._process
        paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109
        self._process = subprocess.Popen(
            # -P: or Python would look for modules in the working folder first, which may be a stranger's data.
            [sys.executable or "python3", "-P", "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
            encoding="ascii",
        )
        if self._line() != "ready\n":
            self.end()
            raise Died
        return self._process

    def carefully(self, task: Task) -> list[Any]:
        """The answers; where the process dies, picture by picture, so that only the deadly one is lost."""
        try:
            return self._ask(task)
        except Died:
            if len(task["references"]) == 1:
                return crashed(task)
        answers = []
        for row, reference in enumerate(task["references"]):
            answers += self.carefully({**task, "references": [reference], "first": task["first"] + row})
        return answers

    def end(self) -> None:
        """Kill rather than ask: whatever is not told as done is done again."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, task: Task) -> list[Any]:
        process = self.greet()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            line = self._line()
        except (BrokenPipeError, ValueError):
            line = ""
        if not line.endswith("\n"):
            self.end()
            raise Died
        answer = json.loads(line)
        if "error" in answer:
            raise _cannot_write(task, answer["error"])
        return list(answer["answers"])

    def _line(self) -> str:
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout.readline()
