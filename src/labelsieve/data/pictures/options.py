"""How a user's pictures are to be read: every choice there is, with its default, checked when it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from labelsieve.errors import UsageError, suggest

FITS = ("crop", "squash")
# How each choice that an error speaks of is made on the command line.
FLAGS = {
    "image_column": "--image-column",
    "label_column": "--label-column",
    "id_column": "--id-column",
    "split_column": "--set pictures.split_column=",
    "root": "--root",
    "encoding": "--encoding",
    "outside": "--set pictures.outside=true",
    "skip_unlabelled": "--set pictures.skip_unlabelled=true",
    "cache_dir": "--cache-dir",
    "labels_file": "--set pictures.labels_file=FILE",
    "incomplete": "--set pictures.incomplete=true",
}


def named(option: str) -> str:
    """A choice as Python and as the command line say it: `root (--root)`; other words stay as they are."""
    return f"{option} ({FLAGS[option]})" if option in FLAGS else option


@dataclass(frozen=True)
class PictureOptions:
    """Choices for `open_pictures` and `inspection`; None means "find out".

    Columns: `image_column`, `label_column`, `id_column` and `split_column` name columns of a table ("" for the
    last two: do not use one). `root` is the folder that a table's paths start from (default: the table's own).
    `outside` allows paths and links that leave the root. `encoding` is the table's. `classes` lists the labels
    that may occur, in order. `skip_unlabelled` leaves rows without a label out instead of refusing the table.

    Pictures: `white` is the value that is white in those of 16 bits. `size` is the side S in pixels, `largest` a bound on it
    where it is found out; `fit` is "crop" (the shorter side becomes S, the middle is kept) or "squash" (both sides become S).
    `cache_dir` holds the decoded pictures. `by_content` recognises a changed file by its content rather than by its size and
    time. `strict` makes one unreadable picture an error. `workers` is the number of decoding processes. `mirror` says whether
    a mirrored picture is still the same thing.

    Web sets: `second_test` is a folder with ILSVRC12's validation pictures, for WebVision; `incomplete` goes on where more
    than a few of the listed pictures are missing.

    Vectors: `labels_file` holds the labels that belong to an .npy file.

    `measuring` says that nothing is trained on here, so that a table need not have rows of the training split. `known` are the
    files that a run began with, {whole path: (size, time)}: one that is gone since is taken from the cache.
    """

    image_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None
    split_column: str | None = None
    root: Path | None = None
    outside: bool = False
    encoding: str | None = None
    classes: tuple[str, ...] | None = None
    skip_unlabelled: bool = False
    size: int | None = None
    white: int | None = None
    largest: int | None = None
    fit: str = "crop"
    cache_dir: Path | None = None
    by_content: bool = False
    strict: bool = False
    workers: int | None = None
    mirror: bool = True
    labels_file: Path | None = None
    second_test: Path | None = None
    incomplete: bool = False
    measuring: bool = False
    known: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.fit not in FITS:
            raise UsageError(f'unknown fit "{self.fit}"{suggest(self.fit, FITS)}; give {" or ".join(FITS)}')
        if self.size is not None and not 4 <= self.size <= 1024:
            raise UsageError(f"size {self.size} is not in 4..1024; give the side of the pictures in pixels")
        if self.white is not None and not 1 <= self.white <= 65535:
            raise UsageError(f"white {self.white} is not in 1..65535; give the value that is white in 16-bit grey, such as 4095")
        if self.largest is not None and self.largest < 8:
            raise UsageError(f"pictures of at most {self.largest} pixels hold nothing; allow at least 8")
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"{self.workers} workers cannot decode; give at least 1")
        if self.classes is not None and len(set(self.classes)) != len(self.classes):
            raise UsageError("the classes given name one of them twice; name each once")
