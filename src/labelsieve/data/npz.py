"""NumPy files from outside: their arrays, and which array holds what. Nothing pickled is ever loaded."""

import os
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from labelsieve import run_files
from labelsieve.data.pictures import tables as usual
from labelsieve.doors import Damage, open_plain, reading, short
from labelsieve.errors import ToolError, suggest

CONTAINER = Path("/sys/fs/cgroup/memory.max")
Array = NDArray[Any]
AGAIN = "it is not a whole NumPy file: write it again"
PACKED = 2**29  # bytes: what a run packs (labels and flags of each sample, names of files) is a tenth of that at a million
COLUMNS = ("features", "embeddings", "embedding", "feature", "vector", "vectors", "x")  # of vectors in Parquet
# Groups of names: the first group that has one decides, and two names of one group are an error.
Groups = tuple[tuple[str, ...], ...]
VALUES: Groups = (
    ("images",),
    ("features", "embeddings", "X"),
    (*COLUMNS[2:], "x_train", "X_train", "train_images", "train_features", "train_embeddings"),
)
LABELS: Groups = (
    ("labels", "y"),
    (*(name for name in usual.LABEL if name not in ("labels", "y")), "y_train", "train_labels"),
)


@cache
def memory() -> int | None:
    """The bytes of memory that this machine, or the container we are in, has; None where it does not say."""
    found = []
    try:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        found.append(int(CONTAINER.read_text("ascii")))
    except (OSError, ValueError, AttributeError):  # no such limit, or no such system
        pass
    return min((count for count in found if count > 0), default=None)


def refuse_beyond_memory(count: int, place: str) -> None:
    """A few megabytes of packed zeros can be as many gigabytes; better told than killed."""
    there = memory()
    if there is not None and count > there:
        raise ToolError(
            f"{place}: it unpacks to {count / 2**30:,.1f} GiB, and this machine has {there / 2**30:,.1f} GiB of memory; "
            f"take fewer samples into it, or picture files, which need not fit"
        )


def read_npz(path: Path, of_run: bool = False, only: str | None = None) -> dict[str, Array]:
    """Every array of the .npz at `path`, by key, or `only` one. Where it is a file of a run, it may be no link and no bomb."""
    with _opened(path, of_run) as stream:
        opened = np.load(stream, allow_pickle=False)
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise ToolError(f"{path}: it is not an .npz file; write one with numpy.savez")
        with opened:
            # A member gives no more than it announces, so this is all that there can be.
            members: Any = opened.zip
            unpacked = sum(member.file_size for member in members.infolist())
            if of_run and unpacked > max(PACKED, os.fstat(stream.fileno()).st_size):
                raise Damage(f"it unpacks to {unpacked:,} bytes, and we pack {PACKED:,} at most")
            refuse_beyond_memory(unpacked, str(path))
            found = {key: _member(opened, key, path) for key in opened.files if only in (None, key)}
    for key, array in found.items() if of_run else ():
        with reading(f'{path}, "{short(key)}"', run_files.REMEDY):
            run_files.check_array(path.name, key, array.dtype.kind, array.shape)
    return found


def npz_keys(path: Path) -> tuple[str, ...]:
    """The keys of the .npz at `path`; no array is read."""
    with _opened(path) as stream, zipfile.ZipFile(stream) as members:
        return tuple(name.removesuffix(".npy") for name in members.namelist())


def axes_of(path: Path, key: str) -> int | None:
    """How many axes an array of an .npz has, by its header; None where that cannot be read."""
    try:
        with _opened(path) as stream, zipfile.ZipFile(stream) as members, members.open(f"{key}.npy") as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return len(read(member)[0])
    except ToolError:  # who reads the whole array says what is wrong with it
        return None


def read_npy(path: Path) -> Array:
    """The one array of the .npy at `path`."""
    with _opened(path) as stream:
        opened = np.load(stream, allow_pickle=False)
        if not isinstance(opened, np.ndarray):
            raise ToolError(f"{path}: it is not an .npy file of one array; write one with numpy.save")
        return _readable(opened)


@contextmanager
def _opened(path: Path, of_run: bool = False) -> Iterator[BinaryIO]:
    """The file, open, and what goes wrong with it in one sentence."""
    with reading(path, AGAIN), run_files.open_file(path) if of_run else open_plain(path, follow=True) as stream:
        yield stream


def _member(opened: Any, key: str, path: Path) -> Array:
    with reading(path, f'"{short(key)}" cannot be read whole: write the file again'):
        try:
            found: Array = _readable(opened[key])
        except ValueError as error:
            if "Object arrays" not in str(error):
                raise
            raise ToolError(
                f'{path}: "{key}" is an array of Python objects, as NumPy makes of rows that differ in size and pandas of text; '
                f"pictures must have one size, and text is stored with .astype(str)"
            ) from error
    if not isinstance(found, np.ndarray):
        raise ToolError(f'{path}: "{key}" is not an array; write the file with numpy.savez')
    return found


def _readable(found: Array) -> Array:
    """The array itself; `Damage` where it holds texts with letters that cannot be: Python would only notice later."""
    if isinstance(found, np.ndarray) and found.dtype.kind == "U" and found.nbytes:
        letters = np.frombuffer(found.tobytes(), np.dtype(np.uint32).newbyteorder(found.dtype.byteorder))
        if letters.max() > sys.maxunicode:
            raise Damage("damaged (letters that do not exist)")
    return found


def keys_by_role(keys: Collection[str], path: Path) -> dict[str, str]:
    """{what it holds: key}, of "values" and "labels", "test values", "test labels", "val values", "val labels"."""
    found = {"values": first_of(keys, VALUES, path), "labels": first_of(keys, LABELS, path)}
    pictures = found["values"] in ("images", "train_images")
    for split in ("test", "val"):
        found[f"{split} values"] = first_of(keys, _held(split, pictures), path)
        found[f"{split} labels"] = first_of(keys, ((f"{split}_labels", f"y_{split}"),), path)
    return {role: key for role, key in found.items() if key is not None}


def _held(split: str, pictures: bool) -> Groups:
    if pictures:
        return ((f"{split}_images",), (f"X_{split}", f"x_{split}"))
    return ((f"{split}_features", f"{split}_embeddings", f"X_{split}"), (f"x_{split}",))


def first_of(keys: Collection[str], groups: Groups, path: Path) -> str | None:
    """The key that is there of the first group that has one; two of a group are an error."""
    there = next((names for group in groups if (names := [name for name in group if name in keys])), [])
    if len(there) > 1:
        raise ToolError(f"{path}: the keys {' and '.join(there)} would {'both' if len(there) == 2 else 'all'} do; keep one")
    return there[0] if there else None


def sample_keys(keys: Collection[str], path: Path) -> dict[str, str]:
    """{what ids begin with: key} of the samples of every split: "" for those to train on, then "val/" and "test/"."""
    found = keys_by_role(keys, path)
    if "values" not in found:
        raise nothing_found(keys, path)
    roles = {"": "values", "val/": "val values", "test/": "test values"}
    return {start: found[role] for start, role in roles.items() if role in found}


def ids_by_key(keys: Mapping[str, str], counts: Mapping[str, int], given: Sequence[str] | None, path: Path) -> list[str]:
    """Ids of all of `sample_keys`' rows: those `given` for the first key, if any, else numbers as when trained on."""
    first = keys[""]
    if given is not None and len(given) != counts[first]:
        raise ToolError(f'{path}: {len(given)} ids for {counts[first]} samples of "{first}"; write one for each')
    numbered = {start: [f"{start}{row:05d}" for row in range(counts[key])] for start, key in keys.items()}
    return [name for start, names in numbered.items() for name in (given if given is not None and not start else names)]


def held_keys(found: Mapping[str, str], split: str, keys: Collection[str], path: Path) -> tuple[str, str] | None:
    """The keys of a split's values and labels; None where it has neither, an error where it has one of them."""
    values, labels = found.get(f"{split} values"), found.get(f"{split} labels")
    if values is not None and labels is not None:
        return values, labels
    if values is None and labels is None:
        return None
    pictures = found.get("values") in ("images", "train_images")
    missing = (f"{split}_labels", f"y_{split}") if labels is None else sum(_held(split, pictures), ())
    raise ToolError(
        f"{path}: {values or labels} and its {'labels' if labels is None else 'samples'} go together, and none of the keys "
        f"{', '.join(missing)} is there; the keys are {', '.join(keys)}"
    )


def plain_labels(arrays: Mapping[str, Array], key: str) -> Array:
    """The labels under `key`; a column (N, 1), as Keras and MedMNIST write them, becomes (N,)."""
    values = arrays[key]
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def words(values: Array, place: str) -> tuple[str, ...]:
    """Names (N,), of samples or classes: text, UTF-8 bytes or whole numbers as text."""
    if values.ndim != 1 or values.dtype.kind not in "USui":
        raise ToolError(f"{place}: it is {values.dtype} {values.shape}; it must be a list of text or whole numbers")
    try:
        return tuple(value.decode() if isinstance(value, bytes) else str(value) for value in values.tolist())
    except UnicodeDecodeError as error:
        raise ToolError(f"{place}: bytes that are not UTF-8 ({error}); store text") from error


def misshapen(labels: Array, place: str) -> ToolError:
    """Labels with more axes than one."""
    one_hot = labels.ndim == 2 and labels.dtype.kind in "uifb" and bool((labels.astype(float).sum(1) == 1).all())
    more = "; they are one-hot: store labels.argmax(1)" if one_hot else ""
    return ToolError(f"{place}: the shape is {labels.shape}; labels must be (N,), one for each sample{more}")


def nothing_found(keys: Collection[str], path: Path) -> ToolError:
    """Says both kinds of arrays that could be there."""
    known = [name for group in (*VALUES, *LABELS) for name in group]
    listed = ", ".join(f"{key}{'' if key in known else suggest(key, known)}" for key in keys)
    return ToolError(
        f"{path}: pictures or vectors, or their labels, are not found by their keys, which are {listed or 'none'}. Name "
        f"pictures (N, H, W[, C]) images, x_train or train_images, vectors (N, D) features, embeddings or X, and their labels "
        f"labels, y, y_train or train_labels"
    )
