"""The access token of a run's review: the same after a restart, so that open pages keep working.

It is made from the folder's path and a secret of this user, which lies in the user's own state folder and not in the run: a
run folder from elsewhere cannot bring a token along.
"""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from labelsieve.doors import FLAGS, NOFOLLOW

NAME = "review.secret"


def state_dir() -> Path:
    """XDG_STATE_HOME/labelsieve, else ~/.local/state/labelsieve."""
    named = os.environ.get("XDG_STATE_HOME")
    return (Path(named) if named else Path.home() / ".local" / "state") / "labelsieve"


def run_token(run: Path) -> str:
    """URL-safe, 43 characters. Where no secret can be kept, a new one each time."""
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
