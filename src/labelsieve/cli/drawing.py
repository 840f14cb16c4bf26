"""What `reproduce figures` does: finds runs in the folders it is given, draws what they keep, says where and what is missing."""

from collections.abc import Sequence
from pathlib import Path

from labelsieve.errors import UsageError


def draw(paths: Sequence[Path], out: Path | None) -> None:
    raise UsageError(f"{paths} {out}")
