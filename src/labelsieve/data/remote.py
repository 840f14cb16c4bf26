"""Data that lie elsewhere (s3://, gs://, hf://, https://, what fsspec opens): copied once into the cache, and read there.

A file is copied whole or not at all, so that a copy that was interrupted goes on where it stopped.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath
from threading import Event
from typing import Any
from uuid import uuid4

from labelsieve.data.pictures.cache import cache_errors, default_cache_dir, locked
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.paths import copy_of, is_web_address
from labelsieve.data.pictures.tables import SUFFIXES, columns_for, open_table, read_cells
from labelsieve.errors import ToolError, UsageError

ADDRESS = re.compile(r"(?:(?P<name>[a-z0-9]+):)?(?P<address>[A-Za-z][A-Za-z0-9+.-]+://.+)")
TRIES = 5  # of each file
PAUSE = 0.25  # seconds before the second try; doubled each time
AT_ONCE = 16  # files
AHEAD = 256  # files that wait for their turn: of millions not all at once
PATIENCE: Mapping[str, Mapping[str, Any]] = {  # what a store is told: we try again ourselves
    "s3": {"config_kwargs": {"connect_timeout": 10, "read_timeout": 30, "retries": {"max_attempts": 1, "mode": "standard"}}}
}
SHOWN = 3
LIST = "not-copied.txt"
FOLLOWED = ("s3", "gs", "gcs", "hf", "az", "abfs", "abfss", "https")  # where a table may send us, besides places of its own kind
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Copied:
    """Where the copy is, how many files it has, which could not be copied, and why, and from where else it was asked for some."""

    path: Path
    files: int
    missing: Mapping[str, str]
    others: tuple[str, ...] = ()

    def words(self, address: str) -> tuple[str, ...]:
        told = [f"{address}: {self.files:,} files are in {self.path if self.path.is_dir() else self.path.parent}"]
        if self.others:
            told.append(f"the table names pictures in other places: {', '.join(self.others[:SHOWN])}")
        if self.missing:
            first = "; ".join(f"{name}: {why}" for name, why in list(self.missing.items())[:SHOWN])
            told.append(f"{len(self.missing):,} files could not be copied, all of them listed in {LIST} there: {first}")
        return tuple(told)


def address_in(text: str) -> tuple[str, str] | None:
    """(data set's name or "", address) where data lie elsewhere: `s3://bucket/table.csv`, `webvision:s3://bucket/set`."""
    found = ADDRESS.fullmatch(text)
    return (found["name"] or "", found["address"]) if found and is_web_address(found["address"]) else None


def local_copy(
    address: str, options: PictureOptions | None = None, cache: Path | None = None, progress: Progress | None = None
) -> Copied:
    """A table and the pictures that it names, or a whole folder, copied from `address`; what is there is not asked for again."""
    options = options or PictureOptions()
    store = Store.of(address)
    place = (cache or options.cache_dir or default_cache_dir()) / f"copy-{hashlib.sha256(address.encode()).hexdigest()[:16]}"
    with locked(place):
        top = place / "data"
        is_table = Path(store.path).suffix.lower() in (*SUFFIXES, ".npz", ".npy")
        copied = _of_table(store, address, top, options, progress) if is_table else _of_folder(store, address, top, progress)
        with cache_errors(place):
            (top / LIST).unlink(missing_ok=True)
            if copied.missing:
                (top / LIST).write_text("".join(f"{name}\t{why}\n" for name, why in copied.missing.items()), encoding="utf-8")
        return copied


@dataclass(frozen=True)
class Wanted:
    """A file in a store: what it is called to the user, where it lies there, and how large it is, if that is known."""

    shown: str
    store: "Store"
    path: str
    size: int | None = None


@dataclass(frozen=True)
class Store:
    """A file system of fsspec, and a path in it."""

    files: Any
    path: str

    @classmethod
    def of(cls, address: str) -> "Store":
        scheme = address.partition("://")[0].lower()
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise UsageError(f'{address}: it lies elsewhere; to read it run: pip install "labelsieve[remote]"') from None
        try:
            files, path = url_to_fs(address, **PATIENCE.get(scheme, {}))
        except ImportError as error:
            raise UsageError(f"{address}: {error}") from None
        except ValueError as error:
            raise UsageError(f"{address}: {error}; write s3://, gs://, hf:// or https://") from None
        return cls(files, path)

    def get(self, path: str, place: Path, size: int | None = None) -> None:
        """The file at `path` in `place`, whole; tried again where it fails for other reasons than that it is not there."""
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{uuid4().hex}.part")
        try:
            for again in range(TRIES):
                try:
                    self.files.get_file(path, str(draft))
                    if size is not None and draft.stat().st_size != size:
                        raise OSError(f"{draft.stat().st_size} of {size} bytes came")
                    break
                except (FileNotFoundError, PermissionError):
                    raise
                except Exception:
                    if again == TRIES - 1:
                        raise
                    Event().wait(PAUSE * 2**again)
            draft.replace(place)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def _of_table(store: Store, address: str, top: Path, options: PictureOptions, progress: Progress | None) -> Copied:
    """The table, in which full addresses below its own folder become paths from there, and the pictures that it names."""
    home, _, name = store.path.rpartition("/")
    table = top / name
    with _first_look(address):
        store.get(store.path, table)  # each time, for it may have grown
    if table.suffix.lower() in (".npz", ".npy") or options.root is not None:  # pictures are where that says
        return Copied(table, 1, {})
    folder = address.rpartition("/")[0]
    if table.suffix.lower() != ".parquet":
        text = table.read_bytes()
        shorter = text.replace(f"{folder}/".encode(), b"")
        if shorter != text:  # in one move: another process may be reading the table
            draft = table.with_name(f".{uuid4().hex}.part")
            draft.write_bytes(shorter)
            draft.replace(table)
    found = open_table(table, options.encoding)
    if table.suffix.lower() == ".parquet" and not _has_paths(found, options, table):
        return Copied(table, 1, {})  # the pictures are in it
    cells = read_cells(found, columns_for(found.columns, options, table, ("image",)))["image"]
    wanted: dict[str, Wanted] = {}
    missing: dict[str, str] = {}
    others: dict[str, Store | str] = {}
    for path in dict.fromkeys(cell.strip().replace("\\", "/") for cell in cells if isinstance(cell, str)):
        if path and not is_web_address(path):
            name = normpath(path)
            wanted[name] = Wanted(name, store, f"{home}/{name}")
        elif path:
            place = path[: (path.find("/", path.index("://") + 3) + 1) or None]  # s3://bucket/
            if place not in others:
                others[place] = _other(place, address)
            there = others[place]
            if isinstance(there, str):
                missing[path] = there
            else:
                wanted[copy_of(path)] = Wanted(path, there, there.files._strip_protocol(path))
    failed = _copied(wanted, top, progress)
    return _unless_none(Copied(table, 1 + len(wanted) - len(failed), missing | failed, tuple(others)), 1, address)


def _other(place: str, table: str) -> "Store | str":
    """Another place than the table's own, or why it is not asked: a stranger's table must not make us open just anything."""
    scheme = place.partition("://")[0].lower()
    if "::" in place or scheme not in (*FOLLOWED, table.partition("://")[0].lower()):
        return f"{scheme}:// is not followed from inside a table"
    try:
        return Store.of(place)
    except UsageError as error:
        return str(error)


def _unless_none(copied: Copied, least: int, address: str) -> Copied:
    """A `ToolError` where files are missing, and no more are there than `least`."""
    if copied.missing and copied.files <= least:
        raise ToolError(
            f"{address}: none of its {len(copied.missing):,} files could be copied ({next(iter(copied.missing.values()))}); "
            f"check their addresses, your credentials, and who may read them"
        )
    return copied


def _has_paths(table: Any, options: PictureOptions, place: Path) -> bool:
    """Does its column of pictures hold paths, not pictures or vectors?"""
    try:
        column = columns_for(table.columns, options, place, ("image",))
    except UsageError:
        return False
    return all(cell is None or isinstance(cell, str) for cell in read_cells(table, column)["image"][:100])


def _of_folder(store: Store, address: str, top: Path, progress: Progress | None) -> Copied:
    """All files below it but hidden ones."""
    with _first_look(address):
        listed = _tried(lambda: store.files.find(store.path, detail=True))
    home = store.path.rstrip("/")
    sizes = {name.removeprefix(f"{home}/"): facts.get("size") for name, facts in listed.items() if not name.endswith("/")}
    sizes = {name: size for name, size in sizes.items() if not any(part.startswith(".") for part in name.split("/"))}
    if not sizes:
        raise ToolError(f"{address}: there is nothing there; check the address, and that you may list it")
    wanted = {name: Wanted(name, store, f"{home}/{name}", size) for name, size in sizes.items()}
    missing = _copied(wanted, top, progress)
    return _unless_none(Copied(top, len(sizes) - len(missing), missing), 0, address)


def _tried(work: Callable[[], Any]) -> Any:
    for again in range(TRIES - 1):
        try:
            return work()
        except (FileNotFoundError, PermissionError):
            raise
        except Exception:
            Event().wait(PAUSE * 2**again)
    return work()


@contextmanager
def _first_look(address: str) -> Iterator[None]:
    """The first look at a place ends in one sentence where it fails."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError(f"{address}: there is nothing there; check the address") from None
    except ToolError:
        raise
    except Exception as error:
        if isinstance(error, PermissionError) or "credentials" in str(error).lower():
            raise ToolError(
                f"{address}: you may not read it ({why_not(error)}); check your credentials, and who may read this place"
            ) from None
        raise ToolError(f"{address}: it cannot be reached ({why_not(error)}); try again later") from None


def _copied(wanted: Mapping[str, Wanted], top: Path, progress: Progress | None) -> dict[str, str]:
    """Copy the files that are not there yet; {what each is called: why not} of those that cannot be."""
    missing: dict[str, str] = {}
    done = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running: dict[Future[None], str] = {}
        try:
            for name, file in wanted.items():
                if not is_inside(name):
                    missing[file.shown] = "a file here cannot have such a name"
                if file.shown in missing or _is_there(top / name, file.size):
                    done += 1
                    continue
                running[pool.submit(file.store.get, file.path, top / name, file.size)] = file.shown
                if len(running) >= AHEAD:
                    done += _settled(running, missing)
                    if progress is not None:
                        progress("copying files", done, len(wanted))
            while running:
                done += _settled(running, missing)
                if progress is not None:
                    progress("copying files", done, len(wanted))
        finally:
            for future in running:
                future.cancel()
    return {file.shown: missing[file.shown] for file in wanted.values() if file.shown in missing}


def _is_there(place: Path, size: int | None) -> bool:
    try:
        there = os.stat(place).st_size  # noqa: PTH116 - a million of them
    except OSError:
        return False
    return size is None or size == there


def is_inside(name: str) -> bool:
    """Does it stay below the folder that it is put into? Names in a store may be anything."""
    return (
        bool(name)
        and name[0] != "/"
        and "\\" not in name
        and "\0" not in name
        and normpath(name) == name
        and name[:3] not in ("..", "../")
    )


def _settled(running: dict[Future[None], str], missing: dict[str, str]) -> int:
    """How many are done now; waits for one at least."""
    over, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in over:
        name, error = running.pop(future), future.exception()
        if error is not None:
            missing[name] = "there is no such file" if isinstance(error, FileNotFoundError) else why_not(error)
    return len(over)


def why_not(error: BaseException) -> str:
    """In a few words of the store's."""
    words: Sequence[str] = str(error).strip().splitlines() or [type(error).__name__]
    return words[0][:200] or type(error).__name__
