"""The rows of a run: its samples, with the noise that was made and what people decided. No network is built here."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from labelsieve.config.elsewhere import is_trained_on, rooted_for, suited_to
from labelsieve.config.schema import Config
from labelsieve.data.label_files import Noise
from labelsieve.data.noise import inject
from labelsieve.data.noisy_data import Collection, Held, NoisyData, Truth
from labelsieve.data.pictures.decoding import Progress, decoded
from labelsieve.data.pictures.held import Found, check_measurable, labelled_pictures
from labelsieve.data.pictures.listing import LeftOut
from labelsieve.data.pictures.opening import Check, Opened, Tell
from labelsieve.data.pictures.options import PictureOptions, picture_options
from labelsieve.data.pictures.presence import Known
from labelsieve.data.side_files import check_labels, pinned_rows
from labelsieve.data.sources import OWN, limited, load_data, open_own, tested_on
from labelsieve.engine.device import choose_device
from labelsieve.runs.features import Shown, embedder_of, is_frozen
from labelsieve.runs.rounds import decided_rows, round_of

CPU_SIZE = 64
SAME = "--val names the training pictures themselves: accuracy is measured on what was learnt, by labels that may be wrong"


@dataclass(frozen=True)
class Watch:
    """How the reading of data is shown: `progress` as it goes, `tell` once before decoding. None: not at all."""

    progress: Progress | None = None
    tell: Tell | None = None
    shown: Shown = field(default_factory=Shown)


@dataclass(frozen=True)
class Rows:
    """A run's rows: what trains, and apart from it what is known to be true, and what noise was made.

    Of your own data also how they were opened, which rows are pinned as clean (N,), and what was left out.
    """

    data: NoisyData
    truth: Truth | None
    test: Held | None
    collection: Collection
    noise: Noise | None
    opened: Opened | None = None  # None for named data sets
    pinned: Tensor | None = None
    left_out: tuple[LeftOut, ...] = ()
    decided: tuple[str, ...] | None = None  # (N,) what a person did in an earlier round, or ""
    notes: tuple[str, ...] = ()
    val: Held | None = None  # clean pictures to choose a model with, where the source has such a split
    memories: tuple[Path, ...] = ()  # which picture files were there, for a run that is resumed when some are gone


def rows_for(config: Config, watch: Watch | None = None, known: Known | None = None) -> Rows:
    """Open the data, make the noise, and do as people decided in earlier rounds. `known` are the files a run started with."""
    rows = open_rows(config, watch, known)
    if config.data.noise != "none":
        rows = _with_noise(rows, config)
    begun = round_of(config)
    return rows if begun is None else decided_rows(rows, begun)


def _with_noise(rows: Rows, config: Config) -> Rows:
    """Labels that were given before the noise was made are what is true of it, unless the source knows better."""
    data, found = rows.data, rows.collection
    seed = config.seed if config.data.noise_seed is None else config.data.noise_seed
    spec, classes = config.data.noise, len(data.classes)
    made = inject(spec, data.labels, classes, seed, groups=found.groups, name=found.name, samples=data.images, ids=data.ids)
    return replace(rows, data=data.relabelled(made.labels), truth=rows.truth or Truth(data.labels), noise=made)


def sized_for(options: PictureOptions, device: str) -> PictureOptions:
    """Without a GPU, pictures whose size nobody named are kept to 64 px: larger ones take days there."""
    on_cpu = choose_device(device).type == "cpu"
    return replace(options, largest=CPU_SIZE) if on_cpu and options.size is None else options


def open_rows(config: Config, watch: Watch | None = None, known: Known | None = None) -> Rows:
    """The data that a configuration names, in full or to its limit, with its measuring pictures and trusted ids."""
    watch = watch or Watch()
    options, opened = picture_options(config.pictures), None
    options = replace(options if is_frozen(config) else sized_for(options, config.device), known=known or {})
    embedder = embedder_of(config, watch.shown)
    if config.data.source.partition(":")[0] in OWN:
        check, read = _check_for(config, known), decoded if embedder is None else embedder.of_listing
        tell = watch.tell if embedder is None else None  # an embedder tells of itself
        opened = open_own(config.data.source, options, watch.progress, tell, config.data.limit, check, read)
    source = load_data(config.data.source, options.skip_unlabelled, options.white) if opened is None else opened
    found, notes = source.collection, source.notes
    if embedder is not None and not (opened is not None and opened.layout.has_pictures):
        found = embedder.of_collection(found if config.data.limit is None else limited(found, config.data.limit), watch.progress)
    if not config.pictures.mirror:  # arrays and known data sets say it of themselves, and the user knows better
        found = replace(found, mirror=False)
    left_out = () if opened is None else opened.left_out
    memories = [None if opened is None else opened.memory]
    if config.pictures.val is not None:
        told = replace(config, pictures=replace(config.pictures, white=config.pictures.white or found.white))
        shape, classes = tuple(found.train.images.shape[1:]), found.train.classes
        measured = measuring_pictures(told, shape, classes, watch.progress, known, Shown(by=watch.shown.by))
        found, left_out = replace(found, test=measured.held), (*left_out, *measured.left_out)
        notes, memories = (*notes, *measured.notes), [*memories, measured.memory]
        if measured.split == "all" and is_trained_on(Path(config.pictures.val), config.data.source.partition(":")[2]):
            notes = (*notes, SAME)
    if opened is not None and opened.layout.kind == "clothing1m" and config.pretrained is None:
        notes = (*notes, "the paper starts from ImageNet's weights here: --pretrained FILE with a ResNet-50's")
    whole = found.train.ids
    if config.data.limit is not None:
        found = limited(found, config.data.limit)
    if config.data.test_limit is not None:
        found = tested_on(found, config.data.test_limit)
    pinned = None
    if config.data.trusted is not None:
        pinned = trusted_rows(Path(config.data.trusted), found, opened, {row.id for row in left_out} | set(whole))
        notes = (*notes, f"{int(pinned.sum()):,} labels are trusted: taken as clean throughout")
    return Rows(
        found.train,
        found.truth,
        found.test,
        found,
        noise=None,
        opened=opened,
        pinned=pinned,
        left_out=left_out,
        notes=notes,
        val=None if opened is None else opened.val,
        memories=tuple(memory for memory in memories if memory is not None),
    )


def trusted_rows(path: Path, found: Collection, opened: Opened | None, listed: set[str]) -> Tensor:
    """Which training rows the file of trusted ids names; `listed` may be named, too, and not be trained on."""
    check_labels(path, found.train.ids, [found.train.classes[code] for code in found.train.labels.tolist()])
    if opened is None:
        return pinned_rows(path, found.train.ids, listed)
    return pinned_rows(path, found.train.ids, listed | set(opened.undrawn), opened.measured)


def measuring_pictures(
    config: Config,
    shape: Sequence[int],
    classes: Sequence[str],
    progress: Progress | None,
    known: Known | None = None,
    shown: Shown | None = None,
) -> Found:
    """What `--val` names, as a model of that shape and these classes reads it; its table may have columns of its own."""
    path, options = _measuring(config, known)
    embedder = embedder_of(config, shown)
    if embedder is None:
        return labelled_pictures(path, options, shape, classes, progress)
    return labelled_pictures(path, options, shape, classes, progress, embedder.of_listing, embedder.of_collection)


def _measuring(config: Config, known: Known | None) -> tuple[Path, PictureOptions]:
    assert config.pictures.val is not None
    path, home = Path(config.pictures.val), config.data.source.partition(":")[2]
    chosen = rooted_for(path, suited_to(path, config.pictures, home), home, known)
    return path, replace(picture_options(chosen), known=known or {})


def _check_for(config: Config, known: Known | None) -> Check | None:
    """What `--val` names is looked at before the training pictures are decoded, which may take hours."""
    return None if config.pictures.val is None else lambda classes: check_measurable(*_measuring(config, known), classes)
