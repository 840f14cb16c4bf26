"""Presets against the published settings, written out here once more and by hand."""

import pytest

from labelsieve.runs.assemble import recipe_for
from labelsieve.runs.presets import PRESETS, describe
from labelsieve.runs.resolve import resolve

# preset: lambda_u, warm-up, mixture threshold, memory, e as a share, cleaner, entropy penalty, noise
TABLE = {
    "cifar10-sym20": (0, 10, 0.5, 1, 0.05, "cpc-awr", False, "sym:0.2"),
    "cifar10-sym50": (25, 10, 0.5, 1, 0.05, "cpc-awr", False, "sym:0.5"),
    "cifar10-sym80": (25, 10, 0.5, 1, 0.05, "cpc-awr", False, "sym:0.8"),
    "cifar10-sym90": (50, 10, 0.6, 5, 0.05, "cpc-awr", False, "sym:0.9"),
    "cifar10-asym40": (0, 10, 0.5, 1, 0.05, "cpc-agn", True, "asym:0.4"),
    "cifar100-sym20": (25, 30, 0.5, 1, 0.05, "cpc-awr", False, "sym:0.2"),
    "cifar100-sym50": (150, 30, 0.5, 1, 0.05, "cpc-awr", False, "sym:0.5"),
    "cifar100-sym80": (150, 30, 0.5, 1, 0.10, "cpc-awr", False, "sym:0.8"),
    "cifar100-sym90": (150, 30, 0.6, 5, 0.10, "cpc-awr", False, "sym:0.9"),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_benchmark_cell_has_the_published_settings(name: str) -> None:
    config = resolve(f"{name.partition('-')[0]}:/data", named=name)
    training, cleaning = config.training, config.cleaning
    found = (
        training.lambda_u,
        training.warmup,
        cleaning.mixture_threshold,
        cleaning.mixture_memory,
        cleaning.prototype_warmup,
        config.cleaner,
        training.entropy_penalty,
        config.data.noise,
    )
    assert found == TABLE[name]
    assert (config.method, config.network) == ("cpc", "preact-resnet18")
    assert (training.epochs, training.batch, training.warmup_batch) == (450, 128, 128)
    assert (training.lr, training.momentum, training.weight_decay) == (0.02, 0.9, 5e-4)
    assert (training.beta, training.temperature, training.ramp_epochs) == (4, 0.5, 16)
    assert (training.prior, training.prior_weight, training.train_unlabelled) == ("uniform", 1, True)
    assert (cleaning.tau, cleaning.alpha, cleaning.dim, cleaning.projector_depth, cleaning.cosine) == (0.5, 0, 128, 1, 0)
    recipe = recipe_for(config)
    assert recipe.lr_at(224) == 0.02 and recipe.lr_at(225) == pytest.approx(0.002)
    assert recipe.prototype_warmup == {0.05: 22, 0.10: 45}[cleaning.prototype_warmup]
    assert recipe.strong_views


@pytest.mark.parametrize("name", TABLE)
def test_naming_data_and_noise_gives_the_same_cell(name: str) -> None:
    source = f"{name.partition('-')[0]}:/data"
    assert resolve(source, options={"data.noise": TABLE[name][-1]}) == resolve(source, named=name)


def test_every_preset_is_resolved_and_described() -> None:
    assert set(TABLE) | {"digits", "fashion-mnist", "vectors"} == set(PRESETS)
    for name in PRESETS:
        assert resolve("digits", named=name).data.source == "digits"
        assert len(describe(name)) > 20
        assert not any("source" in key for key in PRESETS[name]())


def test_options_win_over_presets_and_settings_over_options() -> None:
    config = resolve("digits", named="cifar10-sym90", options={"training.epochs": 5}, settings=["epochs=6", "lambda_u=1"])
    assert (config.training.epochs, config.training.lambda_u, config.training.warmup) == (6, 1, 10)


@pytest.mark.parametrize(("method", "strong"), [("ce", True), ("dividemix", False), ("augdmix", True)])
def test_other_methods_are_divided_by_one_mixture_unless_told_otherwise(method: str, strong: bool) -> None:
    config = resolve("cifar10:/data", named="cifar10-sym50", options={"method": method})
    assert config.cleaner == "gmm-agn"
    assert recipe_for(config).strong_views is strong
    assert recipe_for(config).warmup == (450 if method == "ce" else 10)
    assert resolve("digits", options={"method": method, "cleaner": "gmm-awr"}).cleaner == "gmm-awr"
