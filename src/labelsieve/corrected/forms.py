"""Chooses how a corrected data set is written: `writer_for` gives the function for the source's form."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from labelsieve.corrected.corrections import Corrections
from labelsieve.corrected.tables import Rewritten, collection_npz, corrected_npz, corrected_shards, corrected_table
from labelsieve.corrected.tree import PUTS, Placed, class_tree, no_folder_name, place, table_tree
from labelsieve.data.embeddings import labels_beside
from labelsieve.data.noisy_data import MEMORY, Collection, NoisyData
from labelsieve.data.pictures.listing import LeftOut, Listing
from labelsieve.data.pictures.manifest import labelled_files, options_for
from labelsieve.data.pictures.options import FLAGS, PictureOptions
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.recognise import Layout, list_pictures
from labelsieve.data.pictures.tables import SUFFIXES
from labelsieve.data.sources import open_source
from labelsieve.errors import ToolError, UsageError
from labelsieve.issues.policy import Change
from labelsieve.runs import atomic
from labelsieve.runs.findings import Findings
from labelsieve.texts import as_csv, quoted

CHANGES = "changes.csv"
TREES = ("class folders", "split folders", "imagefolder")


@dataclass(frozen=True)
class Request:
    """All that a writer needs."""

    source: str
    layout: Layout | None  # None for a set that is built in
    options: PictureOptions
    corrections: Corrections
    put: str
    found: Findings
    ordered: list[Change]  # by sample, and after them what earlier rounds dropped

    @property
    def samples(self) -> list[Change]:
        """Of the run's own samples, of which there are none that earlier rounds dropped."""
        return self.ordered[: len(self.found.order)]


Write = Callable[[Request, Path, str], tuple[int, tuple[str, ...]]]
Done = TypeVar("Done")


# Names of files, most of which are not written; a folder called so would be a surprise.
FILES = (*SUFFIXES, ".npz", ".npy", ".xlsx", ".xls", ".ods", ".json", ".txt", ".zip", ".tar", ".gz", ".tgz")


def writer_for(layout: Layout | None, source: str, out: Path, options: PictureOptions) -> Write:
    """Which form is written, by the source's form and the name of `out`; a `UsageError` where they do not go together."""
    suffix = out.suffix.lower()
    if layout is not None and layout.kind in TREES:
        if suffix == ".csv":
            return _manifest
        if suffix in FILES:
            raise UsageError(
                f"{out}: {source} is a folder of pictures; name a folder, or a .csv file for a table of paths and labels"
            )
        return _tree
    if layout is not None and layout.kind == "parquet pictures":
        return _shards_writer(layout, out)
    if layout is not None and layout.path.suffix.lower() in SUFFIXES:
        wanted = layout.path.suffix.lower()
        if suffix == wanted:
            return _table
        if suffix == ".csv":
            return _manifest if layout.has_pictures else _labels
        if layout.has_pictures and suffix not in FILES:
            return _folders
        also = "" if wanted == ".csv" else ", or a .csv for ids, paths and labels"
        also += "; or a folder, for a folder for each class" if layout.has_pictures else ""
        raise UsageError(f"{out}: {layout.path} is a {wanted} table; name a {wanted} file{also}")
    forms: dict[str, Write] = {".csv": _labels}
    if layout is not None and layout.path.suffix.lower() == ".npy":
        beside = labels_beside(layout.path, options).suffix.lower()
        forms |= {beside: _label_table} if beside in SUFFIXES else {}
    if layout is None or layout.path.suffix.lower() == ".npz":
        forms[".npz"] = _arrays
    if suffix not in forms:
        raise UsageError(f"{out}: {source} is written as {' or '.join(forms)} file; name one")
    return forms[suffix]


def _shards_writer(layout: Layout, out: Path) -> Write:
    """Pictures inside Parquet files are written as such files again; labels alone as .csv."""
    suffix, folder = out.suffix.lower(), layout.path.is_dir()
    if suffix == ".csv":
        return _labels
    if (suffix in FILES) if folder else suffix != ".parquet":
        what = "a folder of Parquet files; name a folder" if folder else "a Parquet file; name a .parquet file"
        raise UsageError(f"{out}: {layout.path} is {what}, or a .csv file for ids and labels")
    return _shard_folder if folder else _shard_file


def _shard_file(asked: Request, out: Path, changes: str) -> tuple[int, tuple[str, ...]]:
    """The Parquet file again, pictures in it; `changes.csv` lies beside it."""
    done = _beside(out, lambda draft: _rewritten(asked, lambda _: draft), changes)
    return done.left, (*_missing(asked, done.ids), *_beyond(asked, done.left))


def _shard_folder(asked: Request, out: Path, changes: str) -> tuple[int, tuple[str, ...]]:
    """Every Parquet file again, in a new folder; `changes.csv` lies in it."""
    assert asked.layout is not None
    source = asked.layout.path
    done = _new_folder(out, lambda draft: _rewritten(asked, lambda file: draft / file.relative_to(source)), changes)
    return done.left, (*_missing(asked, done.ids), *_beyond(asked, done.left))


def _rewritten(asked: Request, place: Callable[[Path], Path]) -> Rewritten:
    assert asked.layout is not None
    done = corrected_shards(asked.layout.path, asked.options, asked.corrections, place)
    _check_known(asked, done.ids)
    return done


def _tree(asked: Request, out: Path, changes: str) -> tuple[int, tuple[str, ...]]:
    """A new folder of pictures; `changes.csv` lies in it."""
    assert asked.layout is not None
    layout = asked.layout
    listing = list_pictures(layout, asked.options)
    _check_known(asked, set(listing.ids))

    def make(draft: Path) -> Placed:
        if layout.kind == "imagefolder":
            return _imagefolder(asked, listing, draft)
        depth = 1 if layout.kind == "split folders" else 0
        return class_tree(listing, asked.corrections, draft, PUTS[asked.put], depth)

    bare = labelled_files(layout.path, asked.options)[1] if layout.kind == "imagefolder" else ()
    return _placed(asked, listing, out, make, changes, [f'the folder "{name}" has no labels: left out' for name in bare])


def _folders(asked: Request, out: Path, changes: str) -> tuple[int, tuple[str, ...]]:
    """The pictures of a table as a new folder with one for each class; `changes.csv` lies in it."""
    assert asked.layout is not None
    listing = list_pictures(asked.layout, asked.options)
    strange = no_folder_name(listing.classes)
    if strange is not None or not isinstance(listing.origin, Files):
        why = "pictures are in the table itself" if strange is None else f"no folder can be called {quoted(strange)}"
        raise UsageError(f"{out}: {why}; name a {asked.layout.path.suffix.lower()} file")
    _check_known(asked, set(listing.ids))
    return _placed(asked, listing, out, lambda draft: table_tree(listing, asked.corrections, draft, PUTS[asked.put]), changes)


def _placed(
    asked: Request, listing: Listing, out: Path, make: Callable[[Path], Placed], changes: str, notes: Sequence[str] = ()
) -> tuple[int, tuple[str, ...]]:
    """A new folder of pictures; an error where none would be left."""

    def some(draft: Path) -> Placed:
        done = make(draft)
        if not done.count:
            raise ToolError(f"{listing.place}: no picture would be left; nothing was written")
        return done

    done = _new_folder(out, some, changes)
    told = (*_left_out(done.left_out), *notes, *_missing(asked, set(listing.ids)), *_unjudged(asked, listing, done.left_out))
    return done.count, told


def _imagefolder(asked: Request, listing: Listing, draft: Path) -> Placed:
    """Pictures at their old paths, and the metadata files with corrected labels."""
    assert asked.layout is not None
    root = asked.layout.path
    stay = {row: listing.origin.path(row) for row, name in enumerate(listing.ids) if asked.corrections.of(name, "") is not None}
    placed = place(listing, stay, draft, PUTS[asked.put])
    for folder, file in labelled_files(root, asked.options)[0].items():
        options = options_for(folder, file, root, asked.options)
        (draft / folder).mkdir(exist_ok=True)
        prefix = f"{folder}/" if folder else ""
        corrected_table(file, draft / folder / file.name, options, asked.corrections, prefix=prefix)
    return placed


def _table(asked: Request, out: Path, changes: str) -> tuple[int, tuple[str, ...]]:
    """The table again; from another folder its pictures are named by absolute paths."""
    assert asked.layout is not None
    table, root = asked.layout.path, asked.options.root or asked.layout.path.parent
    pictured = asked.layout.has_pictures
    moved = pictured and os.path.realpath(out.parent) != os.path.realpath(root)

    def make(draft: Path) -> int:
        left = corrected_table(table, draft, asked.options, asked.corrections, moved=moved, pictured=pictured)
        _check_known(asked, asked.corrections.seen)
        return left

    left = _beside(out, make, changes)
    why = f"picture paths in it are absolute, for it lies in another folder than {table}"
    notes = (f"{why}; read it with: {read_back(out, asked.options, root)}",) if moved else ()
    return left, (*notes, *_missing(asked, asked.corrections.seen), *_beyond(asked, left))


def _arrays(asked: Request, out: Path, changes: str) -> tuple[int, tuple[str, ...]]:
    data = _collection(asked)
    _check_known(asked, set(data.train.ids))

    def make(draft: Path) -> int:
        if asked.layout is None:
            return collection_npz(draft, data, asked.corrections)
        return corrected_npz(asked.layout.path, draft, data, asked.corrections)

    left = _beside(out, make, changes)
    return left, (*_missing(asked, set(data.train.ids)), *_beyond(asked, left))


def _collection(asked: Request) -> Collection:
    """What the run read: arrays, vectors or a set that is built in."""
    return open_source(asked.source, asked.options).collection


def _manifest(asked: Request, out: Path, changes: str) -> tuple[int, tuple[str, ...]]:
    """Picture files as a table of ids, paths and labels that `train` reads, of the samples the run judged."""
    assert asked.layout is not None
    top = asked.layout.path if asked.layout.kind in TREES else asked.options.root or asked.layout.path.parent
    root, home = os.path.realpath(top), os.path.realpath(out.parent)
    above = root == home or root.startswith(home.rstrip(os.sep) + os.sep)
    start = Path(root).relative_to(home).as_posix() + "/" if above and root != home else ""
    paths = {name: path or name for name, path in zip(asked.found.columns["id"], asked.found.columns["path"])}
    paths = {name: path if Path(path).is_absolute() else f"{start}{path}" for name, path in paths.items()}
    listing = list_pictures(asked.layout, asked.options)
    now = _named(listing)
    _check_known(asked, set(now))
    problems = {listing.ids[row]: why for row, why in listing.origin.examined()[1].items()}
    judged = [(change.id, asked.corrections.of(change.id, now[change.id])) for change in asked.ordered if change.id in now]
    rows = [(name, paths[name], label) for name, label in judged if label is not None and name not in problems]
    gone = [LeftOut(name, paths[name], problems[name]) for name, label in judged if label is not None and name in problems]
    _beside(out, lambda draft: draft.write_text(as_csv(("id", "path", "label"), rows), encoding="utf-8", newline=""), changes)
    notes = (*_left_out(gone), *_missing(asked, set(now)), *_left_behind(asked, listing.ids, "picture"))
    if above and not asked.options.outside:
        return len(rows), notes
    plain = PictureOptions(outside=asked.options.outside)
    return len(rows), (f"its paths start from the old folder: {read_back(out, plain, Path(home if above else root))}", *notes)


def read_back(out: Path, options: PictureOptions, root: Path) -> str:
    """The command that trains on a table with paths from `root` which was written as `options` say the old one was."""
    return train_command([str(out), "--root", os.path.abspath(root)], options)  # noqa: PTH100 - links stay as they are


def train_command(start: list[str], options: PictureOptions) -> str:
    words = ["labelsieve", "train", *start]
    for name in ("image_column", "label_column", "id_column"):
        if getattr(options, name) is not None:
            words += [FLAGS[name], getattr(options, name)]
    if options.encoding is not None:
        words += ["--encoding", options.encoding]
    if options.split_column is not None:
        words += ["--set", f"pictures.split_column={options.split_column}"]
    for name in ("outside", "skip_unlabelled"):
        words += FLAGS[name].split() if getattr(options, name) else []
    return shlex.join([*words, "--out", "RUN"])


def _label_table(asked: Request, out: Path, changes: str) -> tuple[int, tuple[str, ...]]:
    """The table of labels that goes with an .npy file. The vectors stay, so dropped rows stay in it, without a label."""
    assert asked.layout is not None
    table = labels_beside(asked.layout.path, asked.options)

    def make(draft: Path) -> int:
        left = corrected_table(table, draft, asked.options, asked.corrections, pictured=False, emptied=True)
        _check_known(asked, asked.corrections.seen)
        return left

    left = _beside(out, make, changes)
    dropped = sum(change.new is None for change in asked.ordered)
    which = "1 dropped row has" if dropped == 1 else f"{dropped:,} dropped rows have"
    why = f"{which} no label in it, for the vectors stay as they are; " if dropped else ""
    options = replace(asked.options, image_column=None, skip_unlabelled=asked.options.skip_unlabelled or dropped > 0)
    start = [str(asked.layout.path), "--set", f"pictures.labels_file={out.absolute()}"]
    return left, (f"{why}read it with: {train_command(start, options)}", *_beyond(asked, left))


def _labels(asked: Request, out: Path, changes: str) -> tuple[int, tuple[str, ...]]:
    """id and label alone, of the samples the run judged, in their order; made of the run alone where the source is gone."""
    now, notes = _labels_now(asked)
    judged = [(change.id, asked.corrections.of(change.id, now.get(change.id, change.old))) for change in asked.ordered]
    rows = [(name, label) for name, label in judged if label is not None]
    _beside(out, lambda draft: draft.write_text(as_csv(("id", "label"), rows), encoding="utf-8", newline=""), changes)
    return len(rows), notes


def _labels_now(asked: Request) -> tuple[dict[str, str], tuple[str, ...]]:
    """{id: label} of the source, where it is still there, and what is said of rows that are not in a list of labels."""
    if asked.source == MEMORY:
        return {}, ()
    try:
        if asked.layout is not None and asked.layout.has_pictures:
            rows: Listing | NoisyData = list_pictures(asked.layout, asked.options)
        else:
            rows = _collection(asked).train
    except ToolError as error:
        return {}, (f"rows that the run did not judge are not in it, and were not counted: {error}",)
    thing = "picture" if isinstance(rows, Listing) else "row"
    return _named(rows), _left_behind(asked, rows.ids, thing)


def _named(rows: Listing | NoisyData) -> dict[str, str]:
    """{id: its label's name, or "" where it has none}."""
    return {name: rows.classes[code] if code >= 0 else "" for name, code in zip(rows.ids, rows.labels.tolist())}


def _beside(out: Path, make: Callable[[Path], Done], changes: str) -> Done:
    """What `make` says of the file it writes, which gets its name together with `changes.csv` beside it."""
    with atomic.disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    done: list[Done] = []
    atomic.write_pair(out, lambda draft: done.append(make(draft)), out.parent / CHANGES, changes)
    return done[0]


def _new_folder(out: Path, make: Callable[[Path], Done], changes: str) -> Done:
    """The same of a folder, with `changes.csv` inside."""
    done: list[Done] = []

    def write(draft: Path) -> None:
        done.append(make(draft))
        (draft / CHANGES).write_text(changes, encoding="utf-8", newline="")

    atomic.write_folder(out, write)
    return done[0]


FOLDERS: tuple[Write, ...] = (_tree, _folders, _shard_folder)  # changes.csv lies inside of what these write
LINKED: tuple[Write, ...] = (_tree, _folders)  # where symbolic links lead out of what is written
LISTS: tuple[Write, ...] = (_labels,)  # made of the run alone where need be


def _check_known(asked: Request, there: set[str]) -> None:
    """A `ToolError` where nothing of the run is in the source: other data would be written as they are, and called corrected."""
    if not any(change.id in there for change in asked.samples):
        raise ToolError(
            f"{asked.source}: none of the run's {len(asked.samples):,} samples is in it, the first of which is called "
            f'"{asked.samples[0].id}"; name the data that the run was trained on, with the same ids (--data)'
        )


def _missing(asked: Request, there: set[str]) -> tuple[str, ...]:
    lost = [change.id for change in asked.samples if change.id not in there]
    which = "one sample of the run is" if len(lost) == 1 else f"{len(lost):,} samples of the run are"
    return (f"{which} no longer in the source, such as {lost[0]}",) if lost else ()


def _left_out(gone: Sequence[LeftOut]) -> tuple[str, ...]:
    """A sentence for each reason why pictures are not in what was written."""
    by_reason: dict[str, list[str]] = {}
    for one in gone:
        by_reason.setdefault(one.reason, []).append(quoted(one.path))
    notes = []
    for why, names in by_reason.items():
        which = "one picture was" if len(names) == 1 else f"{len(names):,} pictures were"
        notes.append(f"{which} left out: {', '.join(names[:3])}{' ...' if len(names) > 3 else ''} ({why})")
    return tuple(notes)


def _unjudged(asked: Request, listing: Listing, gone: Sequence[LeftOut]) -> tuple[str, ...]:
    """Pictures that are there without being samples of the run: they count among those that are left."""
    count = sum(name not in asked.corrections.labels for name in listing.ids)
    return _as_before(count - sum(one.id not in asked.corrections.labels for one in gone), "pictures")


def _beyond(asked: Request, left: int) -> tuple[str, ...]:
    """The same of rows, of which `left` are left."""
    return _as_before(
        left - sum(change.new is not None and change.id in asked.corrections.seen for change in asked.ordered), "rows"
    )


def _as_before(count: int, things: str) -> tuple[str, ...]:
    which = "one" if count == 1 else f"{count:,}"
    return (f"{which} of the {things} that are left the run did not judge ({_why(count)}): as before",) if count > 0 else ()


def _left_behind(asked: Request, ids: Sequence[str], thing: str) -> tuple[str, ...]:
    """What the source has under these `ids`, and a table of the run's samples does not."""
    count = sum(name not in asked.corrections.labels for name in ids)
    which, them = (f"one {thing} is", "it") if count == 1 else (f"{count:,} {thing}s are", "them")
    return (f"{which} not in it, for the run did not judge {them} ({_why(count)})",) if count else ()


def _why(count: int) -> str:
    were, are = ("it was", "is") if count == 1 else ("they were", "are")
    return f"{were} unreadable, held out or beyond --limit, or {are} new"
