"""What a configuration leaves open, and what the data make of it: networks and batches by rule, in words, kept on a resume."""

import pytest

from labelsieve.nets import NETWORKS
from labelsieve.nets.choice import choose_network
from labelsieve.runs.config import Config, override
from labelsieve.runs.fitting import batch_for, eval_batch_for, fitted, network_for
from labelsieve.runs.resolve import resolve


@pytest.mark.parametrize(
    ("size", "samples", "cuda", "name"),
    [
        (8, 500, False, "small"),
        (64, 19_999, False, "small"),
        (64, 20_000, False, "small-wide"),
        (65, 500, False, "resnet18"),
        (224, 10**6, False, "resnet18"),
        (15, 500, True, "small-wide"),
        (16, 500, True, "preact-resnet18"),
        (63, 10**6, True, "preact-resnet18"),
        (64, 500, True, "resnet18"),
        (160, 99_999, True, "resnet18"),
        (160, 100_000, True, "resnet50"),
    ],
)
def test_the_network_follows_from_size_number_and_device(size: int, samples: int, cuda: bool, name: str) -> None:
    choice = choose_network(size, samples, cuda)
    assert choice.name == name and name in NETWORKS and choice.why


def test_vectors_get_a_network_of_their_own() -> None:
    assert network_for((512,), 100, False).name == "mlp"


@pytest.mark.parametrize(
    ("side", "samples", "batch"),
    [
        (28, 10**6, 128),
        (28, 6400, 128),
        (28, 6399, 64),
        (28, 2000, 32),
        (28, 200, 8),
        (28, 5, 5),
        (64, 10**6, 64),
        (128, 10**6, 32),
        (224, 200, 8),
    ],
)
def test_batches_follow_from_size_and_number(side: int, samples: int, batch: int) -> None:
    assert batch_for((3, side, side), samples) == batch


def test_large_pictures_are_looked_at_in_small_batches() -> None:
    assert [eval_batch_for((3, side, side)) for side in (8, 64, 128, 224, 1024)] == [512, 512, 128, 41, 16]


def test_what_is_open_is_settled_and_said_and_the_rest_stays() -> None:
    config = resolve("pictures:/nowhere")
    assert (config.network, config.training.batch, config.training.warmup_batch, config.engine.eval_batch) == ("auto", 0, 0, 0)
    found, said = fitted(config, (3, 96, 96), 400, cuda=False)
    assert (found.network, found.training.batch, found.training.warmup_batch) == ("resnet18", 8, 8)
    assert any("resnet18" in line and "--network" in line for line in said) and any("batch: 8" in line for line in said)
    assert fitted(found, (3, 96, 96), 400, cuda=False) == (found, ())
    chosen = override(config, {"network": "small", "training.batch": 64})
    kept, _ = fitted(chosen, (3, 96, 96), 400, cuda=False)
    assert (kept.network, kept.training.batch, kept.training.warmup_batch) == ("small", 64, 8)


def test_named_data_sets_leave_nothing_open() -> None:
    for source in ("digits", "fashion-mnist", "cifar10:/x", "cifar100:/x"):
        config = resolve(source)
        assert fitted(config, (3, 32, 32), 50_000, cuda=False) == (config, ())
        assert config.training.prior == "uniform"


@pytest.mark.parametrize(("epochs", "warmup"), [(60, 8), (24, 8), (12, 4), (6, 2), (2, 1), (1, 1)])
def test_short_runs_on_own_data_warm_up_for_a_third(epochs: int, warmup: int) -> None:
    assert resolve("pictures:/x", options={"training.epochs": epochs}).training.warmup == warmup
    told = resolve("pictures:/x", options={"training.epochs": epochs}, settings=["training.warmup=5"])
    assert told.training.warmup == 5


def test_weights_that_have_learnt_are_changed_slowly() -> None:
    assert resolve("pictures:/x", options={"pretrained": "/w.pt"}).training.lr == pytest.approx(0.002)
    assert resolve("pictures:/x", options={"pretrained": "/w.pt"}, settings=["training.lr=0.5"]).training.lr == 0.5
    assert Config().pretrained is None
