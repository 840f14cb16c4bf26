"""Strangers who open many connections and say little on them: the owner gets in, and the server's complaints stay short."""

import contextlib
import json
import logging
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("uvicorn")
from labelsieve.review import serving
from review.made import made_run

FILES = 1024  # that the server may have open
STRANGERS = 1100
PATIENCE = 120.0  # of a machine that is busy with other tests
HALF = b"GET /api/start HTTP/1.1\r\nHost: 127.0.0.1\r\n"
START = (
    "import resource, sys; from labelsieve.review import serving;"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv.pop(1)),) * 2); exec(sys.argv.pop(1));"
    "from labelsieve.cli.main import main; sys.argv[0] = 'labelsieve'; main()"
)


@dataclass
class Served:
    """A review in a process of its own; `ask` is the owner, who has the token."""

    process: subprocess.Popen[str]
    address: str
    errors: Path

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        place = urlsplit(self.address)
        return socket.create_connection((place.hostname, place.port), timeout=PATIENCE, source_address=(source, 0))

    def stranger(self, source: str = "127.0.0.1") -> socket.socket:
        found = self.connect(source)
        with contextlib.suppress(ConnectionError):  # the server has closed it already
            found.sendall(HALF)
        return found

    def head(self, method: str = "GET", path: str = "/api/start") -> str:
        place = urlsplit(self.address)
        token = parse_qs(place.query)["token"][0]
        return f"{method} {path} HTTP/1.1\r\nHost: {place.netloc}\r\nCookie: labelsieve-{place.port}={token}\r\n"

    def ask(self, connection: socket.socket) -> int:
        """The answer's status; the connection can be used again."""
        connection.sendall(f"{self.head()}\r\n".encode("ascii"))
        head, body = b"", b""
        while b"\r\n\r\n" not in head:
            head += some(connection)
        head, _, body = head.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += some(connection)
        assert json.loads(body)
        return int(head.split()[1])


def some(connection: socket.socket) -> bytes:
    found = connection.recv(65536)
    if not found:
        raise ConnectionResetError("the server closed the connection")
    return found


def until_closed(connection: socket.socket) -> bytes:
    """What was still said; returns once the server has closed the connection."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while True:
            said += some(connection)
    return said


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    finally:
        connection.settimeout(PATIENCE)


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started: list[subprocess.Popen[str]] = []

    def start(changes: str = "", files: int = FILES) -> Served:
        run, errors = made_run(tmp_path / "run"), tmp_path / "errors.txt"
        words = ["review", str(run), "--no-browser", "--port", "0", "--reviewer", "anna"]
        with errors.open("wb") as stream:
            command = [sys.executable, "-c", START, str(files), changes, *words]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True)
        started.append(process)
        assert process.stdout is not None
        address = next((line.strip() for line in process.stdout if line.startswith("http://")), "")
        assert address, errors.read_text()
        return Served(process, address, errors)

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may hold that many connections, too."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], STRANGERS + 200), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_owner_gets_in_past_a_thousand_half_requests_and_little_is_complained_of(serve: Serve, many_files: None) -> None:
    served = serve()
    page = served.connect()
    assert served.ask(page) == 200
    strangers = [served.stranger() for _ in range(STRANGERS)]
    assert served.ask(served.connect()) == 200
    assert served.ask(page) == 200  # a page that was open before the flood keeps its connection
    held = sum(map(is_open, strangers))
    assert 0 < held < FILES  # some are still held: the owner did not wait for their time to be up
    for one in strangers:
        one.close()
    for _ in range(STRANGERS):
        with served.connect() as stranger:
            stranger.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
    assert served.ask(served.connect()) == 200
    assert served.errors.stat().st_size < 10_000, served.errors.read_text()[:2000]


def test_the_oldest_stranger_makes_room_then_an_idle_page_and_nobody_who_is_at_work(serve: Serve) -> None:
    """Four connections of one address, eight in all."""
    served = serve("serving.MOST = 8; serving.PATIENCE = 3600")
    page = served.connect()
    assert served.ask(page) == 200
    first, second, third = (served.stranger() for _ in range(3))
    fourth = served.stranger()
    until_closed(first)
    assert served.ask(page) == 200 and all(map(is_open, (second, third, fourth)))
    elsewhere = [served.stranger("127.0.0.2") for _ in range(5)]
    until_closed(elsewhere[0])
    assert served.ask(page) == 200 and all(map(is_open, (second, third, fourth, *elsewhere[1:])))
    elsewhere.append(served.stranger("127.0.0.3"))
    until_closed(second)
    pages = [served.connect() for _ in range(3)]
    assert [served.ask(one) for one in pages] == [200] * 3
    for one in (third, fourth):
        until_closed(one)
    length = "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    for one in pages:
        one.sendall(f"{served.head('POST', '/api/decisions')}{length}".encode())
    newest = served.connect()
    assert served.ask(newest) == 200
    until_closed(page)  # it was idle, the others are in the midst of a request
    newest.sendall(f"{served.head('POST', '/api/decisions')}{length}".encode())
    until_closed(served.connect())
    for one in (*pages, newest):
        one.sendall(b"12345678")
        assert b" 422 " in some(one)


def test_a_head_that_does_not_come_is_not_waited_for(serve: Serve) -> None:
    served = serve("serving.PATIENCE = 0.5")
    page = served.connect()
    assert served.ask(page) == 200
    silent, half, asking = served.connect(), served.stranger(), served.connect()
    asking.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")  # a whole head, without the token
    assert until_closed(silent) == until_closed(half) == b""
    assert until_closed(asking).startswith(b"HTTP/1.1 401")
    assert served.ask(page) == 200  # a page may wait longer between its requests
    page.sendall(HALF)
    until_closed(page)


def test_bodies_that_do_not_come_are_refused(serve: Serve) -> None:
    served = serve("from labelsieve.review import guard; guard.PATIENCE = 0.5")
    page = served.connect()
    page.sendall(f"{served.head('POST', '/api/decisions')}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n".encode())
    assert until_closed(page).startswith(b"HTTP/1.1 408")


def test_a_body_that_is_no_http_is_refused_and_not_complained_of(serve: Serve) -> None:
    """Its head is whole, and the answer to it is on its way."""
    served = serve()
    for head in (served.head("GET", "/static/main.js"), served.head("POST", "/api/decisions"), HALF.decode()):
        page = served.connect()
        page.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n".encode())
        assert until_closed(page).startswith(b"HTTP/1.1 400")
    assert served.ask(served.connect()) == 200
    assert "Traceback" not in served.errors.read_text()


def test_few_open_files_are_enough(serve: Serve) -> None:
    served = serve(files=64)
    strangers = [served.stranger() for _ in range(200)]
    assert served.ask(served.connect()) == 200 and len(strangers) == 200
    assert served.errors.stat().st_size < 10_000


def test_what_is_said_again_is_counted(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    monkeypatch.setattr(serving.time, "monotonic", lambda: now)
    log = logging.getLogger("labelsieve.tried")
    log.addFilter(serving.Sparing())
    for number in range(1000):
        log.warning("An invalid request.")
        log.warning("Nothing else can be accepted any more, not number %d of all", number)
    now += serving.SPAN
    log.warning("An invalid request.")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3 and said[1].endswith("not number 0 of all")
    assert said[2] == "An invalid request. (and 999 more like it before)"
