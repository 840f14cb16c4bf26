"""Small files that would fill the memory: each is refused by what it announces, before it is unpacked."""

import gzip
import io
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

from labelsieve.config.schema import from_yaml
from labelsieve.data import cifar, npz
from labelsieve.data.fashion import read_idx
from labelsieve.data.label_files import human_labels
from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError


def test_an_npz_that_no_memory_holds_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", images=np.zeros((2000, 32, 32), np.uint8))
    assert (tmp_path / "bomb.npz").stat().st_size < 20_000
    assert len(read_npz(tmp_path / "bomb.npz")["images"]) == 2000
    monkeypatch.setattr(npz, "memory", lambda: 2**20)
    with pytest.raises(ToolError, match=r"bomb\.npz: it unpacks to"):
        read_npz(tmp_path / "bomb.npz")


def test_this_machine_says_how_much_memory_it_has() -> None:
    found = npz.memory()
    assert found is None or 2**26 < found < 2**60


def idx(shape: tuple[int, ...]) -> bytes:
    return bytes((0, 0, 8, len(shape))) + struct.pack(f">{len(shape)}I", *shape)


def test_an_idx_file_is_unpacked_no_further_than_its_header_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    whole = gzip.GzipFile.read

    def read(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        asked.append(-1 if size is None else size)
        return whole(self, size)

    monkeypatch.setattr(gzip.GzipFile, "read", read)
    (tmp_path / "t.gz").write_bytes(gzip.compress(idx((2, 3)) + b"\0" * 2**22))
    with pytest.raises(ToolError, match="= 6 bytes, the file has more"):
        read_idx(tmp_path / "t.gz", 2)
    assert asked == [12, 7]


def test_an_idx_header_beyond_the_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(idx((2**32 - 1, 2**32 - 1)))
    with pytest.raises(ToolError, match="it unpacks to"):
        read_idx(tmp_path / "t", 2)


def test_a_cifar_archive_with_a_huge_member_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "LARGEST", 1000)
    with tarfile.open(tmp_path / "c.tar.gz", "w:gz") as archive:
        facts = tarfile.TarInfo("cifar-10-batches-py/test_batch")
        facts.size = 1001
        archive.addfile(facts, io.BytesIO(b"\0" * 1001))
    with pytest.raises(ToolError, match="test_batch unpacks to 1,001 bytes"):
        cifar.read_files(tmp_path / "c.tar.gz", cifar.CIFAR10)


def test_a_cifar_archive_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a member may be as long as its header says, and what is passed over is unpacked, too."""
    monkeypatch.setattr(cifar, "LARGEST_ARCHIVE", 2**20)
    for kind in (tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        facts = tarfile.TarInfo("other")
        facts.type, facts.size = kind, 2**24
        with gzip.open(tmp_path / "c.tar.gz", "wb") as packed:
            packed.write(facts.tobuf() + b"\0" * 2**24)
        with pytest.raises(ToolError, match=r"c\.tar\.gz: it unpacks to more than 1,048,576 bytes"):
            cifar.read_files(tmp_path / "c.tar.gz", cifar.CIFAR10)


@pytest.mark.parametrize("value", [[[0] * 10], [(0,)], ((0,), (1,)), {"a": 1}])
def test_labels_that_are_lists_of_lists_never_become_an_array(tmp_path: Path, value: object) -> None:
    head = pickle.dumps(1, 2) * 2 + pickle.dumps({}, 2)
    (tmp_path / "n.pt").write_bytes(head + pickle.dumps({"clean_label": value, "aggre_label": [0]}, 2))
    with pytest.raises(ToolError, match="no list of whole numbers"):
        human_labels(f"{tmp_path / 'n.pt'}:aggre", np.zeros(10, np.int64), 10)


def test_a_configuration_nested_without_end_is_an_error_in_words() -> None:
    with pytest.raises(ToolError, match="not readable as YAML"):
        from_yaml("[" * 1200, "config.yaml")


@pytest.mark.parametrize("place", ["data:\n  source:", "version:", "seed:"])
def test_a_configuration_that_multiplies_itself_is_not_written_out(place: str) -> None:
    """Nine lines of aliases stand for a billion words: the error names the setting and not its value."""
    lines = ["  - &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"  - &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 12)]
    with pytest.raises(ToolError) as refused:
        from_yaml("\n".join([place, *lines, ""]), "config.yaml")
    assert "a list" in str(refused.value) and len(str(refused.value)) < 300
