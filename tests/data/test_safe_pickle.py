"""The restricted pickle reader: arrays of every protocol come back, and no pickle can run anything."""

import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.data.safe_pickle import read_plain, texts
from labelsieve.errors import ToolError

CONTENT = {
    "data": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "labels": [2, 0, 1],
    b"batch_label": b"one \xff",
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("order", ["C", "F"])
def test_plain_data_comes_back_in_every_protocol(protocol: int, order: Any) -> None:
    content = CONTENT | {"data": np.array(CONTENT["data"], order=order)}
    found = read_plain(pickle.dumps(content, protocol), "file")
    assert set(found) == {"data", "labels", "batch_label"}
    assert found["data"].dtype == np.uint8 and np.array_equal(found["data"], CONTENT["data"])
    assert found["labels"] == [2, 0, 1] and found["batch_label"] == b"one \xff"


def test_a_pickle_as_python_2_wrote_it_is_read() -> None:
    """Written out by hand: old NumPy module names, and text in the opcodes of Python 2's str."""
    pixels = bytes(range(200, 206))
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    kind = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    state = b"(K\x01(K\x02K\x03t" + kind + b"\x89T" + struct.pack("<i", len(pixels)) + pixels + b"tb"
    old = b"\x80\x02}(U\x04data" + array + state + b"U\x06labels](K\x05K\x07eu."
    found = read_plain(old, "file")
    assert found["data"].tolist() == [[200, 201, 202], [203, 204, 205]] and found["labels"] == [5, 7]


class Runs:
    """Pickles to a call of `function`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_calls_the_shell_runs_nothing(protocol: int, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    content = pickle.dumps({"data": Runs(os.system, f"touch {mark}")}, protocol)
    with pytest.raises(ToolError, match=r"bad\.bin: the pickle asks for \"(posix|nt)\.system\""):
        read_plain(content, "bad.bin")
    assert not mark.exists()
    pickle.loads(content)
    assert mark.exists(), "the pickle does run when read carelessly, so the test above proves something"


@pytest.mark.parametrize("function", [eval, exec, getattr, __import__, open, np.load, np.fromfile, pickle.loads])
def test_other_ways_out_are_closed(function: Any) -> None:
    with pytest.raises(ToolError, match="asks for"):
        read_plain(pickle.dumps({"x": Runs(function, "1")}), "file")


@pytest.mark.parametrize(
    "content",
    [
        b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0cf2py.os.path\x93.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02Pid\n.",
    ],
    ids=["other codec", "dotted name", "extension code", "persistent id"],
)
def test_rarer_opcodes_are_refused(content: bytes) -> None:
    with pytest.raises(ToolError, match="file: "):
        read_plain(content, "file")


def crafted(kind: bytes = b"u1", code: bytes = b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb") -> bytes:
    """A pickled dict with one array of 2 bytes, its number type and that type's state as given."""
    dtype = b"cnumpy\ndtype\n(U" + bytes([len(kind)]) + kind + b"K\x00K\x01tR" + code
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    return b"\x80\x02}U\x04data" + array + b"(K\x01(K\x02t" + dtype + b"\x89U\x02\x05\x06tbs."


def test_a_number_type_with_crafted_flags_stays_what_it_is() -> None:
    """NumPy itself takes this state, believes that bytes are object references, and fails inside."""
    assert read_plain(crafted(), "file")["data"].tolist() == [5, 6]
    flags = b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x3ftb"
    found = read_plain(crafted(code=flags), "file")["data"]
    assert found.dtype == np.dtype(np.uint8) and found.dtype.flags == 0 and found.tolist() == [5, 6]


@pytest.mark.parametrize("kind", [b"O8", b"O", b"V2", b"S2", b"i4,i4", b"u3", b""])
def test_arrays_of_anything_but_numbers_are_refused(kind: bytes) -> None:
    with pytest.raises(ToolError, match="an array of"):
        read_plain(crafted(kind), "file")


def test_an_array_without_content_is_refused() -> None:
    content = b"\x80\x02}U\x04datacnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btRs."
    with pytest.raises(ToolError, match="array without its content"):
        read_plain(content, "file")


@pytest.mark.parametrize("dtype", ["<i8", ">i8", "<f4", ">u2", "i1"])
def test_byte_order_is_kept(dtype: str) -> None:
    numbers = np.array([1, 2, 100], dtype)
    assert read_plain(pickle.dumps({"x": numbers}), "file")["x"].tolist() == [1, 2, 100]


def test_every_truncation_is_an_error_of_ours() -> None:
    whole = pickle.dumps(CONTENT, 2)
    for length in range(len(whole)):
        with pytest.raises(ToolError, match="file: "):
            read_plain(whole[:length], "file")


def test_something_else_than_a_dict_is_refused() -> None:
    with pytest.raises(ToolError, match="holds a list"):
        read_plain(pickle.dumps([1]), "file")


def test_names_may_be_bytes_or_text() -> None:
    assert texts([b"cat", "dog"], "file") == ("cat", "dog")
    for wrong in ("cat", [1], None):
        with pytest.raises(ToolError, match="list of names"):
            texts(wrong, "file")


def doubled(times: int = 60) -> bytes:
    """Opcodes of a tuple that holds itself of before twice, 2 ** `times` values in 5 bytes each."""
    return b"K\x01" + b"".join(b"q%ch%c\x86" % (k, k) for k in range(times))


BOMBS = {
    "doubled tuples as a key": b"\x80\x02}" + doubled() + b"K\x01s.",
    "doubled tuples as a value": b"\x80\x02}U\x01a" + doubled() + b"s.",
    "doubled tuples as a number type": b"\x80\x02cnumpy\ndtype\n" + doubled() + b"\x85R.",
    "doubled tuples as a byte order": b"\x80\x02cnumpy\ndtype\nU\x02u1\x85RK\x03" + doubled() + b"\x86b.",
    "doubled tuples as a codec": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00a" + doubled() + b"\x86R.",
    "doubled tuples as a module": b"\x80\x04" + doubled() + b"\x8c\x01a\x93.",
    "keys of one hash": b"\x80\x02}("
    + b"".join(b"\x8a\x0b" + (k * (2**61 - 1)).to_bytes(11, "little") + b"N" for k in range(1, 200_000))
    + b"u.",
    "long keys that are alike": b"\x80\x02}("
    + b"".join(b"T" + struct.pack("<i", 10**7) + b"a" * 10**7 + b"q%c" % k for k in (0, 1))
    + b"("
    + b"h\x00Nh\x01N" * 100_000
    + b"u.",
    "one text encoded often": b"\x80\x02c_codecs\nencode\nq\x00X\x06\x00\x00\x00latin1q\x01X"
    + struct.pack("<I", 10**7)
    + b"a" * 10**7
    + b"q\x02]q\x03("
    + b"h\x00h\x02h\x01\x86R" * 100_000
    + b"e.",
    "a place in a huge memory": b"\x80\x02}r\xff\xff\xff\xff.",
    "a million lists in each other": b"\x80\x02}U\x01a" + b"](" * 10**6 + b"e" * 10**6 + b"s.",
    "a million tuples in each other": b"\x80\x02}U\x01aK\x01" + b"\x85" * 10**6 + b"s.",
    "more steps than any file has": b"\x80\x02](" + b"N" * 3_000_001 + b"e.",
    "text of a length that is not there": b"\x80\x02}U\x01a\x8d" + struct.pack("<Q", 2**62) + b"s.",
}
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from labelsieve.data.safe_pickle import read_plain
from labelsieve.errors import ToolError
try:
    read_plain(sys.stdin.buffer.read(), "file")
except ToolError as error:
    print(error, end="")
"""


@pytest.mark.parametrize("name", BOMBS)
def test_what_would_never_end_or_fill_the_memory_is_refused(name: str) -> None:
    """In a process that has a minute of the processor and a gigabyte."""
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED],
        input=BOMBS[name],
        capture_output=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    said = ran.stdout.decode()
    assert said.startswith("file: ") and len(said) < 400, ran.stderr.decode()[-2000:]


def test_what_holds_others_is_used_once() -> None:
    shared = [1, 2]
    with pytest.raises(ToolError, match="a list that is used twice"):
        read_plain(pickle.dumps({"a": shared, "b": shared}), "file")
    name = "one name for two"
    assert read_plain(pickle.dumps({"a": name, "b": name}), "file") == {"a": name, "b": name}


def test_nesting_is_bounded_and_what_cifar_needs_fits() -> None:
    value: object = 1
    for depth in range(1, 12):
        value = [value]
        content = pickle.dumps({"a": value})
        if depth <= 7:
            assert read_plain(content, "file") == {"a": value}
        else:
            with pytest.raises(ToolError, match="nested more than 8 deep"):
                read_plain(content, "file")
