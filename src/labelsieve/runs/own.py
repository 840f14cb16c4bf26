"""Opens your own data for a run: the rows, which of them are pinned, and what was left out."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from labelsieve.backbones.weights import read_weights
from labelsieve.config.elsewhere import is_trained_on, rooted_for, suited_to
from labelsieve.config.schema import Config
from labelsieve.data.frequencies import class_and_number
from labelsieve.data.noisy_data import Collection
from labelsieve.data.pictures.decoding import Progress, decoded
from labelsieve.data.pictures.held import Found, check_measurable, labelled_pictures
from labelsieve.data.pictures.listing import LeftOut
from labelsieve.data.pictures.opening import Check, Opened, Tell
from labelsieve.data.pictures.options import PictureOptions, picture_options
from labelsieve.data.pictures.presence import Known
from labelsieve.data.pictures.recognise import recognise
from labelsieve.data.pictures.tables import open_table
from labelsieve.data.sources import OWN, limited, load_data, open_own, tested_on
from labelsieve.data.trusted import check_labels, pinned_rows, read_ids
from labelsieve.engine.device import choose_device
from labelsieve.engine.fast import speed_for
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.nets import check_name as check_network
from labelsieve.runs.features import Shown, check_backbone, embedder_of, is_frozen

CPU_SIZE = 64
SAME = "--val names the training pictures themselves: accuracy is measured on what was learnt, by labels that may be wrong"


@dataclass(frozen=True)
class Watch:
    """How the reading of data is shown: `progress` as it goes, `tell` once before decoding. None: not at all."""

    progress: Progress | None = None
    tell: Tell | None = None
    shown: Shown = field(default_factory=Shown)


@dataclass(frozen=True)
class OpenedRows:
    """`opened` is None for named data sets; `pinned` (N,) is None where no id is trusted.

    `memories` say which files were there.
    """

    collection: Collection
    opened: Opened | None
    pinned: Tensor | None
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    memories: tuple[Path, ...] = ()


def sized_for(options: PictureOptions, device: str) -> PictureOptions:
    """Without a GPU, pictures whose size nobody named are kept to 64 px: larger ones take days there."""
    on_cpu = choose_device(device).type == "cpu"
    return replace(options, largest=CPU_SIZE) if on_cpu and options.size is None else options


def open_rows(config: Config, watch: Watch | None = None, known: Known | None = None) -> OpenedRows:
    """Open the data that a configuration names, in full or to its limit, with its measuring pictures and trusted ids.

    `known` are the files that a run began with.
    """
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
        measured = measuring_pictures(told, tuple(found.train.images.shape[1:]), found.train.classes, watch.progress, known)
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
    return OpenedRows(found, opened, pinned, left_out, notes, tuple(memory for memory in memories if memory is not None))


def lies_inside(out: Path, source: str) -> bool:
    """Whether a place is the folder that a source names, or below it."""
    place = Path(source.partition(":")[2] or os.devnull).expanduser()
    top, new = os.path.realpath(place), os.path.realpath(out.expanduser())
    return place.is_dir() and (new == top or new.startswith(top.rstrip(os.sep) + os.sep))


def check_place(out: Path, config: Config) -> None:
    """A `UsageError` for a run folder or an export among one's own pictures, where it would be data of the next run."""
    name, _, place = config.data.source.partition(":")
    if name == "pictures" and lies_inside(out, config.data.source):
        raise UsageError(f"{out}: it lies inside the data {place}, which stay as they are; choose another --out")


def trusted_rows(path: Path, found: Collection, opened: Opened | None, listed: set[str]) -> Tensor:
    """Which training rows the file of trusted ids names; `listed` may be named, too, and not be trained on."""
    check_labels(path, found.train.ids, [found.train.classes[code] for code in found.train.labels.tolist()])
    if opened is None:
        return pinned_rows(path, found.train.ids, listed)
    return pinned_rows(path, found.train.ids, listed | set(opened.undrawn), opened.measured)


def measuring_pictures(
    config: Config, shape: Sequence[int], classes: Sequence[str], progress: Progress | None, known: Known | None = None
) -> Found:
    """What `--val` names, as a model of that shape and these classes reads it; its table may have columns of its own."""
    path, options = _measuring(config, known)
    embedder = embedder_of(config)
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


def check_names(config: Config) -> None:
    """An error for a network, device or file that the settings name and that is not there, before any long work."""
    if config.network != "auto":
        check_network(config.network)
    check_backbone(config)
    engine = config.engine
    speed_for(choose_device(config.device), engine.precision, engine.compile, engine.capture)
    prior = config.training.prior
    named = {
        "--decisions": config.data.decisions,
        "--trusted": config.data.trusted,
        "--prior": prior.removeprefix("file:") if prior.startswith("file:") else None,
        "--val": config.pictures.val,
        "--root": config.pictures.root,
        "--second-test": config.pictures.second_test,
        "--weights": config.features.weights,
        "--pretrained": None if config.pretrained == "zoo" else config.pretrained,
    }
    for option, text in named.items():
        if text is not None and not Path(text).expanduser().exists():
            near = suggest(Path(text).name, ("uniform", "given")) if option == "--prior" else ""
            more = ": uniform, given, or a table with the columns class and frequency" if option == "--prior" else ""
            raise ToolError(f"{text}: there is no such file or folder{near}; check what {option} names{more}")
    _check_kinds(config)


def _check_kinds(config: Config) -> None:
    """The named files are of the kind that is needed: hours of decoding must not come before such an error."""
    if config.data.trusted is not None:
        read_ids(Path(config.data.trusted))
    if config.training.prior.startswith("file:"):
        table = Path(config.training.prior.removeprefix("file:"))
        class_and_number(open_table(table).columns, table)
    if config.pictures.val is not None:
        val = Path(config.pictures.val)
        recognise(val, picture_options(suited_to(val, config.pictures, config.data.source.partition(":")[2])))
    if config.pretrained not in (None, "zoo"):
        read_weights(Path(str(config.pretrained)))
