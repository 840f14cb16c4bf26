"""The process of `labelsieve review`: serves a run folder at an address until it is stopped; strangers may hold little of it."""

import asyncio
import errno
import ipaddress
import logging
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from labelsieve.decisions.incoming import flaws
from labelsieve.errors import ToolError, UsageError
from labelsieve.review.guard import LOOPBACK, Invitation
from labelsieve.review.opening import Review
from labelsieve.review.server import review_app

PATIENCE = 10.0  # seconds for a whole head; a stranger's first request must have the token by then
MOST = 512  # connections, where the system allows as many
STRANGER, IDLE, BUSY = range(3)


class Connections:
    """Those that are open, oldest first; at most half of the `files` that the process may have open."""

    def __init__(self, files: int) -> None:
        self.most = max(4, min(MOST, files // 2))
        self.most_of_one = self.most // 2  # of one address
        # asyncio counts what it accepts in one go only afterwards, and it may do so a few times in a row.
        self.at_once = max(1, self.most // 16)
        self._open: dict[Connection, None] = {}

    def enter(self, new: "Connection") -> None:
        self._open[new] = None
        own = [one for one in self._open if one.address == new.address]
        if len(own) > self.most_of_one:
            self._make_room(own, new)
        elif len(self._open) > self.most:
            self._make_room(list(self._open), new)

    def leave(self, gone: "Connection") -> None:
        self._open.pop(gone, None)

    def _make_room(self, among: list["Connection"], new: "Connection") -> None:
        least = min((one for one in among if one is not new), key=lambda one: one.rank)
        chosen = new if least.rank == BUSY else least
        self.leave(chosen)
        chosen.transport.abort()


class Connection(H11Protocol):
    """One connection. It is a stranger's until a request on it has shown the token, and then a reviewer's."""

    def __init__(
        self,
        all_open: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        # The app finds this connection in the state of each request, to say that the token was shown.
        super().__init__(config, server_state, app_state | {"connection": self}, _loop)
        self._all, self._trusted = all_open, False
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def rank(self) -> int:
        """How much it would be missed."""
        return STRANGER if not self._trusted else IDLE if self._awaits_head else BUSY

    def trust(self) -> None:
        self._trusted = True
        self._stop_clock()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_clock()
        self._all.enter(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._awaits_head:
            self._start_clock()
        elif self._trusted:
            self._stop_clock()

    def send_400_response(self, msg: str) -> None:
        """Of a body that is not HTTP. Its head may be answered already, and what answers it then finds nobody any more."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.close()
                return
        super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._all.leave(self)
        super().connection_lost(exc)

    @property
    def _awaits_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _start_clock(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(PATIENCE, self.transport.abort)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


SPAN = 60.0  # seconds
ALIKE = 40  # characters by which two lines are of one kind


class Sparing(logging.Filter):
    """Lets the first line of each kind pass, then one a minute that says how many were like it."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[object, tuple[float, int]] = {}  # of a kind: when it was last said, how many were left out since

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[0] if record.exc_info else None
        kind, now = (str(record.msg)[:ALIKE], error), time.monotonic()
        when, left_out = self._said.get(kind, (now - SPAN, 0))
        if now - when < SPAN:
            self._said[kind] = when, left_out + 1
            return False
        self._said[kind] = now, 0
        if left_out:
            record.msg = f"{record.msg} (and {left_out:,} more like it before)"
        return True


PORT = 8765
WAITING = 512  # connections that the system holds for us until we accept them
LOGS = ("asyncio", "uvicorn.error")  # whose lines strangers can cause
TRIES = 20  # ports after it that are tried when nobody named one


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens, so that the address can be printed and is sure to answer."""
    wanted = range(PORT, PORT + TRIES) if port is None else [port]
    problem: OSError | None = None
    for one in wanted:
        try:
            return _bound(host, one)
        except OSError as error:
            problem = error
            if error.errno != errno.EADDRINUSE:
                break
    raise ToolError(
        f"{host}:{port or PORT}: cannot listen there ({getattr(problem, 'strerror', None) or problem}); "
        f"choose another --port or --host"
    )


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(WAITING)
    except OSError:
        found.close()
        raise
    return found


def names_for(host: str) -> tuple[str, ...]:
    """What the server may be called by. On all addresses: by any plain address, and by this machine's own name."""
    try:
        everywhere = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        everywhere = False
    return (*LOOPBACK, host, "*", socket.gethostname()) if everywhere else (*LOOPBACK, host)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address(host: str, port: int, token: str, word: str = "token") -> str:
    """Where the page is, with the token, or with what else the query calls `word`."""
    try:
        found = ipaddress.ip_address(host)
        host = "127.0.0.1" if found.is_unspecified else f"[{host}]" if found.version == 6 else host
    except ValueError:
        pass
    return f"http://{host}:{port}/?{word}={token}"


def open_files() -> int:
    """How many this process may have open, connections among them."""
    try:
        import resource
    except ImportError:  # Windows
        return 512
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def serve(
    review: Review,
    listener: socket.socket,
    token: str,
    who: str,
    host: str,
    invitation: Invitation,
    ready: Callable[[], None],
) -> None:
    """Answer until SIGINT or SIGTERM; `ready` is called once the server answers."""
    if wrong := flaws(who=who):
        raise UsageError(f"--reviewer: {wrong[0]}")
    app = review_app(review, token, listener.getsockname()[1], who.strip(), names_for(host), invitation)
    connections = Connections(open_files())
    config = uvicorn.Config(
        app,
        http=partial(Connection, connections),  # type: ignore[arg-type]
        backlog=connections.at_once,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        proxy_headers=False,
        lifespan="off",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = uvicorn.Server(config)
    started = server.startup

    async def startup(sockets: list[socket.socket] | None = None) -> None:
        await started(sockets)
        listener.listen(WAITING)  # uvicorn has one number for this and for how many are accepted at once
        ready()

    server.startup = startup  # type: ignore[method-assign]
    for name in LOGS:
        logging.getLogger(name).addFilter(Sparing())
    try:
        server.run(sockets=[listener])
    finally:
        review.pictures.stop()
