"""Walks folders and finds the pictures in them, in order, counting what was passed over."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from labelsieve.data.pictures.decode import SUFFIXES
from labelsieve.data.pictures.fetch import LEAVES
from labelsieve.data.pictures.options import FLAGS
from labelsieve.errors import ToolError

# Folders that systems put among people's files: previews and what was deleted are no pictures of a class.
OF_SYSTEMS = ("__MACOSX", "@eaDir", "$RECYCLE.BIN", "System Volume Information", "lost+found")
# Pictures in formats that are not read: told apart from files that are none.
UNREAD = frozenset(
    [".heic", ".heif", ".avif", ".jp2", ".j2k", ".jxl", ".svg", ".ico", ".tga", ".psd", ".eps", ".dcm", ".nii", ".exr", ".hdr"]
    + [".raw", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".pdf", ".mp4", ".mov", ".avi", ".npy"]
)
OUT = f"folder left out: {LEAVES}"


def is_hidden(name: str) -> bool:
    """Whether a file or folder is nobody's picture by its name alone."""
    return name[:1] == "." or name in OF_SYSTEMS


def what_else(name: str) -> str:
    """What a file is that is not read, in words."""
    ending = os.path.splitext(name)[1].lower()  # noqa: PTH122
    if ending in UNREAD:
        return f"format that is not read ({ending})"
    return "not a picture" if ending else "file without an ending"


def visible_folders(path: Path) -> list[str]:
    """The names of the folders directly in `path`, in order; hidden ones and those of runs are left out."""
    return [name for name in _folders_in(path) if not is_run(path / name)]


def run_folders(path: Path) -> list[str]:
    """The names of the folders directly in `path` that hold a run: what it wrote is no class."""
    return [name for name in _folders_in(path) if is_run(path / name)]


def _folders_in(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if not is_hidden(entry.name) and _is_dir(entry))
    except OSError as error:
        raise ToolError(f"{path}: the folder cannot be read ({error.strerror}); check its permissions") from None


def hidden_pictures(path: Path) -> dict[str, int]:
    """{name: pictures directly in it} of the hidden folders in `path`: they may be meant as classes. Those of systems are not."""
    entries = [entry for entry in _entries(path, Counter()) if entry.name not in OF_SYSTEMS and is_hidden(entry.name)]
    names = [entry.name for entry in entries if _is_dir(entry)]
    inside = {name: [entry.name for entry in _entries(path / name, Counter())] for name in names}
    counts = {name: sum(_is_picture(file) and not is_hidden(file) for file in files) for name, files in inside.items()}
    return {name: count for name, count in counts.items() if count}


def is_run(path: Path) -> bool:
    """Every run has two of these from its beginning; a folder that cannot be looked into is none."""
    return os.path.isfile(path / "config.yaml") and any(os.path.isdir(path / name) for name in ("checkpoint", "slim"))  # noqa: PTH112, PTH113


def holds_picture(path: Path) -> bool:
    return next(walk(path, path, Counter()), None) is not None


def no_pictures(path: Path) -> str:
    """What to say of a folder in which no picture was found: what lies there instead, and what to do."""
    ignored: Counter[str] = Counter()
    for _ in walk(path, path, ignored):
        pass
    told = {what: count for what, count in ignored.items() if what.startswith(("format", "file"))}
    if not told:
        return "put pictures into one folder per class"
    listed = ", ".join(f"{what}: {count:,}" for what, count in told.items())
    return f"there are other files ({listed}); save pictures as JPEG or PNG, with the ending .jpg or .png"


def left_out(ignored: Counter[str]) -> str:
    """What to say of folders that `walk` did not follow, for they are links that leave the root."""
    return f"folders that are links out of the data are left out: {ignored[OUT]}; follow them with {FLAGS['outside']}"


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
                if is_run(root / here / entry.name):
                    ignored["folder of a run"] += 1
                else:
                    below.append(f"{here}/{entry.name}")
            elif _is_picture(entry.name):
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


def _is_picture(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES  # noqa: PTH122


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def count_files(folder: Path, ignored: Counter[str]) -> None:
    """Files that lie beside the class folders have no label."""
    for entry in _entries(folder, ignored):
        if is_hidden(entry.name):
            ignored["hidden"] += 1
        elif not _is_dir(entry):
            ignored["picture outside the class folders" if _is_picture(entry.name) else what_else(entry.name)] += 1
