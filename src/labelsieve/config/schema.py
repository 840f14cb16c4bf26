"""A run's configuration: nested dataclasses, every field resolved, readable as YAML, settable by dotted key.

What is written into a run folder loads back to the same run. Unknown keys and wrong types are errors that name the key and
suggest the nearest one.
"""

import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from labelsieve.errors import ToolError, UsageError, suggest

VERSION = 1
OWN = "own"
EMPTY = ("pictures.id_column", "pictures.split_column")  # where "" says that there is no such column; elsewhere it is none
T = TypeVar("T")


# The comment beside a field is what `labelsieve presets --keys` says of it (config/setting_words.py).


@dataclass(frozen=True)
class DataConfig:
    source: str = "digits"  # as on the command line: cifar10:PATH, arrays:FILE.npz, ...
    limit: int | None = None  # train on a fixed, class-stratified subset of this size
    test_limit: int | None = None  # measure accuracy on such a subset of the test pictures
    noise: str = "none"  # wrong labels to make on purpose: sym:0.5, asym:0.4, pair:0.3, file:FILE, ...
    noise_seed: int | None = None  # of that noise; none: the run's seed
    trusted: str | None = None  # a file of ids whose labels are surely right: always taken as clean
    decisions: str | None = None  # a reviewed run; in a run folder: its round.json, with what people decided before it
    on_conflict: str = "refuse"  # where reviewers disagree: refuse, latest (the later one counts) or undecided


@dataclass(frozen=True)
class TrainingConfig:
    epochs: int | None = 60  # in all, the warm-up included; none: by the noise estimated after the warm-up
    quick: bool = False  # only rank labels: lengths by the number of samples, in place of those said here
    warmup: int = 8  # epochs of plain cross-entropy before the first division
    guess_passes: int = 1  # to guess from a step's weak views; 1: all together, 2: labelled apart, 4: each view (as published)
    norm_devices: int = 1  # BatchNorm as with DataParallel on so many GPUs: each normalises its part, the first is remembered
    entropy_penalty: bool = False  # negative entropy in the warm-up, for asymmetric noise
    batch: int = 128  # labelled identities a step, and as many unlabelled ones; 0: by the pictures' size and number
    warmup_batch: int = 128  # samples a step of the warm-up; 0: by the pictures' size and number
    lr: float = 0.02  # learning rate of the networks, until it drops; 0: vectors find it, and how long the warm-up is, in a trial
    schedule: str = "step"  # how the learning rate falls: step (at lr_drop) or cosine (to lr / lr_drop_factor at the end)
    lr_drop: float = 0.5  # where the learning rate drops, as a share of all epochs
    lr_drop_factor: float = 10.0  # what the learning rate is divided by there
    momentum: float = 0.9  # of SGD, for networks and prototypes
    weight_decay: float = 5e-4  # of SGD, for networks and prototypes
    lambda_u: float | None = None  # weight of the unlabelled loss, which decides most; none: by the noise estimated after warm-up
    mixed: bool | None = None  # mixed epochs after the warm-up; false: plain ones to the end; none: by the estimated noise
    ramp_epochs: int = 16  # so long after the warm-up, lambda_u grows from 0 to its full weight
    temperature: float = 0.5  # targets are sharpened as p^(1/temperature)
    beta: float | None = 4.0  # mixing shares are drawn from Beta(beta, beta); none: by network and size
    prior: str = "uniform"  # what the penalty pulls towards: uniform, given (labels' frequencies) or file:FILE
    prior_weight: float = 1.0  # of the penalty that pulls predictions towards the prior
    train_unlabelled: bool = True  # false: only the labelled half is trained on, as on the web sets
    epoch_batches: int = 0  # each network draws so many batches of rows an epoch, divides and trains on them; 0: all rows
    epoch_draw: str = "balanced"  # how they are drawn: balanced (as many of each class as there are) or random


@dataclass(frozen=True)
class CleaningConfig:
    mixture_threshold: float | None = None  # strictly above: clean by loss; none: by the estimated noise
    mixture_memory: int | None = None  # mean of so many last loss vectors goes into the mixture; none: by the estimated noise
    mixture_range: str = "all"  # losses are brought to 0..1 over all labels (ruling 7), or over each class's (class)
    tau: float = 0.5  # strictly above: clean by prototype
    prototype_prior: float = 0.5  # share of right labels expected beforehand; 0.5: the score as it is, a chance at even odds
    prototype_memory: int | None = None  # mean of so many last scores is judged by; none: 5 if they warm up so long, else 1
    prototype_warmup: float = 0.05  # e, as a share of all epochs, counted from the end of the warm-up
    prototype_teacher: str = "peer"  # whose mixture teaches a network's prototypes: peer (ruling 1) or own
    judge_first: bool = False  # prototypes judge before they learn, as in Algorithm 1; false: after, as in section 4.1 (ruling 1)
    prototype_views: str = "plain"  # pictures whose features prototypes learn from: plain (ruling 3) or weak, a weak view of each
    least_clean: float | None = None  # at least this share of labels is taken as clean; none: by the estimated noise
    alpha: float = 0.0  # weight of the confident samples among the noisy ones
    dim: int = 128  # d, of projected features and prototypes
    projector_depth: int = 1  # layers of the projector; 1: linear
    cosine: float = 0.0  # 0: plain products (ruling 2); otherwise cosine scores at this scale
    passes: int = 1  # passes of stage 1 over the training set, each epoch
    prototype_lr: float | None = None  # learning rate of projector and prototypes; none: the networks'


@dataclass(frozen=True)
class PicturesConfig:
    """How one's own pictures are read; see `labelsieve.data.pictures.options`. None: found out."""

    image_column: str | None = None  # of a table: where paths are; none, here and for the next three: found by usual names
    label_column: str | None = None  # where labels are
    id_column: str | None = None  # where names of samples are
    split_column: str | None = None  # train, val or test; here and for ids, "": there is none, whatever columns are called
    root: str | None = None  # the folder that a table's paths start from; none: the table's own
    outside: bool = False  # paths and links may leave the root
    encoding: str | None = None  # of a table's text; none: UTF-8
    classes: tuple[str, ...] | None = None  # the labels that may occur, in order
    skip_unlabelled: bool = False  # leave rows without a label out
    val: str | None = None  # labelled pictures to measure on, in any layout; none: the data's own test or val split
    size: int | None = None  # the side in pixels; none: by the median of the shorter sides
    white: int | None = None  # the value that is white in 16-bit grey, such as 4095; none: by the largest value of all
    fit: str = "crop"  # crop: shorter side resized, middle kept; squash: both sides resized
    mirror: bool = True  # a mirrored picture is still the same thing
    cache_dir: str | None = None  # of the decoded pictures; none: the user's cache folder
    by_content: bool = False  # recognise a changed file by its content, not by its size and time
    strict: bool = False  # one unreadable picture ends the run
    workers: int | None = None  # decoding processes; none: one a core
    labels_file: str | None = None  # the labels of an .npy file of vectors
    second_test: str | None = None  # a folder with ILSVRC12's validation pictures, for webvision; none: looked for in its folder
    incomplete: bool = False  # train on a web set although many of its listed pictures are missing


@dataclass(frozen=True)
class FeaturesConfig:
    use: str = "none"  # frozen: two small heads learn from a pretrained network's features; none: networks learn from the pixels
    backbone: str | None = None  # that network, by timm's name
    weights: str | None = None  # a file with its weights; none: timm's own, downloaded unless they are here. Runs keep a copy
    sha256: str | None = None  # of these weights, found out when the run begins
    offline: bool = False  # download nothing


@dataclass(frozen=True)
class ViewsConfig:
    policy: str = "auto"  # strong views: auto (AutoAugment, or upright if not to be mirrored), none (weak), by-network (either)
    crop: int | None = None  # the side that networks see, cut at random from larger pictures; none: the whole picture


@dataclass(frozen=True)
class EngineConfig:
    threads: int = 0  # of a CPU; 0: OMP_NUM_THREADS, or 1 for tiny pictures and as many as usable cores (8 at most) for others
    eval_batch: int = 512  # samples that are looked at together; 0: by the pictures' size
    pictures: str = "auto"  # where they lie: device, host (sent as needed), auto: on the device if it has twice the room
    precision: str = "auto"  # float32, tf32 or bf16 (weights stay float32); auto: bf16 on CUDA
    compile: bool | None = None  # compile the networks and the steps of stage 1; none: on CUDA, where triton and a C compiler are
    capture: bool | None = None  # steps as CUDA graphs; none: on CUDA
    deterministic: bool = False  # kernels that repeat bit for bit, where torch has them; a CPU run does so anyway


@dataclass(frozen=True)
class OutputConfig:
    model: str = "last"  # which epoch's networks are kept as the model: last, or best-val (best on validation pictures)
    checkpoint_seconds: float = 20.0  # at most this much work is lost by a kill
    slim_checkpoint: bool = False  # at a stop, also one in small files for copying, without momentum and in half precision
    history_mib: int = 64  # bound on the memory of the scores' history


@dataclass(frozen=True)
class Config:
    version: int = VERSION  # of the form of this file; it stays
    method: str = "cpc"  # ce, dividemix, augdmix or cpc
    cleaner: str = "cpc-awr"  # gmm-agn, gmm-awr, cpc-agn, cpc-awr, contrastive, or one that was registered
    network: str = "small"  # as for --network; auto: by the pictures' size, their number and the device when the run begins
    pretrained: str | None = None  # weights to start from: a file, or zoo for those of timm:NAME
    own: Mapping[str, Any] = field(default_factory=dict)  # the method's own settings, a section that bears its name
    seed: int = 0  # of weights, order, views and noise
    device: str = "auto"  # auto, cpu, cuda or cuda:N
    data: DataConfig = field(default_factory=DataConfig)
    pictures: PicturesConfig = field(default_factory=PicturesConfig)
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)
    views: ViewsConfig = field(default_factory=ViewsConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    output: OutputConfig = field(default_factory=OutputConfig)


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
    short = {known.rpartition(".")[2]: known for known in keys}
    raise UsageError(f'setting "{key}" is not known{suggest(key, [*keys, *short])}; `labelsieve presets --keys` lists all')


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
    from labelsieve.config.sections import own_keys  # the methods are loaded where one of their keys is named, and not before

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
    elif hint is str and isinstance(value, str):
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


def _shown(value: Any) -> str:
    """A value as it was written; lists and tables by their kind, for a few lines of YAML can be one that fills the memory."""
    return f"a {type(value).__name__}" if isinstance(value, (list, tuple, dict, set)) else repr(value)


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


def from_yaml(text: str, place: str) -> Config:
    """The configuration in a file; `place` names it in errors. Missing keys take their defaults, unknown ones are errors."""
    try:
        tree = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
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
