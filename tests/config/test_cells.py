"""A preset with another method is that cell as the method's own authors ran it."""

import pytest

from labelsieve.config.presets import PRESETS
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.methods.registry import METHODS

CELLS = [(method, cell) for method in METHODS for cell in METHODS[method].cells]


def cell(method: str, named: str, *settings: str) -> Config:
    return resolve(f"{named.partition('-')[0]}:/data", named=named, options={"method": method}, settings=settings)


def test_a_cell_has_its_authors_settings() -> None:
    config = cell("ssr+", "cifar100-sym90")
    assert (config.training.epochs, config.training.schedule, config.training.lr_drop_factor) == (300, "cosine", 50)
    assert config.own == {"theta_r": 0.8, "neighbours": 200} and config.data.noise == "sym:0.9"
    assert cell("cpc", "cifar100-sym90").training.epochs == 450


def test_what_is_said_wins() -> None:
    config = cell("ssr+", "cifar100-sym90", "training.epochs=7", "ssr+.theta_r=0.7")
    assert config.training.epochs == 7 and config.own == {"theta_r": 0.7, "neighbours": 200}


def test_without_a_preset_it_is_the_cell_of_the_nearest_rate() -> None:
    low = resolve("cifar100:/data", options={"method": "ssr+", "data.noise": "sym:0.23"})
    high = resolve("cifar100:/data", options={"method": "ssr+", "data.noise": "sym:0.85"})
    assert (low.own["theta_r"], high.own["theta_r"]) == (0.9, 0.8) and low.training.epochs == high.training.epochs == 300
    assert resolve("digits", options={"method": "ssr+"}).training.epochs == 24


@pytest.mark.parametrize(("method", "named"), CELLS)
def test_every_cell_is_a_preset_and_holds(method: str, named: str) -> None:
    assert named in PRESETS
    config, wanted = cell(method, named), METHODS[method].cells[named]
    assert config.method == method and config.own == dict(wanted.own)
    assert wanted.published is None or 1 < wanted.published < 100
