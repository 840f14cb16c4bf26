"""A setting's declaration: its default, its one-line meaning, and what values it takes."""

from dataclasses import dataclass

import pytest

from labelsieve.config.setting import check, rules, setting
from labelsieve.errors import UsageError


@dataclass(frozen=True)
class Section:
    lr: float = setting(0.02, "learning rate", low=1e-9, high=1e3)
    batch: int = setting(128, "samples per step", low=2, zero_is_open=True)
    teacher: str = setting("peer", "whose mixture teaches", choices=("peer", "own"))
    prior: str = setting("uniform", "what the penalty pulls towards", choices=("uniform", "file:FILE"))
    passes: int = setting(1, "forward passes", choices=(1, 2, 4))
    limit: int | None = setting(None, "samples at most", low=2)


def test_defaults_and_meanings_come_from_the_declaration() -> None:
    assert Section().lr == 0.02 and Section(lr=1.0).lr == 1.0
    assert {name: rule.meaning for name, rule in rules(Section)}["batch"] == "samples per step"
    check(Section(batch=0, limit=None, prior="file:here", passes=4), "training.")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"lr": 0.0}, 'setting "training.lr" is 0; it must be between 1e-09 and 1000'),
        ({"lr": float("nan")}, 'setting "training.lr" is nan'),
        ({"batch": 1}, 'setting "training.batch" is 1; it must be at least 2'),
        ({"teacher": "pere"}, 'training.teacher "pere" is not known .did you mean "peer"'),
        ({"prior": "file:"}, 'training.prior "file:" is not known'),
        ({"passes": 3}, 'setting "training.passes" is 3; it must be 1, 2 or 4'),
        ({"limit": 1}, "it must be at least 2"),
    ],
)
def test_a_value_out_of_range_names_the_setting_and_what_it_may_be(wrong: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(Section(**wrong), "training.")
