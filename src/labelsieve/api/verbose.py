"""Prints one plain line per epoch, so that a notebook shows how a fit is doing."""

from typing import Any


def shown(record: dict[str, Any], epochs: int) -> None:
    """Epoch, phase, loss, share of clean labels. No colours, no cursor: notebooks and logs keep what they are given."""
    from labelsieve.terminal.progress import said  # here, for it loads rich

    if record["phase"] != "final":
        print("  ".join(said(record, record["epoch"], epochs)), flush=True)
