"""The address with which we open the browser: its secret lets one visitor in, once, and goes to this user only.

Every user of a machine sees what programs are called with, so the token, which holds for good, must not be among it.
"""

import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


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
