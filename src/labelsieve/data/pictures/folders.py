"""Lists a folder with one folder per class, with or without train/val/test above, in order, counting what was passed over."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from labelsieve.data.pictures.decode import SUFFIXES
from labelsieve.data.pictures.fetch import LEAVES
from labelsieve.data.pictures.listing import SPLIT_NAMES, SPLITS, TRAIN, Listing, arranged, name_labels, readable_name, spelt_as
from labelsieve.data.pictures.options import FLAGS, PictureOptions
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.presence import known_below, with_gone
from labelsieve.errors import ToolError, suggest
from labelsieve.texts import quoted

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


def read_folders(path: Path, options: PictureOptions) -> Listing:
    """One row a picture below each class folder, however deep; its id is its path from `path`."""
    splits = split_folders(path)
    found = _Gathered(path, options, [*_unused(options), *_beside_splits(path, splits)])
    before = known_below(path, options.known, 2 if splits else 1)
    found.look_beside("")
    for folder, split in sorted(splits.items()) if splits else [("", TRAIN)]:
        found.gather(folder, split, before)
    if not found.paths:
        raise _nothing(path, found.ignored)
    if not options.outside and found.ignored[OUT]:
        found.notes.append(left_out(found.ignored))
    found.notes += _about_deep(found.paths, 1 if splits else 0)
    return arranged(found.listing())


class _Gathered:
    """The pictures below class folders as they are found: paths, labels and splits (N,), and what should be told."""

    def __init__(self, path: Path, options: PictureOptions, notes: list[str]) -> None:
        self.path, self.options, self.notes = path, options, notes
        self.ignored: Counter[str] = Counter()
        self.paths: list[str] = []
        self.labels: list[str] = []
        self.splits: list[int] = []
        self.empty: list[str] = []

    def look_beside(self, folder: str) -> None:
        """What lies beside class folders and is none."""
        count_files(self.path / folder, self.ignored)
        self.notes += _about_runs(self.path / folder)

    def gather(self, folder: str, split: int, before: Mapping[str, Sequence[str]]) -> None:
        """The class folders of a split's folder, or of the path itself (""); `before` are files that a run knew, by folder."""
        top, start = self.path / folder, f"{folder}/" if folder else ""
        if folder:
            self.look_beside(folder)
        self.notes += _about_hidden(top, start)
        emptied = {key.removeprefix(start) for key in before if key.startswith(start) and not os.path.lexists(self.path / key)}
        for name in sorted({*visible_folders(top), *emptied}):
            there = [] if name in emptied else list(walk(top / name, self.path, self.ignored, self.options.outside))
            found = with_gone(there, before.get(f"{start}{name}", ()), self.path)
            if not found:
                self.empty.append(readable_name(f"{start}{name}"))
            self.paths += found
            self.labels += [readable_name(name)] * len(found)
            self.splits += [split] * len(found)
        if folder and not visible_folders(top):
            self.notes.append(f'the folder "{folder}" ({SPLITS[split]}) has no class folders: its files are ignored')

    def listing(self) -> Listing:
        named = name_labels(self.labels, str(self.path), _in_order(self.labels, self.path, self.options.classes))
        return Listing(
            self.path,
            Files(self.path, self.paths, self.options.outside),
            [readable_name(name) for name in self.paths],
            named.codes,
            named.classes,
            np.array(self.splits, np.int8),
            tuple(self.notes),
            dict(self.ignored),
            tuple(self.empty),
        )


def _beside_splits(path: Path, splits: Mapping[str, int]) -> list[str]:
    """Folders beside those of splits."""
    others = [name for name in visible_folders(path) if name not in splits] if splits else []
    return [f'the folder "{name}" is neither train, val nor test and holds no pictures: ignored' for name in others]


def _about_deep(paths: Sequence[str], place: int) -> list[str]:
    """Pictures in folders below their class folder, whose name stands at `place` of a path."""
    deep = [name for name in paths if name.count("/") > place + 1]
    if not deep:
        return []
    label = readable_name(deep[0].split("/")[place])
    return [
        f"{len(deep):,} pictures lie in folders below their class folder, and have its label: "
        f"{quoted(readable_name(deep[0]))} is of {quoted(label)}"
    ]


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


def _about_hidden(path: Path, start: str) -> list[str]:
    """Of what lies where classes do: a count of hidden things alone would not tell that a class is missing."""
    return [
        f"the folder {quoted(readable_name(start + name))} is hidden because its name begins with a dot, so it is no class: "
        f"{count:,} {'picture' if count == 1 else 'pictures'} in it passed over; rename it if it is one"
        for name, count in hidden_pictures(path).items()
    ]


def _about_runs(path: Path) -> list[str]:
    return [f'the folder "{name}" holds a run, not a class: ignored' for name in run_folders(path)]
