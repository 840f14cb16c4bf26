"""A run says when it should not be trusted: each caution on findings made by hand, none where all is well."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from labelsieve.issues.estimate import Chances
from labelsieve.runs.cautions import cautions
from labelsieve.runs.config import Config, override
from labelsieve.runs.findings import Findings, Record


def findings(counts: tuple[int, ...] = (300, 300), wrong: float = 0.1, opinions: tuple[float, ...] = (0.1,)) -> Findings:
    given = np.repeat(np.arange(len(counts)), counts)
    count = len(given)
    chances = Chances(np.full(count, wrong), np.stack([np.full(count, opinion) for opinion in opinions]))
    zeros = np.zeros(count)
    names = [f"class {k}" for k in range(len(counts))]
    return Findings({}, names, np.arange(count), given, given, 1 - zeros, zeros > 0, zeros, chances, None, zeros > 0)


def record(epochs: int = 20, accuracy: float = 90.0, **last: Any) -> Record:
    lines = [{"epoch": epoch + 1, "accuracy": {"both": accuracy}} for epoch in range(epochs)]
    return Record(override(Config(), {"training.epochs": 20}), {}, [*lines[:-1], lines[-1] | last], 1.0, None, ())


@pytest.mark.parametrize(
    ("found", "run", "words"),
    [
        (findings((60, 60)), record(), "Only 120 labels"),
        (findings((600, 6)), record(), 'Under 20 samples of "class 1" (6)'),
        (findings(opinions=(0.05, 0.5)), record(), "is uncertain"),
        (findings(wrong=0.8, opinions=(0.8,)), record(), "Most labels look wrong"),
        (findings(), record(12), "Stopped after 12 of 20 epochs"),
        (findings(), record(accuracy=60.0), "hardly more than by guessing"),
        (findings(), record(notes=["network 1: the partition collapsed: class 0 swallows the rest"]), "Do not use this list"),
    ],
)
def test_each_reason_for_doubt_is_said_alone(found: Findings, run: Record, words: str) -> None:
    said = cautions(found, run)
    assert len(said) == 1 and words in said[0]


def test_nothing_is_said_where_nothing_is_amiss() -> None:
    assert cautions(findings(), record()) == []
    early = record(notes=["network 1: the partition collapsed: class 0 swallows the rest"])
    recovered = replace(early, metrics=[early.metrics[-1], *record().metrics])
    assert cautions(findings(), recovered) == []


def test_many_small_classes_are_counted() -> None:
    said = cautions(findings((10,) * 60), record())
    assert len(said) == 1 and "and 55 more" in said[0]
