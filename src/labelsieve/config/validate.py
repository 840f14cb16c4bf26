"""Does a configuration make sense, by itself and for its data? Asked before any long work starts."""

from collections.abc import Collection

from labelsieve.config.method_settings import settings_for
from labelsieve.config.schema import VERSION, CleaningConfig, Config, check_ranges
from labelsieve.data.noise import check_form
from labelsieve.data.noisy_data import NoisyData
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.parts.names import MIXTURES, PROTOTYPES
from labelsieve.methods.parts.own_cleaners import check_cleaner
from labelsieve.methods.registry import method_named
from labelsieve.nets import NETWORKS, VECTOR_NETWORKS

# Settings of training that cross-entropy alone has no use for.
OF_MIXED_EPOCHS = (
    *("guess_passes", "lambda_u", "mixed", "ramp_epochs", "temperature"),
    *("beta", "prior", "prior_weight", "train_unlabelled"),
)
OF_PIXELS = ("pictures.mirror", "views.policy", "views.crop")


def cleaner_of(method: str) -> str:
    """The cleaner that a method has where nothing was said; one that has none leaves the name unused."""
    return next(iter(method_named(method).cleaners), MIXTURES[0])


def validate(config: Config, recorded: bool = False) -> None:
    """A `UsageError` that names the first setting out of its range. What is `recorded` may name another's own cleaner."""
    if config.version != VERSION:
        raise UsageError(f'setting "version" is {config.version}; it names the form of the file, and must stay {VERSION}')
    method_named(config.method)
    if not recorded:
        check_cleaner(config.cleaner)
    check_ranges(config)
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
    return "; ".join(f"{keys}: {reason}, so nothing follows from it" for reason, keys in found.items() if keys)


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
