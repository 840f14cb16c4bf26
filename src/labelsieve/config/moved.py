"""Finds a run's data after they have moved. Needs no torch."""

import os
from dataclasses import replace
from pathlib import Path

from labelsieve.config.schema import Config, FeaturesConfig, override, value_at
from labelsieve.errors import ToolError

# What a run needs beside its data; the words are those that may stand before the path.
BESIDE: dict[str, tuple[str, ...]] = {
    "pictures.root": (),
    "pictures.val": (),
    "pictures.labels_file": (),
    "pictures.second_test": (),
    "data.trusted": (),
    "data.noise": ("file:", "matrix:"),
    "training.prior": ("file:",),
}
UNSEEN = ("pictures.val", "pictures.second_test", "data.trusted")  # training samples can be looked at without these


def moved_to(config: Config, source: str) -> Config:
    """The configuration with its data at `source`. What is gone beside the old data is looked for beside the new."""
    old, new = (spec.partition(":")[2] for spec in (config.data.source, source))
    found = {"data.source": source}
    for key, words in BESIDE.items():
        word, place = _place(value_at(config, key), words)
        if old and new and place and not Path(place).expanduser().exists():
            there = os.path.normpath(Path(new).expanduser() / os.path.relpath(Path(place).expanduser(), Path(old).expanduser()))
            if os.path.lexists(there):
                found[key] = f"{word}{there}"
    return override(config, found)


def check_there(source: str, how: str = "with --data") -> None:
    """A `ToolError` where the run's data are gone; `how` is the way to say where they are."""
    place = source.partition(":")[2]
    if place and not Path(place).expanduser().exists():
        raise ToolError(f"{place}: the run's data are no longer there; say where they are now {how}")


def check_root(config: Config) -> None:
    """A `ToolError` where the folder is gone that the paths of a table start from."""
    root = config.pictures.root
    if root is not None and not Path(root).expanduser().is_dir():
        raise ToolError(
            f"{root}: the folder that the paths of {config.data.source.partition(':')[2]} start from is no longer there, nor "
            f"does it lie as it did beside the data; put it back, or a link to it"
        )


def to_look_at(config: Config) -> Config:
    """The configuration for who only looks at training samples: nothing else has to be there any more."""
    check_there(config.data.source)
    gone = [key for key in UNSEEN if (place := value_at(config, key)) and not Path(place).expanduser().exists()]
    return override(config, dict.fromkeys(gone))


def to_show(config: Config) -> Config:
    """The same for who shows training samples: pictures are pictures, also where their features were trained on."""
    return replace(to_look_at(config), features=FeaturesConfig())


def _place(value: str | None, words: tuple[str, ...]) -> tuple[str, str]:
    """The word before a path, and the path; both empty where there is none."""
    if value is None or not words:
        return "", value or ""
    word = next((word for word in words if value.startswith(word)), None)
    return ("", "") if word is None else (word, value.removeprefix(word))
