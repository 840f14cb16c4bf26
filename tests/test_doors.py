"""The door to strangers' files: what is no plain file stays outside, and whatever goes wrong is one sentence."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from labelsieve import doors
from labelsieve.errors import ToolError

TEXT = '{"a": 1}'


@pytest.fixture(params=["walking", "by names"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With descriptors, and as on Windows, which has none of their flags."""
    if request.param == "by names":
        monkeypatch.setattr(doors, "WALKS", False)
        monkeypatch.setattr(doors, "NOFOLLOW", 0)


pytestmark = pytest.mark.usefixtures("_both_ways")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "inner" / "facts.json"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_plain_file_is_read(file: Path, tmp_path: Path) -> None:
    assert doors.read_bytes(file) == TEXT.encode() and doors.read_text(file, len(TEXT)) == TEXT
    assert doors.read_json(file, top=tmp_path) == {"a": 1}
    assert doors.read_text(file, follow=True) == TEXT
    assert list(doors.lines(file)) == [TEXT]


def link(path: Path) -> None:
    path.with_name("other").write_text(TEXT)
    path.symlink_to("other")


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's name is short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


OTHERS: dict[str, Callable[[Path], None]] = {
    "it is a pipe": os.mkfifo,
    "it is a folder": Path.mkdir,
    "it is a link, which is not followed": link,
    "it is a device or a socket": bound,
}


@pytest.mark.parametrize("words", OTHERS)
def test_what_is_no_plain_file_stays_outside(file: Path, words: str) -> None:
    file.unlink()
    OTHERS[words](file)
    with pytest.raises(doors.Refusal, match=words):
        doors.read_bytes(file)


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null"])
def test_a_device_stays_outside_also_where_links_are_followed(file: Path, place: str) -> None:
    file.unlink()
    file.symlink_to(place)
    with pytest.raises(doors.Refusal, match="a device or a socket"):
        doors.read_bytes(file, follow=True)
    file.unlink()
    os.mkfifo(file.with_name("pipe"))
    file.symlink_to("pipe")
    with pytest.raises(doors.Refusal, match="it is a pipe"):
        doors.read_bytes(file, follow=True)


def test_a_link_that_the_user_named_is_followed(file: Path, tmp_path: Path) -> None:
    (tmp_path / "named").symlink_to(file)
    assert doors.read_text(tmp_path / "named", follow=True) == TEXT


def test_no_folder_below_the_top_is_a_link(file: Path, tmp_path: Path) -> None:
    """The top itself may be one: the user named it."""
    (tmp_path / "run" / "linked").symlink_to("inner")
    (tmp_path / "latest").symlink_to("run")
    assert doors.read_text(tmp_path / "latest" / "inner" / file.name, top=tmp_path / "latest") == TEXT
    with pytest.raises(doors.Refusal, match="it is a link"):
        doors.read_text(tmp_path / "run" / "linked" / file.name, top=tmp_path / "run")


def test_a_file_beyond_its_size_is_not_read(file: Path) -> None:
    os.truncate(file, 2**40)  # it takes no room on the disk
    with pytest.raises(doors.Refusal, match=r"1,099,511,627,776 bytes, and such a file has 1,000 at most"):
        doors.read_bytes(file, 1000)


def test_a_line_without_end_is_not_read(file: Path) -> None:
    with file.open("wb") as stream:
        stream.write(b"a\n")
        stream.truncate(10 * doors.LINE)
    found = doors.lines(file)
    assert next(found) == "a\n"
    with pytest.raises(doors.Refusal, match="a line of it is longer"):
        next(found)


def test_a_file_that_is_replaced_while_it_is_opened_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.open

    def replaced(path: Path, *rest: int, **named: int) -> int:
        if Path(path).name == file.name:
            file.rename(file.with_name("before"))
            file.write_text("a secret")
        return before(path, *rest, **named)

    monkeypatch.setattr(os, "open", replaced)
    with pytest.raises(doors.Refusal, match="it was replaced"):
        doors.read_bytes(file)


def test_no_descriptor_stays_open(file: Path, tmp_path: Path) -> None:
    free = os.dup(0)
    os.close(free)
    for name in ("facts.json", "gone"):
        for limit in (None, 1):
            try:
                doors.read_bytes(file.with_name(name), limit, top=tmp_path)
            except OSError:
                continue
    assert os.dup(0) == free
    os.close(free)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff", "not utf-8 text"),
        (b"[" * 100_000, "nested without end"),
        (b"{", "damaged"),
        (b"[1]", "damaged"),
        (b"{}", "'a' is missing"),
    ],
)
def test_whatever_goes_wrong_is_one_sentence(file: Path, content: bytes, words: str) -> None:
    file.write_bytes(content)
    with pytest.raises(ToolError, match=f"{words}.*; put it back$") as caught, doors.reading(file, "put it back"):
        doors.read_json(file)["a"]
    assert str(caught.value).startswith(f"{file}: ") and "\n" not in str(caught.value)


def test_what_the_system_refuses_is_one_sentence_too(file: Path) -> None:
    with pytest.raises(ToolError, match="no such file; put it back"), doors.reading(file, "put it back"):
        doors.read_json(file.with_name("gone"))
    with pytest.raises(ToolError, match="it cannot be read"), doors.reading(file, "put it back"):
        doors.read_json(file / "below")
