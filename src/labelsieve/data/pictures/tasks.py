"""What a decoding process does: a task as plain JSON, one answer per picture. Needs no torch.

Two tasks: "survey" reads headers (and, when asked, decodes to verify and hashes); "decode" writes pixels to
the cache. `serve` runs in a process of its own, one task per line; it ends when its input does.
"""

import hashlib
import json
import os
import sys
from typing import Any, BinaryIO

import numpy as np

from labelsieve.data.pictures.decode import CRASHED, header, open_picture, pixels, reason, top_of
from labelsieve.data.pictures.fetch import Reference, fetch
from labelsieve.data.pictures.framing import Frame, framed_file
from labelsieve.data.pictures.looks import DRAFT, as_text, look
from labelsieve.doors import FLAGS

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
