"""Who may look at a review: its token, and the guard that stands before every answer.

A request passes only with the token, from this page and of a bounded size. Host names are checked against DNS rebinding, Origin
and content type against other sites, and every answer carries a Content-Security-Policy under which nothing but our own files
runs or loads.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import json
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from labelsieve.doors import FLAGS, NOFOLLOW

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
NAME = "review.secret"


class Invitation:
    """`port` is the server's own."""

    def __init__(self, port: int) -> None:
        self.code, self.port, self._open = secrets.token_urlsafe(32), port, True

    def admits(self, code: str, peer: int) -> bool:
        """True the first time that the code comes, through `peer`, the visitor's port; another user does not use it up."""
        if not self._open or not hmac.compare_digest(code.encode(), self.code.encode()):
            return False
        mine = os.getuid() if hasattr(os, "getuid") else None
        if owner_of(peer, self.port) not in (None, 0, mine):  # 0: what forwards ports into a virtual machine
            return False
        self._open = False
        return True


def owner_of(peer: int, port: int, tables: Iterable[Path] = TABLES) -> int | None:
    """The user id behind a connection on this machine from port `peer` to `port`; None where the system does not say."""
    for table in tables:
        try:
            lines = table.read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for _, local, remote, _, _, _, _, user, *_ in map(str.split, lines):
            if local.endswith(f":{peer:04X}") and remote.endswith(f":{port:04X}"):
                return int(user)
    return None


def state_dir() -> Path:
    """XDG_STATE_HOME/labelsieve, else ~/.local/state/labelsieve."""
    named = os.environ.get("XDG_STATE_HOME")
    return (Path(named) if named else Path.home() / ".local" / "state") / "labelsieve"


def run_token(run: Path) -> str:
    """URL-safe, 43 characters, and the same after a restart, so that open pages keep working.

    It is made from the folder's path and a secret in your own state folder: a run folder from elsewhere cannot bring a token
    along. Where no secret can be kept, it is a new one each time.
    """
    try:
        secret = _secret(state_dir())
    except (OSError, RuntimeError):  # no home, or none that can be written
        return secrets.token_urlsafe(32)
    return hmac.new(secret, os.fsencode(run.resolve()), hashlib.sha256).hexdigest()[:43]


def _secret(folder: Path) -> bytes:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / NAME
    if os.path.lexists(file):
        facts = os.lstat(file)
        kept = file.read_bytes()
        if _is_ours(facts) and len(kept) >= 32:
            return kept
        file.unlink(missing_ok=True)  # others could read or write it, or it was cut short
    # Whole before it has its name: another review that starts now must not take an empty one for the secret.
    made = folder / f"{NAME}.{secrets.token_hex(8)}"
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS | NOFOLLOW, 0o600), "wb") as stream:
        stream.write(secrets.token_bytes(32))
    try:
        os.link(made, file)
    except FileExistsError:  # the other one was first
        return _secret(folder)
    except OSError:  # a file system without links: the later one counts
        made.replace(file)
    finally:
        made.unlink(missing_ok=True)
    return file.read_bytes()


def _is_ours(facts: os.stat_result) -> bool:
    """Can this user alone read and write it? On Windows, where modes don't tell, the user's own folder keeps others out."""
    return not hasattr(os, "getuid") or (facts.st_uid == os.getuid() and not facts.st_mode & 0o077)


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY = 2 * 2**20  # bytes of a request, at most
PATIENCE = 60.0  # seconds for all of them
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
DEFAULT_CACHE = ("cache-control", "no-store")


class Refused(Exception):
    """A request that is not let in: an HTTP status and a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Guard:
    """Wraps an app. `hosts` are the names it may be called by; "*" stands for every plain IP address."""

    def __init__(
        self, app: App, token: str, port: int, hosts: Iterable[str] = LOOPBACK, invitation: Invitation | None = None
    ) -> None:
        self.invitation = invitation
        self.app, self.token, self.hosts = app, token, {name.lower() for name in hosts}
        self.cookie = f"labelsieve-{port}"  # cookies do not tell ports apart, so the name does

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            fresh = self._check(scope, headers)
            connection = scope.get("state", {}).get("connection")  # there is none in tests without a server
            if connection is not None:
                connection.trust()
            body = await _body(headers, receive) if scope["method"] == "POST" else b""
        except Refused as refused:
            await _refuse(send, refused)
            return
        await self.app(scope, _replay(body), self._dressed(send, fresh))

    def _check(self, scope: Scope, headers: dict[str, str]) -> bool:
        """True where the token, or our own call of a browser, came in the address: then the cookie is set."""
        names = [name for name, _ in scope["headers"] if name.lower() == b"host"]
        host = headers.get("host", "").lower()
        if len(names) != 1 or not self._known(host):
            raise Refused(421, "this server is not called by that name; open the address that labelsieve printed")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            raise Refused(403, "the request comes from another site")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and scope["path"] != "/":
            raise Refused(403, "the request comes from another site")
        if scope["method"] == "POST" and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "only application/json is taken")
        if scope["path"] == "/" and scope["method"] == "GET" and self._let_in(scope):
            return True
        if not self._fits(_cookie(headers.get("cookie", ""), self.cookie)):
            raise Refused(401, "the token is missing or of another run; open the address that labelsieve printed")
        return False

    def _let_in(self, scope: Scope) -> bool:
        asked = parse_qs(scope["query_string"].decode("latin-1"))
        token, code = (asked.get(name, [""])[0] for name in ("token", "once"))
        if token and self._fits(token):
            return True
        peer = (scope.get("client") or ("", 0))[1]
        return bool(code) and self.invitation is not None and self.invitation.admits(code, peer)

    def _fits(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _known(self, host: str) -> bool:
        """Any port will do: names, not ports, are what DNS rebinding forges, and tunnels change ports."""
        found = HOST.fullmatch(host)
        name = "" if found is None else found[1] or found[2]
        return name in self.hosts or ("*" in self.hosts and _is_address(name))

    def _dressed(self, send: Send, fresh: bool) -> Send:
        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000" if fresh else None
                message["headers"] = _with(message.get("headers", []), cookie)
            await send(message)

        return dressed


def _with(headers: Iterable[tuple[bytes, bytes]], cookie: str | None) -> list[tuple[bytes, bytes]]:
    found = [*headers, *((name.encode(), value.encode()) for name, value in HEADERS.items())]
    if not any(name.lower() == b"cache-control" for name, _ in found):
        found.append((DEFAULT_CACHE[0].encode(), DEFAULT_CACHE[1].encode()))
    return found if cookie is None else [*found, (b"set-cookie", cookie.encode())]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _body(headers: dict[str, str], receive: Receive) -> bytes:
    """All of it, or a refusal as soon as it is too much or too slow; what was announced is not believed."""
    announced = headers.get("content-length", "0")
    if not announced.isdigit() or int(announced) > BODY:
        raise Refused(413, f"more than {BODY} bytes")
    try:
        async with asyncio.timeout(PATIENCE):
            return await _received(receive)
    except TimeoutError:
        raise Refused(408, f"not whole after {PATIENCE:g} seconds") from None


async def _received(receive: Receive) -> bytes:
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "cut short")
        found += message.get("body", b"")
        if len(found) > BODY:
            raise Refused(413, f"more than {BODY} bytes")
        if not message.get("more_body"):
            return bytes(found)


def _replay(body: bytes) -> Receive:
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _refuse(send: Send, refused: Refused) -> None:
    text = json.dumps({"error": refused.why}).encode()
    headers = _with([(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())], None)
    if refused.status in (408, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
