"""Sends damaged requests to a review's server, as bytes over a socket, and looks that it goes on well.

No request may end in an error of the server's own, a hang or a traceback, or be let in without the token; and every decision that
was acknowledged in between stands in the log once.
"""

import json
import os
import random
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, quote_from_bytes, urlsplit

from attack import mutations, values
from labelsieve.decisions.log import DecisionLog
from review.made import made_run
from studies import review_load

SECONDS = 20.0  # until an answer is there, or the connection closed
GLANCE = 0.2  # seconds that the server gets before a request that may be incomplete is ended from our side
SAID = 2**20  # bytes of the server's errors, at most
MEANT = (503, 507)  # a picture that is not there yet; a full disk
SAMPLES = 40
READS = {
    "/": ("token", "once"),
    "/api/start": (),
    "/api/rows": ("given", "suggested", "state", "text", "everything", "view", "offset", "limit"),
    "/api/next": ("given", "state", "text", "view", "after"),
    "/api/row": ("id",),
    "/api/changes": ("since", "heard", "mark"),
    "/api/picture": ("id", "size"),
    "/static/main.js": (),
}
WALKS = ("/../config.yaml", "/static/..%2fserver.py", "/static/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/%00", "/%ff", "*", "")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "get", "G\0T", "")
ODD_HEADERS = (
    "Host: evil.example",
    "Host: 127.0.0.1\r\nHost: 127.0.0.1",
    "Content-Length: 5",
    "Content-Length: 99999999999999999999",
    "Content-Length: -1",
    "Content-Length: \u00b2",
    "Content-Length: 3\r\nContent-Length: 4",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Expect: 100-continue",
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ",
    "Content-Type: application/json; charset=utf-16",
    "Content-Type: text/plain",
    "Content-Encoding: gzip",
    "Origin: null",
    "Sec-Fetch-Site: cross-site",
    "Range: bytes=99-1",
    "Cookie: a=\x01; =; ;;$Version=1",
    "X-Long: " + "x" * 70_000,
    "X-Many: 1\r\n" * 300 + "X: 1",
    " folded: 1",
    "no colon",
    "X-Zero: \0",
)


@dataclass
class Told:
    sent: int = 0
    saved: set[str] = field(default_factory=set)
    statuses: dict[int, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # after which requests the server said something of errors

    def words(self) -> str:
        answers = ", ".join(f"{status} {count:,}" for status, count in sorted(self.statuses.items()))
        return f"{self.sent:,} requests to the review page (by status, 0 for none: {answers}); {len(self.failures)} failures"


@dataclass(frozen=True)
class Request:
    """`is_whole`: the server surely answers, and need not be told that nothing more comes."""

    content: bytes
    has_token: bool
    is_whole: bool
    decides: bool = False  # as the page does, undamaged


def requested(place: Path, count: int, seed: int = 0) -> Told:
    run = made_run(place / "requested", count=SAMPLES)
    told = Told()
    with (place / "requested.err").open("wb") as errors:
        server, address = review_load._started(run, errors)
        size = 0
        try:
            home, token = urlsplit(address).netloc, parse_qs(urlsplit(address).query)["token"][0]
            for number in range(count):
                one = request(random.Random(f"{seed} {number}"), number, home, token)
                _try(one, number, home, told)
                if os.fstat(errors.fileno()).st_size > size:
                    size = os.fstat(errors.fileno()).st_size
                    told.said.append(f"by request {number} at the latest: {one.content[:1000]!r}")
            _try(request(random.Random(0), 0, home, token), count, home, told)  # it still answers
        finally:
            server.send_signal(signal.SIGKILL)  # what was acknowledged outlives that
            server.wait()
            server.stdout.close()
    said = (place / "requested.err").read_text(errors="replace")
    if "Traceback" in said or "Exception" in said or len(said) > SAID:
        told.failures.append(f"the server said {len(said):,} characters of errors, {'; '.join(told.said[:5])}: {said[-1500:]}")
    log = DecisionLog(run).all()
    keys = [entry.key for entry in log]
    lost = told.saved - set(keys)
    if lost or len(keys) != len(set(keys)):
        told.failures.append(f"{len(lost)} acknowledged decisions are lost, {len(keys) - len(set(keys))} are there twice")
    told.failures += [f"a stranger decided: {entry}" for entry in log if entry.who == "eve"]
    return told


def _try(one: Request, number: int, home: str, told: Told) -> None:
    told.sent += 1
    try:
        answer = _answer(one, home)
    except TimeoutError:
        told.failures.append(f"request {number}: no answer in {SECONDS:g} s: {one.content[:300]!r}")
        return
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head.startswith(b"HTTP/1.") else 0
    told.statuses[status] = told.statuses.get(status, 0) + 1
    if status >= 500 and status not in MEANT:
        told.failures.append(f"request {number}: {head.splitlines()[0]!r} for {one.content[:300]!r}")
    if not one.has_token and 0 < status < 400:
        told.failures.append(f"request {number}: let in without the token: {one.content[:300]!r}")
    if one.decides and status != 200:
        told.failures.append(f"request {number}: a decision was refused: {answer[:300]!r}")
    if status == 200 and body.startswith(b'{"saved":'):
        told.saved |= {saved["key"] for saved in json.loads(body)["saved"]}


def _answer(one: Request, home: str) -> bytes:
    """All that comes until the server closes; nothing where it closes at once."""
    host, _, port = home.rpartition(":")
    found = bytearray()
    with socket.create_connection((host, int(port)), SECONDS) as line:
        try:
            line.sendall(one.content)
            if not one.is_whole:
                line.settimeout(GLANCE)
                with suppress(TimeoutError):
                    found += line.recv(2**16)
                line.shutdown(socket.SHUT_WR)
                line.settimeout(SECONDS)
            while piece := line.recv(2**16):
                found += piece
        except TimeoutError:
            raise
        except OSError:
            pass  # it had enough of us
    return bytes(found)


def request(rng: random.Random, number: int, home: str, token: str) -> Request:
    """Every tenth decides as the page does; the others are damaged in one to three places."""
    is_ours = number % 10 == 0
    cookie = token if is_ours or rng.random() < 0.75 else rng.choice(("", "x" * 43, token[:-1], token + "x", "\xff"))
    who = "ada" if cookie == token else "eve"
    said = {"key": f"{who}-{number:08d}", "id": f"s{rng.randrange(SAMPLES):03d}", "action": "keep", "who": who}
    body = json.dumps({"decisions": [said]}).encode()
    parts = {"method": "POST", "path": "/api/decisions", "headers": []}
    if not is_ours and rng.random() < 0.5:
        parts |= {"method": "GET", "path": rng.choice(list(READS))}
        body = b""
    is_whole = True
    if not is_ours:
        for change in rng.sample(CHANGES, rng.choice((1, 1, 2, 3))):
            body, is_still = change(rng, parts, body)
            is_whole = is_whole and is_still
    headers = [f"Host: {home}", f"Cookie: labelsieve-{home.rpartition(':')[2]}={cookie}", "Connection: close"]
    headers += ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body or parts["method"] == "POST" else []
    replaced = {one.partition(":")[0] for one in parts["headers"] if rng.random() < 0.7}
    headers = [*(one for one in headers if one.partition(":")[0] not in replaced), *parts["headers"]]
    lines = [f"{parts['method']} {parts['path']} {parts.get('version', 'HTTP/1.1')}", *headers]
    content = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body
    if not is_ours and rng.random() < 0.05:
        content, is_whole = rng.choice(mutations.BYTES)(rng, content), False
    return Request(content, cookie == token, is_whole, is_ours)


def _query(rng: random.Random, parts: dict, body: bytes) -> tuple[bytes, bool]:
    names = READS.get(parts["path"], ()) or ("id",)
    pairs = [(rng.choice((*names, "x")), values.words(rng)[:3000]) for _ in range(rng.choice((1, 2, 5)))]
    text = "&".join(f"{name}={quote_from_bytes(one.encode(errors='surrogatepass'))}" for name, one in pairs)
    parts["path"] += "?" + rng.choice((text, text, text + "&=&&%zz", "%" * 50, "a" * 5000))
    return body, True


def _path(rng: random.Random, parts: dict, body: bytes) -> tuple[bytes, bool]:
    parts["path"] = rng.choice((*WALKS, f"/static/{quote_from_bytes(values.words(rng)[:500].encode(errors='surrogatepass'))}"))
    return body, False


def _method(rng: random.Random, parts: dict, body: bytes) -> tuple[bytes, bool]:
    parts["method"] = rng.choice(METHODS)
    return body, False


def _version(rng: random.Random, parts: dict, body: bytes) -> tuple[bytes, bool]:
    parts["version"] = rng.choice(("HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "", "HTTP/1.1 x", "FTP/1.1"))
    return body, False


def _header(rng: random.Random, parts: dict, body: bytes) -> tuple[bytes, bool]:
    parts["headers"] = [*parts["headers"], rng.choice(ODD_HEADERS)]
    return body, False


def _body(rng: random.Random, parts: dict, body: bytes) -> tuple[bytes, bool]:
    """Other JSON, or none."""
    content = body or b'{"decisions":[{"key":"key-00000000","id":"s000","action":"drop","who":"eve"}]}'
    many = json.dumps({"decisions": json.loads(content)["decisions"] * 5001}).encode()
    kind = rng.random()
    if kind < 0.6:
        return mutations.json_damaged(rng, content), True
    odd = (many, content.decode().encode("utf-16"), b"\xef\xbb\xbf" + content, b"1" * 5000, b'{"a":' * values.DEEP, b"NaN", b"")
    return rng.choice((*odd, rng.choice(mutations.BYTES)(rng, content), bytes(3 * 2**20))), True


Change = Callable[[random.Random, dict, bytes], tuple[bytes, bool]]
CHANGES: tuple[Change, ...] = (_query, _path, _method, _version, _header, _body)
