"""The settings for reading pictures, each with its default, checked when they are made."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from labelsieve.config.setting import check, setting
from labelsieve.errors import UsageError

# Settings that have an option of their own on the command line; the others are said by --set.
ON_COMMAND_LINE = (
    *("image_column", "label_column", "id_column", "root", "classes", "size"),
    *("cache_dir", "strict", "encoding", "val", "second_test"),
)


@dataclass(frozen=True)
class PictureSettings:
    """The section `pictures` of a configuration. None: found out."""

    image_column: str | None = setting(None, "The table's column with picture paths, if it has an unusual name")
    label_column: str | None = setting(None, "The table's column with labels, if it has an unusual name")
    id_column: str | None = setting(
        None, "The table's column with ids; default: the usual names, else the paths are the ids; '' for none"
    )
    split_column: str | None = setting(None, "The table's column with train, val or test; default: the usual names; '' for none")
    root: str | None = setting(None, "The folder that paths in the table are relative to; default: the table's own")
    outside: bool = setting(False, "Paths and links may leave the root")
    encoding: str | None = setting(None, "The table's encoding; default: utf-8; spreadsheets often write cp1252")
    classes: tuple[str, ...] | None = setting(None, "The classes, in order; any other label is an error")
    skip_unlabelled: bool = setting(False, "Leave out rows without a label")
    val: str | None = setting(
        None, "Labelled pictures to measure accuracy on, in any layout; default: the data's own test or val split"
    )
    size: int | None = setting(
        None, "Resize pictures to this many pixels on each side; default: chosen by their sizes", low=4, high=1024
    )
    white: int | None = setting(
        None, "The value that is white in 16-bit grey, such as 4095; default: the largest value of all", low=1, high=65535
    )
    fit: str = setting(
        "crop",
        "crop: resize the shorter side and keep the middle; squash: resize both sides",
        choices=("crop", "squash"),
    )
    mirror: bool = setting(True, "A mirrored picture is still the same thing; false for letters, digits, left and right")
    cache_dir: str | None = setting(None, "Where to keep decoded pictures; default: your cache folder")
    by_content: bool = setting(False, "Recognise a changed file by its content instead of its size and time")
    strict: bool = setting(False, "Stop at a picture that cannot be read instead of leaving it out")
    workers: int | None = setting(None, "Processes that decode pictures; default: one per core", low=1, high=1024)
    labels_file: str | None = setting(None, "The labels of an .npy file of vectors")
    second_test: str | None = setting(
        None,
        "For webvision: a folder with ILSVRC12's validation pictures, as a second test set",
    )
    incomplete: bool = setting(False, "Train on a web set although many of its listed pictures are missing")


def _flag(name: str, default: Any) -> str:
    if name in ON_COMMAND_LINE:
        return f"--{name.replace('_', '-')}"
    return f"--set pictures.{name}={'true' if default is False else 'FILE' if name == 'labels_file' else ''}"


# How each choice is made on the command line, for errors that speak of it.
FLAGS = {one.name: _flag(one.name, one.default) for one in fields(PictureSettings)}


def named(option: str) -> str:
    """A choice as Python and as the command line say it: `root (--root)`; other words stay as they are."""
    return f"{option} ({FLAGS[option]})" if option in FLAGS else option


@dataclass(frozen=True)
class PictureOptions(PictureSettings):
    """How pictures are read: the settings, with places as paths, and what a caller adds to them.

    `largest` bounds the side where it is found out. `measuring` says that nothing is trained on here, so that a table need not
    have rows of the training split. `known` are the files that a run began with, {whole path: (size, time)}: one that is gone
    since is taken from the cache.
    """

    root: Path | None = None  # type: ignore[assignment]
    cache_dir: Path | None = None  # type: ignore[assignment]
    labels_file: Path | None = None  # type: ignore[assignment]
    second_test: Path | None = None  # type: ignore[assignment]
    largest: int | None = None
    measuring: bool = False
    known: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check(PictureSettings(**{one.name: getattr(self, one.name) for one in fields(PictureSettings)}), "pictures.")
        if self.largest is not None and self.largest < 8:
            raise UsageError(f"pictures of at most {self.largest} pixels hold nothing; allow at least 8")
        if self.classes is not None and len(set(self.classes)) != len(self.classes):
            raise UsageError("the classes given name one of them twice; name each once")


def picture_options(settings: PictureSettings) -> PictureOptions:
    """The options that a configuration's section stands for."""
    said = {one.name: getattr(settings, one.name) for one in fields(PictureSettings)}
    places = {name: Path(said[name]).expanduser() for name in ("root", "cache_dir", "labels_file", "second_test") if said[name]}
    return PictureOptions(**said | places)
