"""Decodes pictures in child processes, so that a picture that crashes one costs only itself. Needs no torch.

A task is plain JSON, with one answer per picture: "survey" reads headers (and, when asked, decodes to verify and hashes),
"decode" writes pixels to the cache. Plain child processes rather than multiprocessing: they never run the user's main script
again, hold no torch, and end by themselves when this process is killed.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any, BinaryIO

import numpy as np

from labelsieve.data.pictures.decode import CRASHED, header, open_picture, pixels, reason, top_of
from labelsieve.data.pictures.fetch import Reference, fetch
from labelsieve.data.pictures.framing import Frame, framed_file
from labelsieve.data.pictures.looks import DRAFT, as_text, look
from labelsieve.data.pictures.options import named
from labelsieve.doors import FLAGS
from labelsieve.errors import ToolError

Task = dict[str, Any]


def perform(task: Task) -> list[Any]:
    """One answer for each of `task["references"]`."""
    if task["do"] == "survey":
        return [survey(reference, task["verify"]) for reference in task["references"]]
    return decode(task)


def decode(task: Task) -> list[str | None]:
    """Write the pixels of rows first, first + 1, ... into the file; None or the reason why not for each.

    A task with a `frame` wants them as a pretrained network does; the file is a scratch one then, and is not flushed.
    """
    references, frame = task["references"], Frame.of(task["frame"]) if "frame" in task else None
    shape = (task["channels"], task["size"], task["size"]) if frame is None else (3, frame.height, frame.width)
    block = np.zeros((len(references), *shape), np.uint8)
    answers: list[str | None] = []
    for row, reference in enumerate(references):
        try:
            with fetch(reference) as stream:
                if frame is None:
                    block[row] = pixels(stream, task["size"], task["channels"], task["fit"], task["white"])
                else:
                    block[row] = framed_file(stream, frame, task["white"])
            answers.append(None)
        except Exception as error:  # whatever one picture does, the others go on
            answers.append(reason(error))
    handle = os.open(task["file"], os.O_WRONLY | FLAGS)
    try:
        if os.fstat(handle).st_size == task["bytes"]:  # else the cache was finished by somebody else meanwhile
            _write(handle, block, task["offset"] + task["first"] * block[0].nbytes)
            if frame is None:
                os.fsync(handle)
    finally:
        os.close(handle)
    return answers


def _write(handle: int, block: np.ndarray, offset: int) -> None:
    """By write rather than through a map: a full disk is then an error and not the end of the process."""
    left = block.data.cast("B")
    os.lseek(handle, offset, os.SEEK_SET)
    while left:
        left = left[os.write(handle, left) :]


def survey(reference: Reference, verify: bool) -> dict[str, Any]:
    """What the header says; with `verify` also the content's hash, a look, and whether all of it can be decoded."""
    seen: dict[str, Any] = {}
    try:
        with fetch(reference) as stream:
            if verify:
                seen["hash"] = content_hash(stream)
                stream.seek(0)
            picture = open_picture(stream)
            seen |= header(picture)
            seen |= top_of(picture)
            if verify:
                picture.draft(None, DRAFT)
                picture.load()
                seen["look"] = as_text(look(picture))
    except Exception as error:  # as above
        seen["reason"] = reason(error)
    return seen


def content_hash(stream: BinaryIO) -> str:
    total = hashlib.sha256()
    while part := stream.read(2**20):
        total.update(part)
    return total.hexdigest()[:32]


def crashed(task: Task) -> list[Any]:
    """The answer for a task of one picture on which the process died."""
    return [{"reason": CRASHED}] if task["do"] == "survey" else [CRASHED]


def serve() -> None:
    """Tasks from standard input, answers to standard output, a line of JSON each."""
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="ascii")
    os.dup2(2, 1)  # whatever a library prints must not get between the answers
    answers.write("ready\n")
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"answers": perform(json.loads(line))}
        except OSError as error:
            answer = {"error": error.strerror or str(error)}
        answers.write(json.dumps(answer) + "\n")


FEW = 200  # fewer pictures than this are done here: starting processes would take longer
START = "from labelsieve.data.pictures.pool import serve; serve()"


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
