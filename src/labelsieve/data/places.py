"""Turns places as users name them into absolute paths, so that a run can be resumed from any folder."""

from pathlib import Path


def whole_path(place: Path | str) -> str:
    return str(Path(place).expanduser().absolute())


def whole_spec(spec: str) -> str:
    """`name:PATH` with its path made whole; a name alone stays as it is."""
    name, colon, path = spec.partition(":")
    return f"{name}:{whole_path(path)}" if colon and path else spec
