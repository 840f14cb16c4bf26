"""Recognises what a path holds, and says why. Reads only names and headers."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from labelsieve.data.npz import axes_of, keys_by_role, nothing_found, npz_keys
from labelsieve.data.pictures import tables as usual
from labelsieve.data.pictures.arrow import is_vector, parquet_file, pyarrow_for
from labelsieve.data.pictures.folders import holds_picture, is_run, no_pictures, read_folders, split_folders, visible_folders
from labelsieve.data.pictures.listing import SPLIT_NAMES, SPLITS, TRAIN, Listing
from labelsieve.data.pictures.manifest import metadata_files, naming_labels, read_imagefolder, read_manifest
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.paths import found_at
from labelsieve.data.pictures.stored import holds_pictures, is_saved, read_stored, shard_files
from labelsieve.data.pictures.tables import SUFFIXES, open_table
from labelsieve.data.pictures.websets import WEBSETS, web_set_at
from labelsieve.doors import reading
from labelsieve.errors import ToolError

NOT_TRAINED = ("sample_submission", "samplesubmission", "test")  # tables to fill in or to measure on begin so
MOST = 20  # tables whose columns are listed
KINDS = (
    *("class folders", "split folders", "manifest", "imagefolder", "saved dataset", "parquet pictures", "arrays", "embeddings"),
    *WEBSETS,
)


@dataclass(frozen=True)
class Layout:
    """`kind` is one of KINDS; `path` is what is read: the path given, or a table inside it."""

    kind: str
    path: Path
    why: str

    @property
    def has_pictures(self) -> bool:
        """Whether there are picture files to decode, rather than arrays."""
        return self.kind not in ("arrays", "embeddings")


# What a command has seen already, by path and options: a layout, or a listing for whoever asks next.
SEEN: ContextVar[dict[tuple[object, ...], Layout | Listing] | None] = ContextVar("SEEN", default=None)
OF_PIXELS = ("size", "largest", "white", "fit", "mirror", "workers", "cache_dir", "by_content", "strict", "known")


@contextmanager
def looked_at_once() -> Iterator[None]:
    """Within it, what lies at a path is recognised once, and its pictures listed once for two that ask after each other."""
    token = SEEN.set({})
    try:
        yield
    finally:
        SEEN.reset(token)


def _key(path: Path, options: PictureOptions) -> tuple[object, ...]:
    """All that a listing goes by; which files a resumed run had comes on top, and is never remembered."""
    return (str(path.absolute()), *(getattr(options, one.name) for one in fields(options) if one.name not in OF_PIXELS))


def recognise(path: Path, options: PictureOptions | None = None) -> Layout:
    """What lies at `path`, or a `ToolError` that says what could."""
    path, options, seen = path.expanduser(), options or PictureOptions(), SEEN.get()
    known = None if seen is None else seen.get(_key(path, options))
    if isinstance(known, Layout):
        return known
    with reading(path, "write or fetch the data again"):
        found = _recognised(path, options)
    if seen is not None:
        seen[_key(path, options)] = found
    return found


def _recognised(path: Path, options: PictureOptions) -> Layout:
    if path.is_dir():
        return _folder(path, options)
    if not path.exists():
        raise ToolError(f"{path}: there is no such file or folder; check the path")
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _npz(path)
    if suffix == ".npy":
        return Layout("embeddings", path, "an .npy file of vectors, with a file of labels beside it")
    if suffix == ".parquet":
        return _parquet(path, options)
    if suffix in SUFFIXES:
        return Layout("manifest", path, f"a {suffix} table")
    more = "; write JSON lines: one object per line, suffix .jsonl" if suffix == ".json" else ""
    raise ToolError(
        f"{path}: not recognised{more}; give a folder of class folders, a table "
        f"({', '.join(SUFFIXES)}), a folder saved by datasets, or .npz or .npy arrays"
    )


def list_pictures(layout: Layout, options: PictureOptions) -> Listing:
    """The rows of a layout that has pictures."""
    seen, key = None if options.known else SEEN.get(), (layout, *_key(layout.path, options))
    known = None if seen is None else seen.pop(key, None)  # a million rows are not kept for longer than that
    if isinstance(known, Listing):
        return known
    readers = {
        "class folders": read_folders,
        "split folders": read_folders,
        "manifest": read_manifest,
        "imagefolder": read_imagefolder,
        "saved dataset": read_stored,
        "parquet pictures": read_stored,
        **{name: each.listing for name, each in WEBSETS.items()},
    }
    with reading(layout.path, "write or fetch the data set again"):
        found = readers[layout.kind](layout.path, options)
    if seen is not None:
        seen[key] = found
    return found


def _folder(path: Path, options: PictureOptions) -> Layout:
    web_set = web_set_at(path)
    if web_set is not None:
        return Layout(web_set.name, path, f"it has the lists of {web_set.title}")
    if is_saved(path):
        return Layout("saved dataset", path, "it has the files that datasets' save_to_disk writes")
    metadata = naming_labels(metadata_files(path), options)
    if metadata:
        listed = ", ".join(f"{folder}/{file.name}" if folder else file.name for folder, file in metadata.items())
        return Layout("imagefolder", path, f"{listed} with a file_name column and labels")
    splits = split_folders(path)
    if splits:
        return Layout("split folders", path, f"the folders {', '.join(sorted(splits))}, each with class folders")
    names = visible_folders(path)
    tables = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
    named = [file for file in tables if _is_manifest(file, options)]
    full = [name for name in names if holds_picture(path / name)]
    shards = [] if full else shard_files(path)
    if shards:
        return Layout("parquet pictures", path, f"{len(shards)} Parquet files with pictures in them")
    if not full and is_run(path):  # its issues.csv has paths and labels, and would be taken for the data
        raise ToolError(f"{path}: this is a run folder, not data; name the data, for example those it was trained on")
    flat = bool(full) and all(name.lower() in SPLIT_NAMES for name in full)
    if any(map(_is_trained_on, named)) and (flat or len(full) < 2):
        return _one_table(path, named)
    if names and all(name.lower() in SPLIT_NAMES for name in names) and any(visible_folders(path / name) for name in names):
        raise ToolError(f"{path}: it has {', '.join(names)} and no train folder of class folders; add one")
    said = _about_tables(path, tables, full, options) if len(full) < 2 or flat else None
    if not full:
        remedy = said or f"there is no table of paths and labels; {no_pictures(path)}"
        raise ToolError(f"{path}: no class folder holds a picture, and {remedy}")
    if flat:
        raise _unlabelled_splits(path, full, said)
    if len(full) == 1:
        more = _inside(path / full[0]) if said is None else f". {said}"
        raise ToolError(f'{path}: only one folder ("{full[0]}") holds pictures; a classifier needs at least two classes{more}')
    return Layout("class folders", path, f"{len(full)} folders that hold pictures, one per class")


def _inside(folder: Path) -> str:
    """Where the classes may be, if a folder more was wrapped around them."""
    below = [name for name in visible_folders(folder) if holds_picture(folder / name)]
    if len(below) < 2:
        return ""
    listed = ", ".join(below[:3]) + (f" and {len(below) - 3} more" if len(below) > 3 else "")
    return f". In it are the folders {listed}: if these are the classes, give {folder} instead"


def _one_table(path: Path, named: list[Path]) -> Layout:
    """The only table of paths and labels, or the only one named after the training split."""
    chosen = named if len(named) == 1 else [file for file in named if file.stem.lower().startswith(SPLITS[TRAIN])]
    if len(chosen) != 1:
        listed = ", ".join(file.name for file in named)
        raise ToolError(f"{path}: the tables {listed} all have paths and labels; give one of them instead: {named[0]}")
    others = [file.name for file in named if file != chosen[0]]
    unused = f"; not used: {', '.join(others)}" if others else ""
    return Layout("manifest", chosen[0], f"{chosen[0].name} has a column of paths and one of labels{unused}")


def _unlabelled_splits(path: Path, folders: list[str], tables: str | None) -> ToolError:
    """Folders named after splits are no classes, whatever they hold."""
    listed = " and ".join(f'"{name}"' for name in folders)
    what = "is named after a split and holds" if len(folders) == 1 else "are named after splits and hold"
    remedy = f"put them into class folders ({folders[0]}/CLASS/...), or add a table train.csv with the columns path and label"
    return ToolError(f"{path}: {listed} {what} pictures without labels; {remedy if tables is None else tables}")


def _is_manifest(file: Path, options: PictureOptions) -> bool:
    try:
        names = open_table(file, options.encoding).columns
    except ToolError:
        return False
    if file.suffix.lower() == ".parquet" and holds_pictures(file):
        return False
    plain = set(map(usual.plainly, names))
    image = options.image_column in names or bool(plain & set(usual.IMAGE))
    return image and (options.label_column in names or bool(plain & set(usual.LABEL)))


def _is_trained_on(table: Path) -> bool:
    """Whether a table may be meant for training, by its name."""
    return not table.stem.lower().startswith(NOT_TRAINED)


def _about_tables(path: Path, tables: Sequence[Path], folders: Sequence[str], options: PictureOptions) -> str | None:
    """What the tables in the folder `path` hold, and how one can be used with the pictures in `folders`; None without tables."""
    columns = {}
    for file in tables[:MOST]:
        try:
            columns[file] = open_table(file, options.encoding).columns
        except ToolError:
            continue
    for file in filter(_is_trained_on, columns):
        said = _usable(path, file, columns[file], folders, options)
        if said is not None:
            return said
    if not columns:
        return None
    listed = "; ".join(f"{file.name} has the columns {', '.join(names)}" for file, names in columns.items())
    first = next(filter(_is_trained_on, columns), None)
    if first is None:
        return f"{listed}, and its name says it is not for training; to train on it anyway, give the table instead of its folder"
    words = f"labelsieve train {shlex.quote(str(first))} --image-column COLUMN --label-column COLUMN"
    return f"{listed}; if one names pictures and labels, say so: {words} --root FOLDER"


def _usable(path: Path, file: Path, names: Sequence[str], folders: Sequence[str], options: PictureOptions) -> str | None:
    """For a table with labels: which column names pictures, all but for an ending or a folder."""
    if options.label_column not in names and not any(usual.plainly(name) in usual.LABEL for name in names):
        return None
    for name in names:
        try:
            values = open_table(file, options.encoding).read([name])[0]
        except ToolError:
            return None
        first = str(values[0]) if values else ""
        place = found_at(path, first, folders)
        if place is None:
            continue
        command = shlex.join([str(file), "--image-column", name, "--root", str(path / place[0])])
        return f'{file.name} names pictures in the column "{name}": labelsieve train {command} --out RUN'
    return None


def _npz(path: Path) -> Layout:
    """Two axes are vectors, more are pictures; what is named images is always meant as pictures."""
    keys = npz_keys(path)
    found = keys_by_role(keys, path)
    if "values" not in found:
        raise nothing_found(keys, path)
    key = found["values"]
    pictures = key == "images" or (axes_of(path, key) or 2) > 2
    what = "pictures and labels" if key == "images" else f'{"pictures" if pictures else "vectors"} under the key "{key}"'
    return Layout("arrays" if pictures else "embeddings", path, f"an .npz of {what}")


def _parquet(path: Path, options: PictureOptions) -> Layout:
    schema = parquet_file(path).schema_arrow
    vectors = [field.name for field in schema if is_vector(field.type, path)]
    pictured = any(usual.plainly(field.name) in usual.IMAGE for field in schema if field.name not in vectors)
    if vectors and (options.image_column in vectors or (options.image_column is None and not pictured)):
        return Layout("embeddings", path, f'a Parquet file with lists of numbers in "{vectors[0]}"')
    if holds_pictures(path) and not _names_paths(schema, path, options):
        return Layout("parquet pictures", path, "a Parquet file with pictures in it")
    return Layout("manifest", path, "a .parquet table")


def _names_paths(schema: Any, path: Path, options: PictureOptions) -> bool:
    """Whether the column of pictures that was chosen holds paths."""
    if options.image_column not in schema.names:
        return False
    types = pyarrow_for(path).types
    kind = schema.field(options.image_column).type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))
