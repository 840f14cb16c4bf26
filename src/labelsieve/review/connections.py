"""Connections to the review server: bounded in number, and closed early on whoever does not show the token.

A stranger who opens connections and says little on them must not lock the page's owner out, though both may come from one
address. So the connection that is missed least makes room for a new one: the oldest stranger's, then the oldest idle one.
"""

import asyncio
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

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
