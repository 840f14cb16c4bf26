"""Checks what a run's settings name before any long work: networks, devices, files, and where the run folder may be."""

import os
from pathlib import Path

from labelsieve.backbones.weights import read_weights
from labelsieve.config.elsewhere import suited_to
from labelsieve.config.schema import Config
from labelsieve.data.pictures.options import picture_options
from labelsieve.data.pictures.recognise import recognise
from labelsieve.data.pictures.tables import open_table
from labelsieve.data.side_files import class_and_number, read_ids
from labelsieve.engine.device import choose_device
from labelsieve.engine.fast import speed_for
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.nets import check_name as check_network
from labelsieve.runs.features import check_backbone


def lies_inside(out: Path, source: str) -> bool:
    """Whether a place is the folder that a source names, or below it."""
    place = Path(source.partition(":")[2] or os.devnull).expanduser()
    top, new = os.path.realpath(place), os.path.realpath(out.expanduser())
    return place.is_dir() and (new == top or new.startswith(top.rstrip(os.sep) + os.sep))


def check_place(out: Path, config: Config) -> None:
    """A `UsageError` for a run folder or an export among your own pictures, where it would be data of the next run."""
    name, _, place = config.data.source.partition(":")
    if name == "pictures" and lies_inside(out, config.data.source):
        raise UsageError(f"{out}: it lies inside the data {place}, which stay as they are; choose another --out")


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
