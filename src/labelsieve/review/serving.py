"""The process of `labelsieve review`: serves a run folder at an address until it is stopped."""

import errno
import ipaddress
import logging
import socket
import time
from collections.abc import Callable
from functools import partial

import uvicorn

from labelsieve.decisions.incoming import flaws
from labelsieve.errors import ToolError, UsageError
from labelsieve.review.connections import Connection, Connections
from labelsieve.review.guard import LOOPBACK
from labelsieve.review.invitation import Invitation
from labelsieve.review.opening import Review
from labelsieve.review.server import review_app

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
WAITING = 512  # connections that the system holds for us until they are taken up
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
        listener.listen(WAITING)  # uvicorn has one number for this and for how many are taken up in one go
        ready()

    server.startup = startup  # type: ignore[method-assign]
    for name in LOGS:
        logging.getLogger(name).addFilter(Sparing())
    try:
        server.run(sockets=[listener])
    finally:
        review.pictures.stop()
