"""Decisions made for tests."""

from typing import Any

from labelsieve.decisions.decision import LABELLING, Decision


def decision(key: str, name: str = "a", action: str = "keep", label: str | None = "cat", **more: Any) -> Decision:
    told = {"who": "ada", "when": "2026-11-15T10:00:00+00:00", "score": 0.25} | more
    return Decision(key=key, id=name, action=action, label=label if action in LABELLING else None, **told)
