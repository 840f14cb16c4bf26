"""The profile of a large step, in its smallest form: every part is timed, and the verdict follows from the parts."""

from dataclasses import replace

import pytest

from labelsieve.benchmark.large import Profile, mapped_rows, profile
from labelsieve.config.presets import clothing1m
from labelsieve.config.schema import Config, override

SMALLEST = {
    "device": "cpu",
    "network": "small",
    "engine.pictures": "host",
    "engine.threads": 1,
    "engine.eval_batch": 8,
    "pictures.size": 12,
    "views.crop": 8,
    "training.batch": 4,
}


def test_every_part_of_a_step_is_timed() -> None:
    said: list[str] = []
    with mapped_rows(20, 5, 12) as rows:
        assert rows.data.shape == (3, 12, 12) and not rows.data.images.is_pinned()
        found = profile(override(Config(), clothing1m() | SMALLEST), rows, 2, said.append, repeats=1)
    assert min(found.step_ms, found.views_ms, found.fetch_ms, found.together_ms, found.gathered_per_s) > 0
    assert found.data_ms == found.views_ms + found.fetch_ms and len(said) == 2
    assert (found.device, found.network) == ("cpu", "small")


@pytest.mark.parametrize(("together", "waiting", "waits"), [(50, 0, False), (54, 0, False), (56, 1, False), (65, 10, True)])
def test_a_step_waits_when_it_takes_longer_than_its_own_work(together: float, waiting: float, waits: bool) -> None:
    found = replace(Profile("gpu", "resnet50", 50, 5, 10, 0, 1), together_ms=together)
    assert (found.waiting_ms, found.waits) == (waiting, waits)
    assert replace(found, together_ms=200).waiting_ms == 10, "what fetching cannot explain is something else"
