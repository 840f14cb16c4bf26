"""Reads table files (CSV, TSV, JSON lines, Parquet): which column holds what, by your choices and usual names; and cells."""

import csv
import errno
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TextIO

from labelsieve import doors
from labelsieve.data.pictures import decode
from labelsieve.data.pictures.arrow import parquet_columns, parquet_file
from labelsieve.data.pictures.options import PictureOptions, named
from labelsieve.doors import reading
from labelsieve.errors import ToolError, UsageError, suggest

IMAGE = (
    "path",
    "file",
    "filename",
    "file_name",
    "filepath",
    "file_path",
    "image",
    "image_path",
    "img",
    "img_path",
)
LABEL = ("label", "class", "category", "target", "y", "given_label", "labels", "class_name", "label_name")
ID = ("id", "image_id", "sample_id", "img_id", "uuid", "guid", "key")
SPLIT = ("split", "subset", "partition")
ROLES = {"image": IMAGE, "label": LABEL, "id": ID, "split": SPLIT}
HOLDS = {"image_column": "paths of the pictures", "label_column": "labels", "id_column": "ids"}
MANY = 8  # columns: a table with more may hold one vector per row


def plainly(name: str) -> str:
    """A column's name as the usual ones are written: `File name` is file_name."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def columns_for(
    columns: Sequence[str], options: PictureOptions, place: Path, needs: Iterable[str], may: Iterable[str] = ()
) -> dict[str, str]:
    """{role: column}: those a table must have, and those it may have, of "image", "label", "id" and "split"."""
    found = {role: needed(columns, getattr(options, f"{role}_column"), ROLES[role], f"{role}_column", place) for role in needs}
    for role in may:
        column = optional(columns, getattr(options, f"{role}_column"), ROLES[role], f"{role}_column", place)
        found |= {} if column is None else {role: column}
    return found


def needed(columns: Sequence[str], given: str | None, usual: Sequence[str], option: str, place: Path) -> str:
    """The given column, else the only usual one; a `UsageError` where there is none or more than one."""
    found = optional(columns, given, usual, option, place)
    if found is None:
        listed = ", ".join(f'"{name}"' for name in columns) or "none"
        raise UsageError(
            f"{place}: of the columns {listed} none has a usual name; say which one holds the {HOLDS.get(option, option)}: "
            f"{named(option)}{_instead(columns, option)}"
        )
    return found


def _instead(columns: Sequence[str], option: str) -> str:
    """What may be wrong where no column has a usual name."""
    if any(Path(name).suffix.lower() in decode.SUFFIXES for name in columns):
        return ". The first line looks like a row: put a line of names above it, such as path,label"
    if option == "image_column" and len(columns) > MANY:
        return (
            ". Vectors are read as lists in one column of a Parquet file, or as the array features of an .npz: not a column each"
        )
    return ""


def optional(columns: Sequence[str], given: str | None, usual: Sequence[str], option: str, place: Path) -> str | None:
    """The same, but None where there is none; "" asks for none."""
    if given == "":
        return None
    if given is not None:
        if given not in columns:
            raise UsageError(
                f'{place}: there is no column "{given}"{suggest(given, columns)}; the columns are {", ".join(columns)}'
            )
        found = [given]
    else:
        found = [name for name in columns if plainly(name) in usual]
    if len(found) > 1:
        listed = " and ".join(f'"{name}"' for name in found)
        raise UsageError(
            f"{place}: the columns {listed} would {'both' if len(found) == 2 else 'all'} do; choose one with {named(option)}"
        )
    if found and list(columns).count(found[0]) > 1:
        raise ToolError(f'{place}: two columns are named "{found[0]}"; rename one')
    return found[0] if found else None


DELIMITED = (".csv", ".tsv", ".tab")
JSON_LINES = (".jsonl", ".ndjson")
SUFFIXES = (*DELIMITED, *JSON_LINES, ".parquet")
PEEK = 100  # JSON lines have no header: the keys of so many lines stand for it
BATCH = 1000
LINE_BREAK = re.compile(r"\r\n|\r|\n")


class Table(Protocol):
    """The names of the columns, and any of them as lists."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def read(self, names: Sequence[str]) -> list[list[Any]]: ...


def open_table(path: Path, encoding: str | None = None) -> Table:
    """The table at `path`, by its suffix. Only its header is read here."""
    if not path.is_file():
        raise ToolError(f"{path}: no such file; check the path")
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return ParquetTable(path)
    if suffix in DELIMITED:
        return delimited(path, encoding)
    if suffix in JSON_LINES:
        with text_of(path, encoding) as stream:
            keys: dict[str, None] = {}
            for record in islice(records_of(stream, path), PEEK):
                keys |= dict.fromkeys(record)
        return JsonLinesTable(path, encoding, tuple(keys))
    raise ToolError(f"{path}: not a table that is read; the suffixes are {', '.join(SUFFIXES)}")


def read_cells(table: Table, chosen: Mapping[str, str]) -> dict[str, list[Any]]:
    """{role: values} of the columns that `columns_for` chose; two roles may share one."""
    names = list(dict.fromkeys(chosen.values()))
    read = dict(zip(names, table.read(names)))
    return {role: read[name] for role, name in chosen.items()}


class _Lines(io.TextIOWrapper):
    """Text whose lines end: none is longer than LINE."""

    def __next__(self) -> str:  # type: ignore[override]  # as TextIOWrapper itself does
        line = self.readline(doors.LINE + 1)
        if len(line) > doors.LINE:
            raise doors.Refusal(errno.EFBIG, f"a line of it is longer than {doors.LINE:,} characters")
        if not line:
            raise StopIteration
        return line


@contextmanager
def text_of(path: Path, encoding: str | None) -> Iterator[TextIO]:
    """The file as text: UTF-8 with or without a byte order mark, unless another encoding is given."""
    try:
        with doors.open_plain(path, follow=True) as file, _Lines(file, encoding=encoding or "utf-8-sig", newline="") as stream:
            yield stream
    except OSError as error:
        raise ToolError(f"{path}: {doors.why(error)}; write one sample per line, in a plain file") from None
    except LookupError:
        raise ToolError(f'{path}: there is no encoding "{encoding}"; write {named("encoding")} as Python does: cp1252') from None
    except UnicodeError:
        raise ToolError(_undecodable(path, encoding)) from None
    except csv.Error as error:
        raise ToolError(f"{path}: not a well-formed table ({error}); check its quotes") from None


def _undecodable(path: Path, encoding: str | None) -> str:
    """Which line is not in the encoding, and what to do."""
    with path.open("rb") as stream:
        start = stream.read(2)
        if encoding is None and start in (b"\xff\xfe", b"\xfe\xff"):
            return f"{path}: it is UTF-16, not UTF-8; save it as UTF-8, or give utf-16 as {named('encoding')}"
        stream.seek(0)
        for number, line in enumerate(stream, 1):
            try:
                line.decode(encoding or "utf-8")
            except UnicodeError as error:
                near = line[max(error.start - 10, 0) : error.start + 10] if hasattr(error, "start") else line[:20]
                return (
                    f"{path}: line {number} is not {encoding or 'UTF-8'} (near {near!r}); "
                    f"save the file as UTF-8, or give its {named('encoding')}, often cp1252"
                )
    return f"{path}: it is not {encoding or 'UTF-8'}; save it as UTF-8, or give its {named('encoding')}"


def _misquoted(path: Path, line: int, what: str) -> ToolError:
    return ToolError(
        f"{path}: the row that starts on line {line} is not well-formed ({what}); close its double quote, remove it, or "
        f"write it twice where it belongs to a quoted value"
    )


def delimited(path: Path, encoding: str | None) -> "DelimitedTable":
    """A CSV or TSV by its first line; in a .csv, whichever of comma, semicolon and tab parts it most."""
    with text_of(path, encoding) as stream:
        first = stream.readline(doors.LINE)
        marks = "\t" if path.suffix.lower() in (".tsv", ".tab") else ",;\t"
        mark = max(marks, key=first.count)
        stream.seek(0)
        try:
            header = next(csv.reader(stream, delimiter=mark, strict=True), [])
        except csv.Error as error:
            raise _misquoted(path, 1, str(error)) from None
    if not header:
        raise ToolError(f"{path}: it is empty; its first line must name the columns")
    return DelimitedTable(path, encoding, tuple(name.strip() for name in header), mark)


@dataclass(frozen=True)
class DelimitedTable:
    path: Path
    encoding: str | None
    columns: tuple[str, ...]
    mark: str

    def read(self, names: Sequence[str]) -> list[list[Any]]:
        """Text; a field that a short line lacks is None."""
        places = [self.columns.index(name) for name in names]
        found: list[list[Any]] = [[] for _ in names]
        wanted = list(zip(places, found))
        width = len(self.columns)
        with text_of(self.path, self.encoding) as stream:
            reader = csv.reader(stream, delimiter=self.mark, strict=True)
            next(reader)
            last = reader.line_num
            try:
                for row in reader:
                    first, last = last + 1, reader.line_num
                    if len(row) != width:
                        if not row:
                            continue
                        row = self._mended(row, last)
                    for place, column in wanted:
                        column.append(row[place])
                    if first != last:
                        self._check_breaks([row[place] for place in places], first)
            except csv.Error as error:
                raise _misquoted(self.path, last + 1, str(error)) from None
        return found

    def _check_breaks(self, fields: Sequence[str | None], line: int) -> None:
        """A name may hold a line break; one that goes on like a row has swallowed it."""
        for field in fields:
            if any(self.mark in part for part in LINE_BREAK.split(field or "")[1:]):
                raise _misquoted(self.path, line, f'a value goes on over line breaks and holds "{self.mark}" after one')

    def _mended(self, row: list[str], line: int) -> list[Any]:
        """Short rows are filled up; spare fields are only allowed when they are empty."""
        width = len(self.columns)
        if any(row[width:]):
            raise ToolError(
                f"{self.path}: line {line} has {len(row)} fields, the header has {width}; "
                f'put values that contain "{self.mark}" in double quotes'
            )
        return [*row[:width], *[None] * (width - len(row))]


@dataclass(frozen=True)
class JsonLinesTable:
    path: Path
    encoding: str | None
    columns: tuple[str, ...]

    def read(self, names: Sequence[str]) -> list[list[Any]]:
        found: list[list[Any]] = [[] for _ in names]
        wanted = list(zip(names, found))
        with text_of(self.path, self.encoding) as stream:
            for record in records_of(stream, self.path):
                for name, column in wanted:
                    column.append(record.get(name))
        return found


def records_of(stream: TextIO, path: Path) -> Iterator[dict[str, Any]]:
    """One object a line. Many lines are parsed at once, for speed; where that fails, one by one, to name the line."""
    number = 1
    while lines := list(islice(stream, BATCH)):
        full = [line for line in lines if not line.isspace()]
        try:
            found = json.loads(f"[{','.join(full)}]")
            plain = len(found) == len(full) and all(type(record) is dict for record in found)
        except (ValueError, RecursionError):
            plain = False
        yield from found if plain else _one_by_one(lines, number, path)
        number += len(lines)


def _one_by_one(lines: list[str], start: int, path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start):
        if line.isspace():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ToolError(f"{path}: line {number} is not JSON ({error}); write one object per line") from None
        if not isinstance(record, dict):
            raise ToolError(f"{path}: line {number} is not an object; write one {{...}} per line")
        yield record


@dataclass(frozen=True)
class ParquetTable:
    path: Path

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(parquet_file(self.path).schema_arrow.names)

    def read(self, names: Sequence[str]) -> list[list[Any]]:
        table = parquet_columns(self.path, names)
        with reading(self.path, "write the table again"):  # texts that are no UTF-8, dates that no calendar has
            return [table.column(name).to_pylist() for name in names]
