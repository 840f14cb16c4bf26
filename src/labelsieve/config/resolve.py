"""From what you say to a whole configuration: data set defaults, then the preset, then options, then single settings.

The command line and Python share it. The checks that a configuration makes sense, by itself and for its data, are here, too.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from labelsieve.config.fitting import check_quick, may_be_judged_by_heads, mixed_as_published
from labelsieve.config.method_settings import cell_settings, method_words, settings_for
from labelsieve.config.moved import moved_to
from labelsieve.config.presets import defaults_for, is_own, preset
from labelsieve.config.schema import VERSION, CleaningConfig, Config, check_ranges, full_key, override
from labelsieve.data.label_files import made_as
from labelsieve.data.noise import check_form
from labelsieve.data.noisy_data import NoisyData
from labelsieve.data.pictures.options import named, picture_options
from labelsieve.data.sources import OWN, source_at, whole_path, whole_spec
from labelsieve.errors import ToolError, UsageError, command
from labelsieve.methods import MIXTURES, PROTOTYPES
from labelsieve.methods.parts.cleaners import check_cleaner
from labelsieve.methods.registry import METHODS, method_named
from labelsieve.nets import NETWORKS, VECTOR_NETWORKS

# Settings of training that cross-entropy alone has no use for.
OF_MIXED_EPOCHS = (
    *("guess_passes", "lambda_u", "mixed", "ramp_epochs", "temperature"),
    *("beta", "prior", "prior_weight", "train_unlabelled"),
)
OF_PIXELS = ("pictures.mirror", "views.policy", "views.crop")
FILES_ONLY = {"pictures.size": "arrays keep their size", "pictures.classes": "classes are named in the data"}
OF_TABLES = {
    **dict.fromkeys(("image_column", "label_column", "id_column", "split_column", "encoding"), "a table"),
    "root": "a table of paths",
    "labels_file": "a file of vectors",
}


def cleaner_of(method: str) -> str:
    """The cleaner that a method has where nothing was said; one that has none leaves the name unused."""
    return next(iter(method_named(method).cleaners), MIXTURES[0])


def validate(config: Config, recorded: bool = False) -> None:
    """A `UsageError` naming the first setting out of its range. What is `recorded` may name somebody's own method or cleaner."""
    if config.version != VERSION:
        raise UsageError(f'setting "version" is {config.version}; it names the form of the file, and must stay {VERSION}')
    if not recorded:
        method_named(config.method)
        check_cleaner(config.cleaner)
    check_ranges(config)
    if config.method in METHODS:
        settings_for(config)  # its own section, with its own ranges
    if config.pretrained == "zoo" and not config.network.startswith("timm:"):
        raise UsageError("--pretrained zoo goes with --network timm:NAME; for other networks give a file of weights")
    if config.features.use == "frozen" and not config.features.backbone:
        raise UsageError("features.use is frozen, and no backbone is named; add --backbone NAME, a network of timm")
    check_form(config.data.noise)
    training, cleaning = config.training, config.cleaning
    memories = {"mixture_memory": cleaning.mixture_memory, "prototype_memory": cleaning.prototype_memory}
    for key, memory in memories.items():
        if training.epoch_batches and (memory or 1) > 1:
            raise UsageError(
                f'setting "cleaning.{key}" must be 1 with training.epoch_batches: new samples every epoch have no past'
            )
    _check_judge(config)


def _check_judge(config: Config) -> None:
    """Settings of prototypes that this cleaner would not heed are errors: it has none, or they learn in another way."""
    prototypes = config.cleaner in PROTOTYPES
    heeded = {
        "prototype_memory": prototypes,
        "prototype_views": prototypes,
        "prototype_teacher": config.cleaner not in (*MIXTURES, "contrastive"),
        "judge_first": config.cleaner not in MIXTURES,
    }
    for key in (key for key, known in heeded.items() if not known):
        said, usual = getattr(config.cleaning, key), getattr(CleaningConfig(), key)
        if said != usual and (key, said) != ("prototype_memory", 1):  # as good as none
            raise UsageError(
                f'setting "cleaning.{key}" is for the cleaners cpc-agn and cpc-awr; with {config.cleaner} it would do nothing: '
                f"choose one of them, or --set cleaning.{key}={str(usual).lower()}"
            )


def unheeded(config: Config, told: Collection[str]) -> str:
    """What was told, by full key, and this run's cleaner or method does not read: in words, or "".

    Presets say such things for all cleaners that are crossed into them, so it is no error.
    """
    drawing = () if config.training.epoch_batches else ("training.epoch_draw",)
    reasons = {
        f"the cleaner {config.cleaner} does not read that": _unread_by_cleaner(config),
        f"the method {config.method} does not read that": _unread_by_method(config),
        "it is for training.epoch_batches, of which there are none": drawing,
        "features are frozen, and not varied as pictures are": OF_PIXELS if config.features.use == "frozen" else (),
    }
    found = {reason: ", ".join(key for key in keys if key in told) for reason, keys in reasons.items()}
    return "; ".join(f"{keys}: {reason}, so it has no effect" for reason, keys in found.items() if keys)


def _unread_by_cleaner(config: Config) -> tuple[str, ...]:
    dividing, sizes = ("tau", "prototype_warmup"), ("dim", "prototype_lr")
    cpc = ("alpha", "passes", "projector_depth", "cosine", "prototype_prior")
    unread: tuple[str, ...] = ()
    if config.cleaner in MIXTURES:
        unread = (*dividing, *sizes, *cpc)
    elif config.cleaner not in PROTOTYPES:  # one of the user's has numbers of its own
        unread = cpc if config.cleaner == "contrastive" else (*sizes, *cpc)
    return tuple(f"cleaning.{name}" for name in unread)


def _unread_by_method(config: Config) -> tuple[str, ...]:
    method = method_named(config.method)
    mixing = () if method.warms_up else tuple(f"training.{name}" for name in OF_MIXED_EPOCHS)
    return (*mixing, *(() if method.varies else ("views.policy",)))


def validate_for(config: Config, data: NoisyData) -> None:
    """A `ToolError` when the data cannot be trained with these settings."""
    batch = max(config.training.batch, config.training.warmup_batch)
    if len(data) < batch:
        fitting = max(2, 2 ** (len(data) // 4).bit_length() // 2)
        raise ToolError(
            f"{config.data.source}: {len(data)} samples are fewer than one batch of {batch}; "
            f"use --set training.batch={fitting} --set training.warmup_batch={fitting} (in Python batch_size={fitting}), "
            f"or more data"
        )
    if config.cleaning.judge == "heads" and not may_be_judged_by_heads(config):
        raise UsageError(f'setting "cleaning.judge" is heads, and {method_words(config)} judges by itself; leave it out')
    crop = config.views.crop
    if crop is not None and not data.are_vectors and crop > min(data.shape[1:]):
        height, width = data.shape[1:]
        raise ToolError(
            f'{config.data.source}: setting "views.crop" is {crop}, and pictures are {height}x{width}; '
            f"use --size {crop} or more, or --set views.crop=none"
        )
    fitting_networks, kind = (VECTOR_NETWORKS, "vectors") if data.are_vectors else (NETWORKS, "pictures")
    if config.network in NETWORKS | VECTOR_NETWORKS and config.network not in fitting_networks:
        raise ToolError(
            f'{config.data.source}: these are {kind}, which network "{config.network}" does not take; '
            f"use --network {' or '.join(fitting_networks)}"
        )
    if config.training.lr == 0 and not data.are_vectors:
        raise ToolError(
            f'{config.data.source}: setting "training.lr" is 0, and only vectors find their own rate; use --set training.lr=0.02'
        )
    if config.network.startswith("preact-resnet18") and min(data.shape[1:]) < 8:
        height, width = data.shape[1:]
        raise ToolError(
            f"{config.data.source}: pictures of {height}x{width} are too small for {config.network}, which halves them three "
            f"times; use --network small"
        )


def check_heeded(source: str, given: Mapping[str, Any]) -> None:
    """A `UsageError` for what was said of pictures, by dotted key, and the data at `source` cannot heed.

    Held-out pictures may come as a table where those to learn from do not, so with them nothing said of tables is idle.
    """
    name, said = source.partition(":")[0], [key for key in given if str(given[key]).lower() not in ("", "none", "null")]
    unread = [key for key in FILES_ONLY if key in said]
    if unread and name not in OWN and given.get("features.use") != "frozen":  # a backbone looks at any picture in its own size
        raise UsageError(
            f"{unread[0]} is for pictures in files, and {source} has its own: {FILES_ONLY[unread[0]]}; "
            f"leave it out, or change the data"
        )
    if name == "embeddings" and "pictures.size" in said:
        raise UsageError(f"pictures.size is for pictures, and {source} has vectors, which are taken as they are; leave it out")
    if name != "webvision" and "pictures.second_test" in said:
        raise UsageError(
            f"pictures.second_test is for webvision, and {source} is not that; leave it out, and measure on further pictures "
            f"when the run is done: `labelsieve evaluate RUN DATA`"
        )
    idle = [option for option in OF_TABLES if f"pictures.{option}" in said and not _reads(source, option)]
    if idle and "pictures.val" not in said:
        raise UsageError(
            f"{named(idle[0])} is for {OF_TABLES[idle[0]]}, and {source} is none: there it would change nothing; leave it out"
        )


def _reads(source: str, option: str) -> bool:
    """Whether something said of tables can count. Pictures in files may have one; class folders note what they do not use."""
    name, _, place = source.partition(":")
    if name == "embeddings":
        return option != "root" and not place.lower().endswith(".npz")
    return name == "pictures"


# Settings that name a file or folder; written from where the user is.
PLACES = frozenset(f"pictures.{name}" for name in ("root", "val", "cache_dir", "labels_file", "second_test")) | {
    "data.trusted",
    "features.weights",
    "pretrained",
}
SPECS = {"data.noise": ("matrix:", "file:", "cifar-n:"), "training.prior": ("file:",)}


def parse_settings(pairs: Sequence[str]) -> dict[str, str]:
    """`key=value` texts as a table by full key."""
    table = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f'--set "{pair}" has no value; write it as key=value, for example --set training.lr=0.01')
        table[full_key(key.strip())] = value.strip()
    return table


def given_by(options: Mapping[str, Any] | None, settings: Sequence[str]) -> dict[str, Any]:
    """What was said, by full key: options as dotted keys, None where not given, and over them single settings.

    Places are absolute, so that the run can be resumed from any folder.
    """
    given = {full_key(key): value for key, value in (options or {}).items() if value is not None} | parse_settings(settings)
    return {key: _from_anywhere(key, value) for key, value in given.items()}


def _from_anywhere(key: str, value: Any) -> Any:
    """A value that names a place, or has one behind a word and a colon, with the place made whole."""
    text = str(value)
    if key in PLACES and text.lower() not in ("", "none", "null") and (key, text) != ("pretrained", "zoo"):
        return whole_path(value)
    return whole_spec(text) if text.startswith(SPECS.get(key, ())) else value


def source_of(text: Path | str, base: Config, given: Mapping[str, Any]) -> str:
    """A data set's name, or a path that is looked at with what was said of its pictures; a run folder is neither."""
    refuse_run(str(text))
    said = {key: value for key, value in given.items() if key.startswith("pictures.")}
    return source_at(str(text), picture_options(override(base, said).pictures))


def refuse_run(text: str) -> None:
    """A `UsageError` where what should be data is a run: its issues.csv has paths and labels, and would be taken for them."""
    path = Path(text).expanduser()
    if (path / "config.yaml").is_file() and ((path / "checkpoint").is_dir() or (path / "slim").is_dir()):
        raise UsageError(
            f"{text}: this is a run folder, not data; resume it with {command('resume', path)}, train its next round with "
            f"`labelsieve train --decisions {shlex.quote(str(path))} --out NEXT`, or name the data"
        )


def resolve(
    source: Path | str,
    *,
    named: str | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
) -> Config:
    """The configuration for `source`: a path, or a known data set such as `digits` or `cifar10:PATH`.

    `options` are settings by their dotted keys, None where not given; `settings` are texts, key=value.
    """
    given = given_by(options, settings)
    source = source_of(source, Config(), given)
    check_heeded(source, given)
    named_settings = preset(named) if named else {}
    noise = str(given.get("data.noise", named_settings.get("data.noise", "none")))
    method = str(given.get("method", named_settings.get("method", "cpc")))
    starts = defaults_for(source, made_as(noise), given.get("features.use") == "frozen") | named_settings
    config = override(Config(), starts | cell_settings(method, named, source, made_as(noise)))
    if named:  # it stands for a whole recipe, whatever network is put into it
        config = mixed_as_published(config)
    if "cleaner" not in given and method != Config().method:
        given["cleaner"] = cleaner_of(method)
    config = override(config, {"data.source": source} | given)
    config = override(config, _following(config, given.keys() | named_settings.keys(), is_own(source)))
    if config.training.quick:
        check_quick(given.keys())
    validate(config)
    return config


def resolve_next(
    base: Config,
    source: Path | str | None = None,
    *,
    named: str | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
) -> Config:
    """The configuration of a next round: that of the reviewed run, and what was said this time in place of it.

    In a shorter run the warm-up is shortened with it, so that there is something left to find wrong labels in.
    """
    given = given_by(options, settings)
    said = (preset(named) if named else {}) | given
    if "cleaner" not in said and str(said.get("method", "cpc")) != Config().method:
        said["cleaner"] = cleaner_of(str(said["method"]))
    config = override(base if source is None else moved_to(base, source_of(source, base, given)), said)
    check_heeded(config.data.source, {"pictures.val": config.pictures.val} | given)
    epochs, before = config.training.epochs, base.training.epochs
    if "training.warmup" not in said and epochs is not None and (before is None or epochs < before):
        config = override(config, {"training.warmup": min(config.training.warmup, max(1, epochs // 3))})
    if config.training.quick:
        check_quick(given.keys())
    validate(config)
    return config


def _following(config: Config, said: Set[str], own: bool) -> dict[str, Any]:
    """What follows from other settings where nothing was said about it.

    Your own data are warmed up for 8 epochs, in short runs for a third of them, so that there is something left to find
    wrong labels in. Weights that have learnt already are changed with a tenth of the learning rate.
    """
    found: dict[str, Any] = {}
    if own and "training.warmup" not in said and config.training.epochs is not None:
        found["training.warmup"] = min(config.training.warmup, max(1, config.training.epochs // 3))
    if config.pretrained is not None and "training.lr" not in said:
        found["training.lr"] = config.training.lr / 10
    return found
