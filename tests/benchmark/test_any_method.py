"""`bench --method`: what networks see is counted, and an epoch leaves engine and networks as fast as they were."""

import pytest

from labelsieve.benchmark.speed import counted, made_rows, measure_method
from labelsieve.config.presets import cifar10_sym
from labelsieve.config.schema import Config, override
from labelsieve.train.build import parts_for

SMALL = {"device": "cpu", "network": "small", "training.batch": 8, "training.warmup_batch": 8, "training.epochs": 4}


def small(method: str) -> Config:
    return override(Config(), cifar10_sym(0.5) | SMALL | {"method": method, "engine.threads": 1})


@pytest.mark.parametrize(("method", "trained", "looked"), [("ssr+", 3, 2), ("ssr", 2, 3), ("ncr", 1, 0), ("gjs", 2, 0)])
def test_views_are_counted(method: str, trained: int, looked: int) -> None:
    parts = parts_for(small(method), made_rows(64, 2, (3, 8, 8)))
    see = parts.method.nets[0].see
    assert counted(parts) == {True: 64 * trained, **({False: 64 * looked} if looked else {})}
    assert parts.method.nets[0].see is see and "prepare" not in vars(parts.engine)


def test_an_epoch_is_timed_against_the_networks_limit() -> None:
    said: list[str] = []
    found = measure_method(small("ssr+"), made_rows(64, 2, (3, 8, 8)), said.append, repeats=1)
    ideal = 192 / found.ceiling["trained"] + 128 / found.ceiling["inferred"]
    assert found.engine_fraction == pytest.approx(ideal / found.epoch_s)
    assert found.parts_s["200 nearest of all"] > 0 and said[-1].startswith("ssr+ epoch:")
