"""The rows of a run: its samples, with the noise that is made and what people decided. No network is built here."""

from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from labelsieve.config.schema import Config
from labelsieve.data import noise as label_noise
from labelsieve.data.noisy_data import Collection, Held, NoisyData, Truth
from labelsieve.data.pictures.listing import LeftOut
from labelsieve.data.pictures.memory import Known
from labelsieve.data.pictures.opening import Opened
from labelsieve.runs.decided import decided_rows
from labelsieve.runs.own import Watch, open_rows
from labelsieve.runs.rounds import round_of


@dataclass(frozen=True)
class Rows:
    """A run's rows: what trains, and apart from it what is known to be true, and what noise was made.

    Of one's own data also how they were opened, which rows are pinned as clean (N,), and what was left out.
    """

    data: NoisyData
    truth: Truth | None
    test: Held | None
    collection: Collection
    noise: label_noise.Noise | None
    opened: Opened | None = None
    pinned: Tensor | None = None
    left_out: tuple[LeftOut, ...] = ()
    decided: tuple[str, ...] | None = None  # (N,) what a person did in an earlier round, or ""
    notes: tuple[str, ...] = ()
    val: Held | None = None  # clean pictures to choose a model with, where the source has such a split
    memories: tuple[Path, ...] = ()  # which picture files were there, for a run that is taken up when some are gone


def rows_for(config: Config, watch: Watch | None = None, known: Known | None = None) -> Rows:
    """Open the data, make the noise, and do as people decided in earlier rounds. `known` are the files that a run began with."""
    opened = open_rows(config, watch, known)
    found = opened.collection
    data, truth, made = found.train, found.truth, None
    if config.data.noise != "none":
        seed = config.seed if config.data.noise_seed is None else config.data.noise_seed
        spec, classes = config.data.noise, len(data.classes)
        made = label_noise.inject(spec, data.labels, classes, seed, groups=found.groups, name=found.name, samples=data.images)
        # Labels that were given before the noise was made are what is true of it, unless the source knows better.
        truth = truth or Truth(data.labels)
        data = data.relabelled(made.labels)
    notes, begun = opened.notes, round_of(config)
    val = None if opened.opened is None else opened.opened.val
    rows = Rows(data, truth, found.test, found, made, opened.opened, opened.pinned, opened.left_out, notes=notes, val=val)
    rows = replace(rows, memories=opened.memories)
    return rows if begun is None else decided_rows(rows, begun)
