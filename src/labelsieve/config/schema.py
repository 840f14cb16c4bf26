"""A run's configuration: nested dataclasses, every field resolved, readable as YAML, settable by dotted key.

What is written into a run folder loads back to the same run. Unknown keys and wrong types are errors that name the key and
suggest the nearest one.
"""

import os
import types
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from labelsieve.config.setting import RULE, Rule, check, setting
from labelsieve.data.pictures.options import PictureSettings
from labelsieve.doors import short
from labelsieve.errors import ToolError, UsageError, suggest

VERSION = 1
OWN = "own"
EMPTY = ("pictures.id_column", "pictures.split_column")  # where "" says that there is no such column; elsewhere it is none
LONGEST = 2**16  # bytes of a text
T = TypeVar("T")


@dataclass(frozen=True)
class DataConfig:
    source: str = setting("digits", "What to train on, as on the command line: cifar10:PATH, arrays:FILE.npz, ...")
    limit: int | None = setting(None, "Train on a fixed subset of this size, with all classes in it", low=2)
    test_limit: int | None = setting(None, "Measure accuracy on such a subset of the test pictures", low=2)
    noise: str = setting("none", "Wrong labels to make on purpose: sym:0.5, asym:0.4, pair:0.3, file:FILE, ...")
    noise_seed: int | None = setting(None, "Seed of that noise; none: the run's seed", low=0, high=2**63 - 1)
    trusted: str | None = setting(None, "A file of ids whose labels you are sure of: always taken as clean")
    decisions: str | None = setting(None, "A reviewed run; in a run folder, its round.json with what people decided before it")
    on_conflict: str = setting(
        "refuse",
        "If reviewers disagree: refuse, latest (the later one counts) or undecided",
        choices=("refuse", "latest", "undecided"),
    )


@dataclass(frozen=True)
class TrainingConfig:
    epochs: int | None = setting(
        60, "Number of epochs, warm-up included; none: by the noise estimated after the warm-up", low=1, high=1e6
    )
    quick: bool = setting(False, "Only rank labels: lengths follow from the number of samples, not from the settings here")
    warmup: int = setting(8, "Epochs of plain cross-entropy before labels are first divided", low=0, high=1e6)
    guess_passes: int = setting(
        1,
        "Forward passes to guess from a step's weak views; 1: all together, 2: labelled apart, 4: each view (as published)",
        choices=(1, 2, 4),
    )
    norm_devices: int = setting(
        1, "BatchNorm as with DataParallel on this many GPUs: each normalises its part, the first is remembered", low=1, high=64
    )
    entropy_penalty: bool = setting(False, "Negative entropy in the warm-up, for asymmetric noise")
    batch: int = setting(
        128,
        "Labelled samples per step, and as many unlabelled ones; 0: by the pictures' size and number",
        low=2,
        high=1e6,
        zero_is_open=True,
    )
    warmup_batch: int = setting(
        128, "Samples per step of the warm-up; 0: by the pictures' size and number", low=2, high=1e6, zero_is_open=True
    )
    lr: float = setting(
        0.02,
        "Learning rate of the networks until it drops; 0: a trial on your vectors finds it and the length of the warm-up",
        low=1e-09,
        high=1000,
        zero_is_open=True,
    )
    schedule: str = setting(
        "step",
        "How the learning rate falls: step (at lr_drop) or cosine (to lr / lr_drop_factor at the end)",
        choices=("step", "cosine"),
    )
    lr_drop: float = setting(0.5, "When the learning rate drops, as a share of all epochs", low=0, high=1)
    lr_drop_factor: float = setting(10.0, "What the learning rate is divided by then", low=1, high=1e9)
    momentum: float = setting(0.9, "Momentum of SGD, for networks and prototypes", low=0, high=0.9999)
    weight_decay: float = setting(5e-4, "Weight decay of SGD, for networks and prototypes", low=0, high=1)
    lambda_u: float | None = setting(
        None, "Weight of the unlabelled loss, which matters most; none: by the noise estimated after the warm-up", low=0, high=1e6
    )
    mixed: bool | None = setting(
        None, "Mixed epochs after the warm-up; false: plain ones to the end; none: by the estimated noise"
    )
    ramp_epochs: int = setting(16, "Epochs after the warm-up in which lambda_u grows from 0 to its full weight", low=0, high=1e6)
    temperature: float = setting(0.5, "Guessed labels are sharpened as p^(1/temperature)", low=0.001, high=10)
    beta: float | None = setting(
        4.0, "Mixing shares are drawn from Beta(beta, beta); none: by network and size", low=0.05, high=1000
    )
    prior: str = setting(
        "uniform",
        "How common classes are expected to be: uniform, given (as in the labels) or file:FILE",
        choices=("uniform", "given", "file:FILE"),
    )
    prior_weight: float = setting(1.0, "Weight of the penalty that pulls predictions towards the prior", low=0, high=1e6)
    train_unlabelled: bool = setting(
        True, "Train on unlabelled samples, too; false: on the labelled half only, as on the web sets"
    )
    epoch_batches: int = setting(
        0,
        "Batches that each network draws, divides and trains on per epoch; 0: all rows",
        low=1,
        high=1e7,
        zero_is_open=True,
    )
    epoch_draw: str = setting(
        "balanced", "How they are drawn: balanced (as many of each class as there are) or random", choices=("balanced", "random")
    )


@dataclass(frozen=True)
class CleaningConfig:
    mixture_threshold: float | None = setting(
        None, "A label is clean by loss above this chance; none: by the estimated noise", low=0, high=1
    )
    mixture_memory: int | None = setting(
        None, "The mixture sees the mean of this many last losses; none: by the estimated noise", low=1, high=100
    )
    mixture_range: str = setting(
        "all",
        "Losses are scaled to 0..1 over all labels (all; PAPER.md, ruling 7) or within each class (class)",
        choices=("all", "class"),
    )
    tau: float = setting(0.5, "A label is clean by prototype above this chance", low=0, high=1)
    prototype_prior: float = setting(
        0.5, "Share of right labels expected beforehand; 0.5: the score as it is, a chance at even odds", low=0.001, high=0.999
    )
    prototype_memory: int | None = setting(
        None, "Prototypes judge by the mean of this many last scores; none: 5 if they warm up that long, else 1", low=1, high=100
    )
    prototype_warmup: float = setting(
        0.05, "Warm-up of the prototypes after the networks' own, as a share of all epochs (e in the paper)", low=0, high=1
    )
    prototype_teacher: str = setting(
        "peer", "Whose mixture teaches a network's prototypes: peer (PAPER.md, ruling 1) or own", choices=("peer", "own")
    )
    judge_first: bool = setting(
        False, "Prototypes judge before they learn, as in Algorithm 1; false: after, as in section 4.1 (PAPER.md, ruling 1)"
    )
    prototype_views: str = setting(
        "plain",
        "Pictures whose features prototypes learn from: plain (PAPER.md, ruling 3) or weak, a weak view of each",
        choices=("plain", "weak"),
    )
    least_clean: float | None = setting(
        None, "At least this share of labels is taken as clean; none: by the estimated noise", low=0, high=1
    )
    judge: str = setting(
        "auto",
        "Who ranks and suggests: networks, or heads that have not seen the labels; auto: heads of vectors and a few thousand "
        "pictures",
        choices=("auto", "heads", "networks"),
    )
    alpha: float = setting(0.0, "Weight of the confident samples among the noisy ones", low=0, high=1000)
    dim: int = setting(128, "Dimensions of projected features and prototypes (d in the paper)", low=1, high=65536)
    projector_depth: int = setting(1, "Layers of the projector; 1: linear", low=1, high=4)
    cosine: float = setting(
        0.0, "0: plain products (PAPER.md, ruling 2); otherwise cosine scores at this scale", low=0, high=1000
    )
    passes: int = setting(1, "Passes of stage 1 over the training set per epoch", low=1, high=1000)
    prototype_lr: float | None = setting(
        None, "Learning rate of projector and prototypes; none: the networks'", low=1e-09, high=1000
    )


@dataclass(frozen=True)
class FeaturesConfig:
    use: str = setting(
        "none",
        "frozen: two small heads learn from a pretrained network's features; none: networks learn from the pixels",
        choices=("none", "frozen"),
    )
    backbone: str | None = setting(None, "That pretrained network, by timm's name")
    weights: str | None = setting(
        None, "A file with its weights; none: timm's own, downloaded unless they are here. Runs keep a copy"
    )
    sha256: str | None = setting(None, "SHA-256 of these weights, found out when the run starts")
    offline: bool = setting(False, "Download nothing")


@dataclass(frozen=True)
class ViewsConfig:
    policy: str = setting(
        "auto",
        "Strong views: auto (AutoAugment, or upright if not mirrored), none (weak), by-network (either)",
        choices=("auto", "none", "autoaugment-cifar10", "autoaugment-imagenet", "upright", "by-network"),
    )
    crop: int | None = setting(
        None, "The side that networks see, cut at random from larger pictures; none: the whole picture", low=4, high=1024
    )


@dataclass(frozen=True)
class EngineConfig:
    threads: int = setting(
        0,
        "CPU threads; 0: OMP_NUM_THREADS, or 1 for tiny pictures and up to 8 cores for others",
        low=0,
        high=1024,
    )
    eval_batch: int = setting(
        512, "Samples that are looked at together; 0: by the pictures' size", low=1, high=1e6, zero_is_open=True
    )
    pictures: str = setting(
        "auto",
        "Where pictures are kept: device, host (sent as needed), auto: on the device if it has twice the room",
        choices=("auto", "device", "host"),
    )
    precision: str = setting(
        "auto", "float32, tf32 or bf16 (weights stay float32); auto: bf16 on CUDA", choices=("auto", "float32", "tf32", "bf16")
    )
    compile: bool | None = setting(
        None, "Compile the networks and the steps of stage 1; none: on CUDA, with triton and a C compiler"
    )
    capture: bool | None = setting(None, "Run steps as CUDA graphs; none: on CUDA")
    batchnorm: str = setting(
        "whole",
        "What several processes normalise by: whole, the step's whole batch; rank, each its own part, which is faster",
        choices=("whole", "rank"),
    )
    deterministic: bool = setting(False, "Use kernels that repeat bit for bit, where torch has them; a CPU run does so anyway")


@dataclass(frozen=True)
class OutputConfig:
    model: str = setting(
        "last",
        "Which epoch's networks become the model: last, or best-val (best on validation pictures)",
        choices=("last", "best-val"),
    )
    checkpoint_seconds: float = setting(
        20.0, "Seconds between checkpoints: at most this much work is lost if the run is killed", low=0, high=1e9
    )
    slim_checkpoint: bool = setting(
        False, "At a stop, also write a checkpoint in small files for copying: no momentum, half precision"
    )
    history_mib: int = setting(64, "MiB of memory for the history of scores, at most", low=0, high=1e6)


@dataclass(frozen=True)
class Config:
    version: int = setting(VERSION, "Format of this file; leave it as it is")
    method: str = setting("cpc", "One of the methods that `labelsieve methods` lists, or your own")
    cleaner: str = setting("cpc-awr", "gmm-agn, gmm-awr, cpc-agn, cpc-awr, contrastive, or one you registered")
    network: str = setting(
        "small", "As for --network; auto: by the pictures' size, their number and the device when the run starts"
    )
    pretrained: str | None = setting(None, "Weights to start from: a file, or zoo for those of timm:NAME")
    own: Mapping[str, Any] = field(default_factory=dict)  # the method's own settings, a section that bears its name
    seed: int = setting(0, "Random seed: weights, order, views and noise", low=0, high=2**63 - 1)
    device: str = setting("auto", "auto, cpu, cuda or cuda:N")
    data: DataConfig = field(default_factory=DataConfig)
    pictures: PictureSettings = field(default_factory=PictureSettings)
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)
    views: ViewsConfig = field(default_factory=ViewsConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    output: OutputConfig = field(default_factory=OutputConfig)


def check_ranges(config: Config) -> None:
    """A `UsageError` for the first setting that has a value it cannot have."""
    check(config)
    for one in fields(Config):
        if is_dataclass(section := getattr(config, one.name)):
            check(section, f"{one.name}.")


@cache
def rules_by_key() -> dict[str, Rule]:
    """Every settable key with what its declaration says of it."""
    return dict(_rules_of(Config, ""))


def _rules_of(kind: Any, prefix: str) -> Iterator[tuple[str, Rule]]:
    hints = get_type_hints(kind)
    for one in fields(kind):
        if is_dataclass(hints[one.name]):
            yield from _rules_of(hints[one.name], f"{prefix}{one.name}.")
        elif RULE in one.metadata:
            yield f"{prefix}{one.name}", one.metadata[RULE]


@cache
def dotted_keys() -> dict[str, Any]:
    """Every settable key with its type: {"training.batch": int, ...}."""
    return _keys_of(Config, "")


def _keys_of(kind: Any, prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if prefix == "" and name == OWN:
            continue
        found |= _keys_of(hint, f"{prefix}{name}.") if is_dataclass(hint) else {f"{prefix}{name}": hint}
    return found


def full_key(key: str) -> str:
    """The dotted key that is meant: as given, or the only one that ends in it (`epochs` -> `training.epochs`)."""
    keys = dotted_keys()
    if key in keys or _own_hint(key) is not None:
        return key
    ends = [known for known in keys if known.endswith(f".{key}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise UsageError(f'setting "{key}" is ambiguous: {" or ".join(ends)}')
    last = {known.rpartition(".")[2]: known for known in keys}
    raise UsageError(f'setting "{short(key)}" is not known{suggest(key, [*keys, *last])}; `labelsieve presets --keys` lists all')


def override(config: Config, settings: Mapping[str, Any]) -> Config:
    """The configuration with `settings` (dotted keys) in place of what was there, each checked against its type."""
    for key, value in sorted(settings.items(), key=lambda item: item[0] != "method"):  # its own settings come after it
        key = full_key(key)
        if key not in dotted_keys():
            config = _with_own(config, key, value)
            continue
        before = config.method
        config = _set(config, key.split("."), coerce(value, dotted_keys()[key], key))
        if config.method != before:
            config = replace(config, own={})
    return config


def _own_hint(key: str) -> Any:
    """The type of a setting in a method's own section; None where it is no such key."""
    head, _, name = key.partition(".")
    if not name or head in {one.name for one in fields(Config)}:
        return None
    from labelsieve.methods.registry import own_keys  # the methods are loaded where one of their keys is named, and not before

    return own_keys().get(key)


def _with_own(config: Config, key: str, value: Any) -> Config:
    head, _, name = key.partition(".")
    if head != config.method:
        raise UsageError(f'setting "{key}" is for the method {head}, and this run\'s is {config.method}: add --method {head}')
    return replace(config, own={**config.own, name: coerce(value, _own_hint(key), key)})


def _set(node: T, path: list[str], value: Any) -> T:
    head, *rest = path
    inner = _set(getattr(node, head), rest, value) if rest else value
    return replace(node, **{head: inner})  # type: ignore[type-var]


def coerce(value: Any, hint: Any, key: str) -> Any:
    """`value` as `hint`, from YAML or from the command line's text; a `UsageError` names the key otherwise."""
    if get_origin(hint) in (Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not type(None)]
        if value == "" and key in EMPTY:
            return value
        if value is None or (isinstance(value, str) and value.lower() in ("none", "null", "")):
            return None
        try:
            return coerce(value, options[0], key)
        except UsageError:
            raise UsageError(f'setting "{key}" must be {type_name(hint)}, not {_shown(value)}') from None
    if hint is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false", "yes", "no", "on", "off", "1", "0"):
            return value.lower() in ("true", "yes", "on", "1")
    elif hint is str and isinstance(value, str) and _is_plain(value):
        return value
    elif hint == tuple[str, ...] and isinstance(value, (str, list, tuple)):
        words = value.split(",") if isinstance(value, str) else value
        if all(isinstance(word, str) for word in words):
            return tuple(word.strip() for word in words)
    elif hint in (int, float) and isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            return _whole(value) if hint is int else float(value)
        except (ValueError, OverflowError):
            pass
    raise UsageError(f'setting "{key}" must be {type_name(hint)}, not {_shown(value)}')


def _is_plain(text: str) -> bool:
    """Whether it can be a name or a path on any system."""
    try:
        return "\0" not in text and len(os.fsencode(text)) <= LONGEST
    except UnicodeEncodeError:
        return False


def _shown(value: Any) -> str:
    """A value as it was written; lists and tables by their kind, for a few lines of YAML can be one that fills the memory."""
    return f"a {type(value).__name__}" if isinstance(value, (list, tuple, dict, set)) else short(repr(value))


def _whole(value: int | float | str) -> int:
    """A whole number in any spelling (12, "12", "1e3"); through a float only where it must be, for seeds have 63 bits."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            value = float(value)
    if value != int(value):
        raise ValueError(value)
    return int(value)


def type_name(hint: Any) -> str:
    """In words: "a whole number", "text or none"."""
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join("none" if option is type(None) else type_name(option) for option in get_args(hint))
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text", tuple[str, ...]: "a list of names"}
    return names[hint]


def value_at(config: Config, key: str) -> Any:
    """The value at a dotted key."""
    node: Any = config
    head, _, rest = key.partition(".")
    if rest and head == config.method:
        return config.own[rest]
    for name in key.split("."):
        node = getattr(node, name)
    return node


def to_yaml(config: Config) -> str:
    tree = asdict(config)
    own = tree.pop(OWN)
    return yaml.safe_dump(tree | ({config.method: own} if own else {}), sort_keys=False, allow_unicode=True)


class _Plain(yaml.SafeLoader):
    """YAML as we write it: elsewhere a few lines merge tables into each other until they fill the memory, and the last wins."""

    def flatten_mapping(self, node: Any) -> None:
        """Of each table, before its values are made."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.endswith((":merge", ":value")):
                raise yaml.YAMLError(f"line {key.start_mark.line + 1}: no name of a setting")
            if key.value in seen:
                raise yaml.YAMLError(f"line {key.start_mark.line + 1}: a name that is there already")
            seen.add(key.value)


def from_yaml(text: str, place: str) -> Config:
    """The configuration in a file; `place` names it in errors. Missing keys take their defaults, unknown ones are errors."""
    try:
        tree = _Plain(text).get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # the last of dates and numbers that are none
        raise ToolError(f"{place}: not readable as YAML ({str(error).splitlines()[0]}); restore it or start a new run") from None
    if not isinstance(tree, dict):
        raise ToolError(f"{place}: it holds no settings; restore it or start a new run")
    version = tree.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise ToolError(
            f"{place}: written by a newer labelsieve (configuration version {_shown(version)}, this one reads {VERSION}); "
            f"upgrade labelsieve to use it"
        )
    try:
        own = tree.pop(str(tree.get("method")), {})
        if not isinstance(own, dict) or not all(isinstance(value, (bool, int, float, str, type(None))) for value in own.values()):
            raise UsageError(f'the section "{tree.get("method")}" must be a table of numbers, words and truth values')
        return replace(override(Config(), _flat(tree)), own=own)
    except UsageError as error:
        raise ToolError(f"{place}: {error}") from None


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    sections = {f.name for f in fields(Config) if is_dataclass(get_type_hints(Config)[f.name])}
    found: dict[str, Any] = {}
    for name, value in tree.items():
        if not prefix and name in sections and isinstance(value, dict):
            found |= _flat(value, f"{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
