"""Reads the files of CIFAR's python layout from a folder or the .tar.gz: a dict of plain data for each.

Pickles are read through `safe_pickle`; an archive is read in memory, nothing is unpacked to disk.
"""

import gzip
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from labelsieve import doors
from labelsieve.data.safe_pickle import REMEDY, read_plain
from labelsieve.errors import ToolError

LARGEST = 2**28  # bytes of a file: CIFAR's have up to 155 million
LARGEST_ARCHIVE = 2**29  # bytes, unpacked: CIFAR's have 186 million
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Layout:
    """Where one of the two sets keeps its things, and its usual channel statistics."""

    name: str
    folder: str
    archive: str
    train: tuple[str, ...]
    test: str
    meta: str
    names_key: str
    labels_key: str
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.train, self.test, self.meta)


CIFAR10 = Layout(
    name="cifar10",
    folder="cifar-10-batches-py",
    archive="cifar-10-python.tar.gz",
    train=tuple(f"data_batch_{i}" for i in range(1, 6)),
    test="test_batch",
    meta="batches.meta",
    names_key="label_names",
    labels_key="labels",
    classes=10,
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
)
CIFAR100 = Layout(
    name="cifar100",
    folder="cifar-100-python",
    archive="cifar-100-python.tar.gz",
    train=("train",),
    test="test",
    meta="meta",
    names_key="fine_label_names",
    labels_key="fine_labels",
    classes=100,
    mean=(0.507, 0.487, 0.441),
    std=(0.267, 0.256, 0.276),
)


def read_files(path: Path, layout: Layout) -> dict[str, dict[str, Any]]:
    """Every file of the layout, unpickled, by name."""
    if not path.exists():
        raise ToolError(f"{path}: no such file or folder; {remedy(layout)}")
    if (path / layout.folder).is_dir():
        path = path / layout.folder
    elif (path / layout.archive).is_file():
        path = path / layout.archive
    contents = _read_folder(path, layout) if path.is_dir() else _read_archive(path, layout)
    missing = [file for file in layout.files if file not in contents]
    if missing:
        raise ToolError(f"{path}: {', '.join(missing)} missing; {remedy(layout)}")
    return contents


def remedy(layout: Layout) -> str:
    return (
        f"put the official {layout.archive} there, or the folder {layout.folder} unpacked from it, "
        f"or give the path where one of them is"
    )


def _read_folder(folder: Path, layout: Layout) -> dict[str, dict[str, Any]]:
    present = [folder / file for file in layout.files if (folder / file).is_file()]
    return {path.name: _read_file(path) for path in present}


def _read_file(path: Path) -> dict[str, Any]:
    with doors.reading(path, REMEDY):
        return read_plain(doors.read_bytes(path, LARGEST, follow=True), str(path))


class _Unpacked:
    """The unpacked bytes of a .tar.gz or a .tar, no more of them than an archive of CIFAR has."""

    def __init__(self, packed: BinaryIO) -> None:
        is_packed = packed.read(len(GZIP)) == GZIP
        packed.seek(0)
        self._stream: Any = gzip.GzipFile(fileobj=packed) if is_packed else packed
        self._left = LARGEST_ARCHIVE

    def read(self, count: int) -> bytes:
        found: bytes = self._stream.read(count)
        self._left -= len(found)
        if self._left < 0:
            raise doors.Damage(f"it unpacks to more than {LARGEST_ARCHIVE:,} bytes, which no archive of CIFAR does")
        return found


def _read_archive(path: Path, layout: Layout) -> dict[str, dict[str, Any]]:
    """The layout's files in an archive; read as a stream, so that nothing is decompressed twice."""
    contents = {}
    with (
        doors.reading(path, remedy(layout)),
        doors.open_plain(path, follow=True) as packed,
        tarfile.open(fileobj=cast(BinaryIO, _Unpacked(packed)), mode="r|") as archive,
    ):
        for member in archive:
            *_, folder, file = ("", "", *PurePosixPath(member.name).parts)
            if folder == layout.folder and file in layout.files and member.isfile():
                if member.size > LARGEST:
                    raise doors.Damage(f"{member.name} unpacks to {member.size:,} bytes, no file of CIFAR does")
                stream = archive.extractfile(member)
                assert stream is not None  # a regular file always has one
                contents[file] = read_plain(stream.read(), f"{path}: {member.name}")
    return contents
