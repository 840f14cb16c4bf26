"""Fetches encoded pictures by id from a process of their own.

Data that are arrays are opened by the loaders of training, which need torch; loading it here would hold up every request for
seconds. The process ends with its parent, however that ends: it then reads the end of the pipe.
"""

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import numpy as np
from PIL import Image

from labelsieve.config.moved import to_show
from labelsieve.config.schema import Config, from_yaml, to_yaml
from labelsieve.errors import ToolError
from labelsieve.issues.rules import TEST
from labelsieve.report.page import TINY

CHANGED = "the data have changed since the run, so no pictures are shown"
Encoded = Callable[[str, int], tuple[bytes, str]]
DIED = "the process that reads the pictures has ended; start the review again"
PATIENCE = 300.0  # seconds until the data must be open


def encode(picture: Image.Image, at_most: int) -> tuple[bytes, str]:
    """(bytes, media type): PNG for tiny pictures, whose pixels the page enlarges; JPEG for the rest, `at_most` a side."""
    buffer = BytesIO()
    if max(picture.size) <= TINY:
        picture.save(buffer, format="png")
        return buffer.getvalue(), "image/png"
    if max(picture.size) > at_most:
        picture.thumbnail((at_most, at_most), Image.Resampling.LANCZOS, reducing_gap=2.0)
    picture.save(buffer, format="jpeg", quality=88)
    return buffer.getvalue(), "image/jpeg"


def encoded_from_arrays(config: Config, given: dict[str, str], classes: tuple[str, ...]) -> Encoded:
    """A `ToolError` where the data are gone, have no pictures, or are not those of the run: `given` is {id: label}."""
    from labelsieve.runs.rows import rows_for

    opened = rows_for(replace(to_show(config), device="cpu"))
    data, test = opened.data, opened.test
    if data.are_vectors:
        raise ToolError("the samples are vectors, which have no pictures")
    labels = (data.classes[k] for k in data.labels.tolist())
    if dict(zip(data.ids, labels)) != given or tuple(data.classes) != classes:
        raise ToolError(f"{CHANGED} ({config.data.source})")
    images = data.images.numpy()
    shown = {name: images[row] for row, name in enumerate(data.ids)}
    if test is not None:  # pictures of it may be copied in the training set
        shown |= {f"{TEST}{test.ids[row] if test.ids else row}": one for row, one in enumerate(test.images.numpy())}

    def read(name: str, at_most: int) -> tuple[bytes, str]:
        image = shown[name]
        pixels = image[:3].transpose(1, 2, 0) if len(image) >= 3 else image[0]
        return encode(Image.fromarray(np.ascontiguousarray(pixels)), at_most)

    return read


class Gone(Exception):
    """The process died, or the data could not be opened: why, as half a sentence."""


class PictureProcess:
    """One request at a time: encoding a small picture takes a millisecond."""

    def __init__(self, config: Config, given: dict[str, str], classes: tuple[str, ...]) -> None:
        """`given` is {id: label} as the run has it, by which changed data are noticed."""
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._guard = threading.Lock()
        self._process: BaseProcess = context.Process(target=_work, args=(theirs, to_yaml(config), given, classes), daemon=True)
        self._process.start()
        theirs.close()

    def encoded(self, name: str, at_most: int) -> tuple[bytes, str]:
        with self._guard:
            try:
                self._pipe.send((name, at_most))
                found: tuple[bytes, str] = self._pipe.recv()
                return found
            except (EOFError, OSError):
                raise Gone(DIED) from None

    def await_opening(self) -> None:
        """Until the data are open, or `Gone`."""
        try:
            if not self._pipe.poll(PATIENCE):
                raise Gone("the data could not be opened in time")
            problem = self._pipe.recv()
        except (EOFError, OSError):
            raise Gone(DIED) from None
        if problem:
            raise Gone(problem)

    def stop(self) -> None:
        self._pipe.close()


def _work(pipe: Connection, config: str, given: dict[str, str], classes: tuple[str, ...]) -> None:
    if hasattr(os, "nice"):
        os.nice(5)  # decisions come first
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the pipe
    problem, read = "", None
    try:
        read = encoded_from_arrays(from_yaml(config, "the run's configuration"), given, classes)
    except Exception as error:  # whatever it is, the page should say it
        problem = str(error) or type(error).__name__
    try:
        pipe.send(problem)
        while read is not None:
            pipe.send(read(*pipe.recv()))
    except (EOFError, OSError):  # the server has gone
        return
