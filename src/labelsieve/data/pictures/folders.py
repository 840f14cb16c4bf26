"""A folder with one folder a class, with or without train/val/test above, goes in; a `Listing` comes out."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from labelsieve.data.pictures.decode import SUFFIXES
from labelsieve.data.pictures.labels import name_labels, spelt_as
from labelsieve.data.pictures.listing import SPLIT_NAMES, SPLITS, TRAIN, Listing, arranged, readable_name
from labelsieve.data.pictures.memory import known_below, with_gone
from labelsieve.data.pictures.options import FLAGS, PictureOptions
from labelsieve.data.pictures.origins import LEAVES, Files
from labelsieve.data.pictures.passed_over import is_hidden, what_else
from labelsieve.data.trust import quoted
from labelsieve.errors import ToolError, suggest

OUT = f"folder left out: {LEAVES}"


def visible_folders(path: Path) -> list[str]:
    """The names of the folders directly in `path`, in order; hidden ones and those of runs are left out."""
    return [name for name in _folders_in(path) if not _is_run(path / name)]


def run_folders(path: Path) -> list[str]:
    """The names of the folders directly in `path` that hold a run: what it wrote is no class."""
    return [name for name in _folders_in(path) if _is_run(path / name)]


def _folders_in(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if not is_hidden(entry.name) and _is_dir(entry))
    except OSError as error:
        raise ToolError(f"{path}: the folder cannot be read ({error.strerror}); check its permissions") from None


def _is_run(path: Path) -> bool:
    """Every run has these two from its beginning; a folder that cannot be looked into is none."""
    return os.path.isfile(path / "config.yaml") and os.path.isdir(path / "checkpoint")  # noqa: PTH112, PTH113


def no_pictures(path: Path) -> str:
    """What to say of a folder in which no picture was found: what lies there instead, and what to do."""
    ignored: Counter[str] = Counter()
    for _ in walk(path, path, ignored):
        pass
    told = {what: count for what, count in ignored.items() if what.startswith(("format", "file"))}
    if not told:
        return "put pictures into one folder a class"
    listed = ", ".join(f"{what}: {count:,}" for what, count in told.items())
    return f"there are other files ({listed}); save pictures as JPEG or PNG, with the ending .jpg or .png"


def split_folders(path: Path) -> dict[str, int]:
    """{folder name: split} where `path` has a training folder of class folders; else empty.

    A folder named "train" beside folders of other names that hold pictures is a class like them.
    """
    names = visible_folders(path)
    found = {name: SPLIT_NAMES[name.lower()] for name in names if name.lower() in SPLIT_NAMES}
    training = [name for name, split in found.items() if split == TRAIN]
    if not training or not visible_folders(path / training[0]):
        return {}
    others = [name for name in names if name not in found]
    if any(holds_picture(path / name) for name in others):
        return {}
    return found


def holds_picture(path: Path) -> bool:
    return next(walk(path, path, Counter()), None) is not None


def read_folders(path: Path, options: PictureOptions) -> Listing:
    """One row a picture below each class folder, however deep; its id is its path from `path`."""
    ignored: Counter[str] = Counter()
    splits = split_folders(path)
    notes = _unused(options)
    if splits:
        for other in visible_folders(path):
            if other not in splits:
                notes.append(f'the folder "{other}" is neither train, val nor test and holds no pictures: ignored')
    _count_files(path, ignored)
    paths: list[str] = []
    labels: list[str] = []
    codes: list[int] = []
    empty: list[str] = []
    notes += _about_runs(path)
    before = known_below(path, options.known, 2 if splits else 1)
    for folder, split in sorted(splits.items()) if splits else [("", TRAIN)]:
        top = path / folder
        if folder:
            _count_files(top, ignored)
            notes += _about_runs(top)
        start = f"{folder}/" if folder else ""
        emptied = {key.removeprefix(start) for key in before if key.startswith(start) and not os.path.lexists(path / key)}
        for name in sorted({*visible_folders(top), *emptied}):
            there = list(walk(top / name, path, ignored, options.outside)) if name not in emptied else []
            found = with_gone(there, before.get(f"{start}{name}", ()), path)
            if not found:
                empty.append(f"{start}{name}")
            paths += found
            labels += [readable_name(name)] * len(found)
            codes += [split] * len(found)
        if folder and not visible_folders(top):
            notes.append(f'the folder "{folder}" ({SPLITS[split]}) has no class folders: its files are ignored')
    if not paths:
        raise _nothing(path, ignored)
    if not options.outside and ignored[OUT]:
        notes.append(f"folders that are links out of the data are left out: {ignored[OUT]}; follow them with {FLAGS['outside']}")
    deep = [name for name in paths if name.count("/") > (2 if splits else 1)]
    if deep:
        label = readable_name(deep[0].split("/")[1 if splits else 0])
        notes.append(
            f"{len(deep):,} pictures lie in folders below their class folder, and have its label: "
            f"{quoted(readable_name(deep[0]))} is of {quoted(label)}"
        )
    named = name_labels(labels, str(path), _in_order(labels, path, options.classes))
    ids = [readable_name(name) for name in paths]
    listing = Listing(
        path,
        Files(path, paths, options.outside),
        ids,
        named.codes,
        named.classes,
        np.array(codes, np.int8),
        tuple(notes),
        dict(ignored),
        tuple(readable_name(name) for name in empty),
    )
    return arranged(listing)


def _in_order(labels: list[str], path: Path, classes: Sequence[str] | None) -> Sequence[str] | None:
    """The classes given, or an error that names the folder which is none of them."""
    strange = [] if classes is None else [name for name in dict.fromkeys(labels) if spelt_as(name, classes) not in classes]
    if strange and classes is not None:
        raise ToolError(
            f"{path}: the folder {quoted(strange[0])} is not one of {len(classes)} classes{suggest(strange[0], classes)}; "
            f"rename it, or correct --classes"
        )
    return classes


def _unused(options: PictureOptions) -> list[str]:
    """Choices for tables, which have no meaning here."""
    said = [FLAGS[name] for name in ("image_column", "label_column", "id_column", "encoding") if getattr(options, name)]
    return [f"{', '.join(said)}: only for tables, not used for class folders"] if said else []


def _nothing(path: Path, ignored: Counter[str]) -> ToolError:
    if ignored[OUT]:
        return ToolError(
            f"{path}: its class folders are links that lead out of it ({ignored[OUT]}), and are not followed unless you say so: "
            f"{FLAGS['outside']}"
        )
    return ToolError(f"{path}: no class folder holds a picture; {no_pictures(path)}")


def _about_runs(path: Path) -> list[str]:
    return [f'the folder "{name}" holds a run, not a class: ignored' for name in run_folders(path)]


def walk(folder: Path, root: Path, ignored: Counter[str], outside: bool = False) -> Iterator[str]:
    """Paths from `root`, with "/", of every picture below `folder`, in order; what is passed over is counted.

    Links to folders are followed inside the root, each real folder once, so that a loop of links ends; one that leads to a folder
    above is not followed at all: the pictures of all classes would get the label of this one.
    """
    top = os.path.realpath(root)
    own = os.path.realpath(folder)
    start = os.path.relpath(folder, root).replace(os.sep, "/")
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        here = waiting.pop()
        real = os.path.realpath(root / here)
        if real in seen:
            ignored["folder reached twice through links"] += 1
            continue
        if not outside and real != top and not real.startswith(top.rstrip(os.sep) + os.sep):
            ignored[OUT] += 1
            continue
        if own.startswith(real.rstrip(os.sep) + os.sep):
            ignored["link to a folder above"] += 1
            continue
        seen.add(real)
        below = []
        for entry in _entries(root / here, ignored):
            if is_hidden(entry.name):
                ignored["hidden"] += 1
            elif _is_dir(entry):
                if _is_run(root / here / entry.name):
                    ignored["folder of a run"] += 1
                else:
                    below.append(f"{here}/{entry.name}")
            elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:  # noqa: PTH122
                yield f"{here}/{entry.name}"
            else:
                ignored[what_else(entry.name)] += 1
        waiting += reversed(below)


def _entries(folder: Path, ignored: Counter[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        ignored["folder that cannot be read"] += 1
        return []


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _count_files(folder: Path, ignored: Counter[str]) -> None:
    """Files that lie beside the class folders have no label."""
    for entry in _entries(folder, ignored):
        if is_hidden(entry.name):
            ignored["hidden"] += 1
        elif not _is_dir(entry):
            suffix = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122
            ignored["picture outside the class folders" if suffix in SUFFIXES else what_else(entry.name)] += 1
