"""What a configuration leaves open, and what the data make of it: networks and batches by rule, in words, kept on a resume."""

import pytest

from labelsieve.config.fitting import batch_for, choose_network, eval_batch_for, fitted, network_for
from labelsieve.config.method_settings import settings_for
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config, from_yaml, override, to_yaml
from labelsieve.nets import NETWORKS


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


def mixing(config: Config) -> tuple[float | None, str]:
    return config.training.beta, config.views.policy


LITTLE, PUBLISHED = (0.5, "none"), (4.0, "auto")


@pytest.mark.parametrize(
    ("side", "samples", "cuda", "told", "expected"),
    [
        (32, 1500, False, [], LITTLE),  # small, by rule
        (32, 1500, True, ["network=small"], LITTLE),
        (16, 200, False, [], LITTLE),
        (15, 1500, False, [], PUBLISHED),  # weak views would not even shift it
        (32, 1500, True, [], PUBLISHED),
        (32, 20_000, False, [], PUBLISHED),  # small-wide: not measured
        (96, 1500, False, [], PUBLISHED),
        (32, 1500, False, ["network=preact-resnet18"], PUBLISHED),
        (32, 1500, False, ["training.beta=4", "views.policy=auto"], PUBLISHED),
        (32, 1500, False, ["training.beta=4"], (4.0, "none")),
        (32, 1500, False, ["views.policy=upright"], (0.5, "upright")),
        (96, 1500, False, ["training.beta=0.5", "views.policy=none"], LITTLE),
        (32, 1500, False, ["method=augdmix"], PUBLISHED),  # a baseline is what its paper says
    ],
)
def test_how_own_pictures_are_mixed_follows_from_network_and_size(
    side: int, samples: int, cuda: bool, told: list[str], expected: tuple[float, str]
) -> None:
    found, _ = fitted(resolve("pictures:/x", settings=told), (3, side, side), samples, cuda)
    assert mixing(found) == expected
    assert from_yaml(to_yaml(found), "here") == found and fitted(found, (3, side, side), samples, cuda) == (found, ())
    own = settings_for(found)
    assert (own.beta, own.strong_views) == (expected[0], expected[1] != "none")


def test_mixing_left_open_survives_yaml_and_is_settled_when_the_run_begins() -> None:
    config = resolve("pictures:/x")
    assert mixing(config) == (None, "by-network")
    again = from_yaml(to_yaml(config), "here")
    assert again == config and mixing(fitted(again, (3, 32, 32), 1500, cuda=False)[0]) == LITTLE
    assert mixing(from_yaml("network: small\ntraining: {epochs: 7}", "here")) == PUBLISHED, "runs from before stay as they were"


@pytest.mark.parametrize(
    ("told", "words", "silent"),
    [
        ([], ("Beta(0.5, 0.5)", "weak views", "--set training.beta=4", "--set views.policy=auto"), ()),
        (["training.beta=1"], ("weak views", "--set views.policy=auto"), ("Beta",)),
        (["views.policy=auto"], ("Beta(0.5, 0.5)", "--set training.beta=4"), ("weak",)),
    ],
)
def test_little_mixing_is_said_where_it_was_chosen(told: list[str], words: tuple[str, ...], silent: tuple[str, ...]) -> None:
    _, said = fitted(resolve("pictures:/x", settings=told), (3, 32, 32), 1500, cuda=False)
    (line,) = [line for line in said if line.startswith("mixing:")]
    assert all(word in line for word in words) and not any(word in line for word in silent)


@pytest.mark.parametrize(
    ("told", "samples"),
    [
        (["training.beta=4", "views.policy=auto"], 1500),
        (["network=small-wide"], 1500),
        (["method=ce"], 1500),
        (["training.quick=true"], 15_000),  # plain epochs only
    ],
)
def test_nothing_is_said_of_mixing_where_nothing_was_chosen(told: list[str], samples: int) -> None:
    _, said = fitted(resolve("pictures:/x", settings=told), (3, 32, 32), samples, cuda=False)
    assert not [line for line in said if line.startswith("mixing:")]


@pytest.mark.parametrize("name", ["digits", "cifar10-sym50", "cifar100-sym90", "vectors"])
def test_a_preset_mixes_own_pictures_as_it_always_did(name: str) -> None:
    config = resolve("pictures:/x", named=name, settings=["network=small"])
    assert mixing(config) == mixing(fitted(config, (3, 32, 32), 1500, cuda=False)[0]) == PUBLISHED


def test_presets_that_speak_of_mixing_are_heard() -> None:
    assert mixing(resolve("pictures:/x", named="fashion-mnist")) == LITTLE
    assert mixing(resolve("pictures:/x", named="webvision")) == LITTLE
    assert mixing(resolve("pictures:/x", named="clothing1m")) == (0.5, "autoaugment-imagenet")
    assert mixing(resolve("fashion-mnist", named="digits")) == LITTLE, "of the data set, where the preset says nothing"


def test_vectors_are_mixed_as_before() -> None:
    config = resolve("embeddings:/x")
    assert mixing(config) == mixing(fitted(config, (512,), 1500, cuda=False)[0]) == PUBLISHED


def test_named_data_sets_leave_nothing_open() -> None:
    for source in ("digits", "fashion-mnist", "cifar10:/x", "cifar100:/x"):
        config = resolve(source)
        assert fitted(config, (3, 32, 32), 50_000, cuda=False) == (config, ())
        assert config.training.prior == "uniform"
        assert mixing(config) == (LITTLE if source == "fashion-mnist" else PUBLISHED)


@pytest.mark.parametrize(("epochs", "warmup"), [(60, 8), (24, 8), (12, 4), (6, 2), (2, 1), (1, 1)])
def test_short_runs_on_own_data_warm_up_for_a_third(epochs: int, warmup: int) -> None:
    assert resolve("pictures:/x", options={"training.epochs": epochs}).training.warmup == warmup
    told = resolve("pictures:/x", options={"training.epochs": epochs}, settings=["training.warmup=5"])
    assert told.training.warmup == 5


def test_weights_that_have_learnt_are_changed_slowly() -> None:
    assert resolve("pictures:/x", options={"pretrained": "/w.pt"}).training.lr == pytest.approx(0.002)
    assert resolve("pictures:/x", options={"pretrained": "/w.pt"}, settings=["training.lr=0.5"]).training.lr == 0.5
    assert Config().pretrained is None
