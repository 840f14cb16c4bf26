"""Configurations: every key can be set, written and read back; what is wrong is named, with the nearest right thing."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from labelsieve.config.resolve import PLACES, given_by, parse_settings, resolve, unheeded, validate
from labelsieve.config.schema import Config, coerce, dotted_keys, from_yaml, full_key, override, rules_by_key, to_yaml, value_at
from labelsieve.data.augment.strong import POLICY_NAMES
from labelsieve.decisions.decision import ON_CONFLICT
from labelsieve.engine.device import PLACES as PLACES_OF_PICTURES
from labelsieve.engine.fast import PRECISIONS
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods import CLEANERS
from labelsieve.methods.parts.batchnorm import PASSES

KEYS = dotted_keys()


def another(key: str) -> tuple[str, Any]:
    """A value other than the default, as text and as what it should become."""
    hint, default = KEYS[key], value_at(Config(), key)
    kind = next((option for option in get_args(hint) if option is not type(None)), hint)
    if kind is bool:
        return str(not default).lower(), not default
    if key in PLACES:
        return "something else", str(Path("something else").absolute())
    if kind is str:
        return "something else", "something else"
    if kind == tuple[str, ...]:
        return "cat, the dog", ("cat", "the dog")
    number = kind((default or 0) + 3)
    return str(number), number


@pytest.mark.parametrize("key", KEYS)
def test_every_key_can_be_set_and_comes_back_from_yaml(key: str) -> None:
    if key == "version":
        return
    text, value = another(key)
    config = override(Config(), given_by(None, [f"{key}={text}"]))
    assert value_at(config, key) == value and type(value_at(config, key)) is type(value)
    assert [other for other in KEYS if value_at(config, other) != value_at(Config(), other)] == [key]
    assert from_yaml(to_yaml(config), "here") == config


def test_optional_keys_can_be_unset() -> None:
    optional = [key for key, hint in KEYS.items() if type(None) in get_args(hint)]
    assert {"data.limit", "data.noise_seed", "cleaning.prototype_lr", "engine.compile", "engine.capture"} <= set(optional)
    assert {"pretrained", "data.trusted", "pictures.classes", "pictures.size", "pictures.val"} <= set(optional)
    for key in optional:
        config = override(override(Config(), {key: "1"}), {key: "none"})
        assert value_at(config, key) is None


def test_lists_of_names_keep_commas_in_yaml_and_refuse_numbers() -> None:
    config = override(Config(), {"pictures.classes": ["a, b", "c"]})
    assert config.pictures.classes == ("a, b", "c") and from_yaml(to_yaml(config), "here") == config
    with pytest.raises(UsageError, match="a list of names or none"):
        override(Config(), {"pictures.classes": [1, 2]})


@pytest.mark.parametrize("text", ["a: b", "Gänse & 雪", "x\ny", "'\"", "1e5", "no", "~", ""])
def test_awkward_text_survives_yaml(text: str) -> None:
    config = override(Config(), {"data.source": f"arrays:{text}", "network": text})
    assert from_yaml(to_yaml(config), "here") == config


@pytest.mark.parametrize(
    ("noise", "words"), [("sym:2", "noise rate"), ("pair", "noise rate"), ("sim:0.2", 'mean "sym"'), ("matrix:", "matrix:FILE")]
)
def test_noise_that_cannot_be_is_refused_before_data_are_opened(noise: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve("pictures:/nowhere", options={"data.noise": noise})


@pytest.mark.parametrize("seed", [2**53 + 1, 2**62 + 1, 2**63 - 1])
def test_long_seeds_stay_as_they_are(seed: int) -> None:
    assert resolve("digits", options={"seed": seed}).seed == seed
    config = resolve("digits", settings=[f"seed={seed}"])
    assert config.seed == seed
    assert from_yaml(to_yaml(config), "here").seed == seed


@pytest.mark.parametrize(
    ("hint", "given", "value"),
    [
        (int, "1e3", 1000),
        (int, 5.0, 5),
        (int, "-7", -7),
        (float, "1e-3", 0.001),
        (float, 2, 2.0),
        (bool, "yes", True),
        (bool, "0", False),
        (int | None, "None", None),
        (int | None, "4", 4),
    ],
)
def test_spellings_that_are_understood(hint: Any, given: Any, value: Any) -> None:
    found = coerce(given, hint, "key")
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("hint", "given", "words"),
    [
        (int, "2.5", "a whole number"),
        (int, 2.5, "a whole number"),
        (int, "", "a whole number"),
        (int, "inf", "a whole number"),
        (int, "nan", "a whole number"),
        (int, True, "a whole number"),
        (int, [1], "a whole number"),
        (float, "fast", "a number"),
        (float, None, "a number"),
        (bool, "maybe", "true or false"),
        (bool, 1, "true or false"),
        (str, 3, "text"),
        (str, None, "text"),
        (int | None, "few", "a whole number or none"),
    ],
)
def test_wrong_types_are_named(hint: Any, given: Any, words: str) -> None:
    with pytest.raises(UsageError, match=f'setting "some.key" must be {words}, not'):
        coerce(given, hint, "some.key")


def test_the_end_of_a_key_is_enough_where_it_is_the_only_one() -> None:
    ends = [key.rpartition(".")[2] for key in KEYS]
    for key, end in zip(KEYS, ends):
        assert full_key(key) == key
        if ends.count(end) == 1:
            assert full_key(end) == key
    assert full_key("epochs") == "training.epochs"


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("training.epoch", "training.epochs"), ("lamda_u", "lambda_u"), ("cleaning.tua", "cleaning.tau"), ("sed", "seed")],
)
def test_an_unknown_key_suggests_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(UsageError, match=f'"{wrong}" is not known .did you mean "{near}"'):
        full_key(wrong)


def test_a_hopeless_key_points_to_the_list() -> None:
    with pytest.raises(UsageError, match=r"is not known; `labelsieve presets --keys`"):
        full_key("zzzzqqqq")


@pytest.mark.parametrize("version", ["2", "99", "next", "1.5"])
def test_a_newer_version_is_refused(version: str) -> None:
    with pytest.raises(ToolError, match=r"config\.yaml: written by a newer labelsieve .*upgrade"):
        from_yaml(f"version: {version}\nmethod: cpc\n", "config.yaml")


@pytest.mark.parametrize("text", ["", "- 1\n", "just words", "a: [1", "training: {epochs: [}"])
def test_what_is_no_configuration_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ToolError, match=r"config\.yaml: "):
        from_yaml(text, "config.yaml")


def test_missing_keys_take_their_defaults_and_unknown_ones_are_errors() -> None:
    assert from_yaml("training: {epochs: 7}", "here") == override(Config(), {"training.epochs": 7})
    with pytest.raises(ToolError, match=r'here: setting "training\.epohcs" is not known'):
        from_yaml("training: {epohcs: 7}", "here")
    with pytest.raises(ToolError, match='here: setting "training"'):
        from_yaml("training: 7", "here")


OUT_OF_RANGE = {
    "training.epochs": 0,
    "training.warmup": -1,
    "training.batch": 1,
    "training.warmup_batch": 1,
    "training.lr": -1,
    "training.lr_drop": 1.1,
    "training.lr_drop_factor": 0.5,
    "training.momentum": 1,
    "training.weight_decay": -1,
    "training.lambda_u": -1,
    "training.ramp_epochs": -1,
    "training.temperature": 0,
    "training.guess_passes": 3,
    "training.norm_devices": 0,
    "training.beta": 0,
    "training.prior_weight": -1,
    "training.prior": "flat",
    "training.epoch_batches": -1,
    "training.epoch_draw": "heads",
    "views.crop": 3,
    "output.model": "nicest",
    "cleaning.mixture_threshold": 1.5,
    "cleaning.mixture_memory": 0,
    "cleaning.tau": -0.1,
    "cleaning.prototype_prior": 0,
    "cleaning.prototype_memory": 0,
    "cleaning.mixture_range": "room",
    "cleaning.prototype_teacher": "nobody",
    "cleaning.prototype_views": "strong",
    "cleaning.least_clean": 1.1,
    "cleaning.prototype_warmup": 2,
    "cleaning.alpha": -1,
    "cleaning.dim": 0,
    "cleaning.projector_depth": 9,
    "cleaning.cosine": -1,
    "cleaning.passes": 0,
    "cleaning.prototype_lr": 0,
    "engine.threads": -1,
    "engine.eval_batch": -1,
    "engine.pictures": "attic",
    "output.checkpoint_seconds": -1,
    "output.history_mib": -1,
    "data.limit": 1,
    "data.test_limit": 1,
    "pictures.size": 3,
    "pictures.white": "0",
    "pictures.workers": 0,
    "pictures.fit": "stretch",
    "seed": -1,
    "data.noise_seed": -1,
    "method": "guess",
    "cleaner": "soap",
    "version": 2,
}


@pytest.mark.parametrize("key", OUT_OF_RANGE)
def test_values_out_of_range_are_named(key: str) -> None:
    with pytest.raises(UsageError, match=key.replace(".", r"\.")):
        validate(override(Config(), {key: OUT_OF_RANGE[key]}))


def test_every_number_has_a_range() -> None:
    numbers = {key for key, hint in KEYS.items() if hint in (int, float) or set(get_args(hint)) & {int, float}}
    assert numbers <= set(OUT_OF_RANGE)
    for key in numbers:
        if KEYS[key] is float:
            with pytest.raises(UsageError, match=key):
                validate(override(Config(), {key: "nan"}))


UNHEEDED = {
    "cleaning.prototype_memory": (3, ("gmm-agn", "gmm-awr", "contrastive")),
    "cleaning.prototype_views": ("weak", ("gmm-agn", "gmm-awr", "contrastive")),
    "cleaning.prototype_teacher": ("own", ("gmm-agn", "gmm-awr", "contrastive")),
    "cleaning.judge_first": (True, ("gmm-agn", "gmm-awr")),
}


@pytest.mark.parametrize("key", UNHEEDED)
def test_a_setting_that_a_cleaner_would_not_heed_is_an_error(key: str) -> None:
    value, without = UNHEEDED[key]
    for cleaner in CLEANERS:
        config = override(Config(), {"cleaner": cleaner, key: value})
        if cleaner in without:
            says = f'"{key}" is for the cleaners cpc-agn and cpc-awr; with {cleaner} it would'
            with pytest.raises(UsageError, match=says) as caught:
                validate(config)
            remedy = str(caught.value).partition("--set ")[2]  # a next round has it from the round before
            validate(override(config, parse_settings([remedy])))
        else:
            validate(config)


def test_what_a_cleaner_does_not_read_is_said() -> None:
    every = ("tau", "prototype_warmup", "dim", "prototype_lr", "alpha", "passes", "projector_depth", "cosine", "prototype_prior")
    told = {f"cleaning.{name}" for name in every} | {"training.lr", "cleaning.mixture_threshold"}
    unread = {"gmm-agn": every, "gmm-awr": every, "contrastive": every[4:], "cpc-agn": (), "cpc-awr": (), "mine": every[2:]}
    for cleaner, names in unread.items():
        words = unheeded(replace(Config(), cleaner=cleaner), told)
        assert words.partition(":")[0] == ", ".join(f"cleaning.{name}" for name in names)
    assert unheeded(replace(Config(), cleaner="gmm-agn"), {"training.lr"}) == ""


def test_what_a_method_does_not_read_is_said() -> None:
    """A lambda_u told to `ce`, or strong views told to `dividemix`, changed nothing without a word."""
    told = ("training.lambda_u", "training.temperature", "views.policy", "training.lr", "training.entropy_penalty")
    unread = {"ce": told[:3], "dividemix": told[2:3], "augdmix": (), "cpc": ()}
    for method, keys in unread.items():
        words = unheeded(replace(Config(), method=method), told)
        assert set(words.partition(":")[0].split(", ")) == set(keys or ("",))
        assert not keys or f"the method {method} does not read that" in words
    both = unheeded(replace(Config(), method="ce", cleaner="gmm-agn"), {"training.beta", "cleaning.dim"})
    assert both.count("so it has no effect") == 2 and "; " in both


def test_how_batches_are_drawn_is_read_where_there_are_such() -> None:
    words = unheeded(Config(), {"training.epoch_draw"})
    assert words.startswith("training.epoch_draw: it is for training.epoch_batches")
    assert unheeded(override(Config(), {"training.epoch_batches": 5}), {"training.epoch_draw"}) == ""


def test_the_default_is_valid_and_frozen() -> None:
    validate(Config())
    assert replace(Config(), seed=1) != Config()


def test_places_in_settings_are_those_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run can be taken up, or applied, from another folder; `--root` and the like do so too."""
    monkeypatch.chdir(tmp_path)
    pairs = ["pictures.labels_file=l.csv", "pictures.root=none", "pictures.val=", "data.trusted=/a/b.txt", "training.lr=0.1"]
    options = {"pictures.cache_dir": Path("c"), "pictures.second_test": None, "pictures.root": "r"}
    assert given_by(options, pairs) == {
        "pictures.cache_dir": str(tmp_path / "c"),
        "pictures.labels_file": str(tmp_path / "l.csv"),
        "pictures.root": "none",
        "pictures.val": "",
        "data.trusted": "/a/b.txt",
        "training.lr": "0.1",
    }


def test_places_behind_a_word_are_made_whole_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = ["pretrained=w.pt", "data.noise=cifar-n:n.pt:worse", "training.prior=file:p.csv"]
    assert given_by({}, pairs) == {
        "pretrained": str(tmp_path / "w.pt"),
        "data.noise": f"cifar-n:{tmp_path / 'n.pt'}:worse",
        "training.prior": f"file:{tmp_path / 'p.csv'}",
    }
    plain = {"pretrained": "zoo", "data.noise": "sym:0.2", "training.prior": "given"}
    assert given_by(plain, []) == plain and given_by({}, ["pretrained=none"]) == {"pretrained": "none"}


def test_every_setting_says_what_it_is() -> None:
    said = {key: rule.meaning for key, rule in rules_by_key().items()}
    assert list(said) == list(dotted_keys())
    assert not [key for key, words in said.items() if len(words) < 10]
    assert said["training.lr_drop"] == "When the learning rate drops, as a share of all epochs"


def test_the_choices_of_a_setting_are_those_of_the_code_that_reads_it() -> None:
    known = {
        "views.policy": (*POLICY_NAMES, "by-network"),
        "engine.pictures": PLACES_OF_PICTURES,
        "engine.precision": ("auto", *PRECISIONS),
        "data.on_conflict": ON_CONFLICT,
        "training.guess_passes": PASSES,
    }
    for key, choices in known.items():
        assert set(rules_by_key()[key].choices) == set(choices), key
