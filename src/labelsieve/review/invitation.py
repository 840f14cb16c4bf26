"""Who may open a review: the run's access token, and the address with which we open the browser.

Every user of a machine sees what programs are called with. So that address holds no token, which is good forever, but a secret
that lets this user in, once.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

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
