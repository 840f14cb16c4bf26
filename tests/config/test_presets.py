"""Presets against the published settings, written out here once more and by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch

from labelsieve.config.method_settings import prototype_memory_for, settings_for
from labelsieve.config.presets import PRESETS, VARIANTS, crossed, crossed_keys, describe, preset, webvision
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.data.label_files import Noise, label_hash, save
from labelsieve.errors import UsageError
from labelsieve.methods import MIXTURES
from labelsieve.methods.parts.cleaners import PrototypeCleaner
from labelsieve.methods.registry import METHODS
from labelsieve.train.build import training_for

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
    assert prototype_memory_for(config) == 5  # ours
    assert (cleaning.tau, cleaning.alpha, cleaning.dim, cleaning.projector_depth, cleaning.cosine) == (0.5, 0, 128, 1, 0)
    rates, own = training_for(config), settings_for(config)
    assert rates.lr_at(224) == 0.02 and rates.lr_at(225) == pytest.approx(0.002)
    assert own.prototype_warmup == {0.05: 22, 0.10: 45}[cleaning.prototype_warmup]
    assert own.strong_views


@pytest.mark.parametrize("name", TABLE)
def test_naming_data_and_noise_gives_the_same_cell(name: str) -> None:
    source = f"{name.partition('-')[0]}:/data"
    assert resolve(source, options={"data.noise": TABLE[name][-1]}) == resolve(source, named=name)


def test_every_preset_is_resolved_and_described() -> None:
    assert set(TABLE) | {"digits", "fashion-mnist", "vectors", "clothing1m", "webvision"} == set(PRESETS)
    for name in PRESETS:
        assert resolve("digits", named=name).data.source == "digits"
        assert len(describe(name)) > 20
        assert not any("source" in key for key in PRESETS[name]())


# preset: epochs, lr, cleaner, tau, draw, entropy penalty, policy, which epoch is kept
WEB = {
    "clothing1m": (80, 0.002, "cpc-agn", 0.7, "balanced", True, "autoaugment-imagenet", "best-val"),
    "webvision": (100, 0.01, "cpc-awr", 0.5, "random", False, "none", "last"),
}


@pytest.mark.parametrize("name", WEB)
def test_a_web_set_has_the_published_settings(name: str) -> None:
    config = resolve(f"{name}:/data", named=name)
    training, cleaning = config.training, config.cleaning
    found = (training.epochs, training.lr, config.cleaner, cleaning.tau, training.epoch_draw, training.entropy_penalty)
    assert (*found, config.views.policy, config.output.model) == WEB[name]
    assert (config.method, config.network, config.data.noise) == ("cpc", "resnet50", "none")
    assert (training.epoch_batches, training.batch, training.warmup_batch, training.warmup) == (1000, 32, 64, 1)
    assert (training.momentum, training.weight_decay, training.beta, training.lambda_u) == (0.9, 1e-3, 0.5, 0)
    assert (training.train_unlabelled, cleaning.alpha, config.pictures.size, config.views.crop) == (False, 1, 256, 224)
    rates, own = training_for(config), settings_for(config)
    half = training.epochs // 2
    assert (rates.lr_at(half - 1), rates.lr_at(half)) == (training.lr, pytest.approx(training.lr / 10))
    assert own.prototype_warmup == {"clothing1m": 4, "webvision": 5}[name]
    assert resolve(f"{name}:/data") == config


def test_cells_are_crossed_with_cleaners_and_studies() -> None:
    base = resolve("cifar100:/data", named="cifar100-sym90")
    other = resolve("cifar100:/data", named="cifar100-sym90+cpc-agn+e15+tau0.6+alpha0.5")
    assert (base.cleaner, base.cleaning.prototype_warmup, base.cleaning.tau, base.cleaning.alpha) == ("cpc-awr", 0.1, 0.5, 0)
    assert (other.cleaner, other.cleaning.prototype_warmup, other.cleaning.tau, other.cleaning.alpha) == (
        "cpc-agn",
        0.15,
        0.6,
        0.5,
    )
    assert preset("webvision+no-gmm") == crossed(webvision(), cleaner="contrastive")
    for variant in VARIANTS:
        assert resolve("cifar100:/data", named=f"cifar100-sym90+{variant}").training.epochs == 450
    with pytest.raises(UsageError, match="have no past"):
        resolve("webvision:/data", named="webvision+memory5")
    with pytest.raises(UsageError, match="tau0.5"):
        preset("webvision+tau05x")


def test_only_cifar100_with_nine_of_ten_labels_wrong_is_judged_at_other_than_even_odds() -> None:
    odds = {name: preset(name).get("cleaning.prototype_prior", Config().cleaning.prototype_prior) for name in PRESETS}
    assert odds.pop("cifar100-sym90") == 0.03 and set(odds.values()) == {0.5}
    made = resolve("cifar100:/data", options={"data.noise": "sym:0.9"})  # the cell by its noise, without its name
    assert made.cleaning.prototype_prior == 0.03
    own = settings_for(resolve("cifar100:/data", named="cifar100-sym90+prior0.5"))
    assert PrototypeCleaner(**own.numbers).prior == 0.5  # as the paper has it
    for cleaner in ("gmm-agn", "gmm-awr", "contrastive", "no-gmm"):  # have no use for odds, by the preset or by --cleaner
        assert resolve("cifar100:/data", named=f"cifar100-sym90+{cleaner}").cleaning.prototype_prior == 0.5
        assert crossed_keys(f"cifar100-sym90+{cleaner}") == {"cleaner"}
    assert preset("cifar100-sym90+gmm-agn+cpc-awr") == preset("cifar100-sym90")  # the last word has it
    by_option = resolve("cifar100:/data", named="cifar100-sym90", options={"cleaner": "gmm-awr"})
    assert settings_for(by_option).cleaner in MIXTURES and settings_for(by_option).numbers == {}


@pytest.mark.parametrize(
    ("source", "settings", "memory"),
    [
        ("cifar10:/data", ["data.noise=sym:0.5"], 5),
        ("cifar100:/data", ["data.noise=sym:0.9", "training.epochs=120"], 5),
        ("cifar10:/data", ["data.noise=sym:0.5", "training.epochs=60"], 1),  # prototypes warm up for 3 epochs only
        ("cifar10:/data", ["data.noise=sym:0.5", "cleaning.prototype_memory=2"], 2),
        ("digits", [], 1),
        ("webvision:/data", [], 1),  # other rows each epoch
        ("pictures:/my/pictures", [], 1),  # as many epochs as it finds it needs
    ],
)
def test_prototypes_remember_where_they_warm_up_long_enough(source: str, settings: list[str], memory: int) -> None:
    assert PrototypeCleaner(**settings_for(resolve(source, settings=settings)).numbers).memory == memory


def test_options_win_over_presets_and_settings_over_options() -> None:
    config = resolve("digits", named="cifar10-sym90", options={"training.epochs": 5}, settings=["epochs=6", "lambda_u=1"])
    assert (config.training.epochs, config.training.lambda_u, config.training.warmup) == (6, 1, 10)


@pytest.mark.parametrize(("method", "strong"), [("ce", False), ("dividemix", False), ("augdmix", True)])
def test_other_methods_are_divided_by_one_mixture_unless_told_otherwise(method: str, strong: bool) -> None:
    config = resolve("cifar10:/data", named="cifar10-sym50", options={"method": method})
    assert config.cleaner == "gmm-agn"
    assert METHODS[method].varies is strong
    assert METHODS[method].warms_up is (method != "ce") and getattr(settings_for(config), "warmup", 10) == 10
    assert resolve("digits", options={"method": method, "cleaner": "gmm-awr"}).cleaner == "gmm-awr"


def test_what_is_crossed_in_is_told_apart_from_what_a_cell_has() -> None:
    assert preset("clothing1m+gmm-agn")["cleaning.tau"] == 0.7 and crossed_keys("clothing1m+gmm-agn") == {"cleaner"}
    assert crossed_keys("digits+gmm-agn+tau0.7+e10") == {"cleaner", "cleaning.tau", "cleaning.prototype_warmup"}
    assert crossed_keys("digits") == set()


@pytest.mark.parametrize("source", ["cifar10", "cifar100"])
@pytest.mark.parametrize("made", ["sym:0.9", "sym:0.2", "asym:0.4"])
def test_noise_from_a_runs_file_has_the_settings_it_was_made_with(tmp_path: Path, source: str, made: str) -> None:
    labels = torch.arange(10)
    save(tmp_path / "noise.npz", Noise(labels, made, 0, labels < 0, label_hash(labels)), labels)
    again = f"file:{tmp_path / 'noise.npz'}"
    save(tmp_path / "again.npz", Noise(labels, again, 0, labels < 0, label_hash(labels)), labels)
    first = resolve(f"{source}:/data", options={"data.noise": made})
    for file in (again, f"file:{tmp_path / 'again.npz'}"):
        config = resolve(f"{source}:/data", options={"data.noise": file})
        assert (config.training, config.cleaning, config.cleaner) == (first.training, first.cleaning, first.cleaner)


def test_noise_files_of_others_and_missing_ones_are_no_error_here(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text("[0, 1]")
    np.savez(tmp_path / "labels.npz", labels=np.arange(3))
    for name in ("labels.json", "labels.npz", "none.npz"):
        assert resolve("cifar10:/data", options={"data.noise": f"file:{tmp_path / name}"}).training.lambda_u == 25


def test_a_rate_is_read_however_it_is_written() -> None:
    plain, short = (resolve("cifar10:/data", options={"data.noise": f"sym:{rate}"}) for rate in ("0.9", "9e-1"))
    assert (plain.training, plain.cleaning) == (short.training, short.cleaning)


@pytest.mark.parametrize(("noise", "penalty"), [("asym:0.4", True), ("sym:0.4", False)])
@pytest.mark.parametrize("source", ["cifar10", "cifar100"])
def test_asymmetric_noise_warms_up_with_the_entropy(source: str, noise: str, penalty: bool) -> None:
    assert resolve(f"{source}:/data", options={"data.noise": noise}).training.entropy_penalty is penalty
