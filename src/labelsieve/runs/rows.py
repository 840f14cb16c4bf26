"""The rows of a run: its samples, with the noise that was made and what people decided. No network is built here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelsieve.config.schema import Config
from labelsieve.data.label_files import Noise, label_hash
from labelsieve.data.noise import inject
from labelsieve.data.noisy_data import Collection, Held, NoisyData, Truth
from labelsieve.data.pictures.listing import LeftOut
from labelsieve.data.pictures.opening import Opened
from labelsieve.data.pictures.presence import Known
from labelsieve.decisions.decision import DROP, LABELLING, UNSURE
from labelsieve.errors import ToolError, suggest
from labelsieve.runs.own import Watch, open_rows
from labelsieve.runs.rounds import Carried, Round, round_of

if TYPE_CHECKING:
    pass


def decided_rows(rows: "Rows", begun: Round) -> "Rows":
    """The rows of the round; decisions on samples that are no longer in the data are passed over, with a note."""
    row = {name: number for number, name in enumerate(rows.data.ids)}
    here = [one for one in begun.carried if one.decision.id in row]
    gone = [one for one in begun.carried if one.decision.id not in row]
    if not here:
        raise ToolError(
            f"none of the {len(begun.carried)} decisions of {begun.parent} is about a sample of these data (the first is about "
            f'"{gone[0].decision.id}"); name the data that were reviewed'
        )
    labels = relabelled(rows, here, [row[one.decision.id] for one in here], begun.parent)
    pinned = torch.zeros(len(labels), dtype=torch.bool) if rows.pinned is None else rows.pinned.clone()
    stays = torch.ones(len(labels), dtype=torch.bool)
    decided = [""] * len(labels)
    for one in here:
        place, action = row[one.decision.id], one.decision.action
        pinned[place] = action in LABELLING
        stays[place] = action != DROP
        decided[place] = action
    index = torch.nonzero(stays).flatten()
    if not len(index):
        raise ToolError(f"{begun.parent}: every sample was dropped there; nothing is left to train on")
    said = _words(begun, here, gone)
    return _chosen(replace(rows, data=rows.data.relabelled(labels), pinned=pinned, notes=(*rows.notes, *said)), decided, index)


def relabelled(rows: "Rows", here: Sequence[Carried], places: Sequence[int], parent: str) -> Tensor:
    """The labels (N,) with what people said in them."""
    classes = rows.data.classes
    number = {name: k for k, name in enumerate(classes)}
    labels = rows.data.labels.clone()
    for one, place in zip(here, places):
        label = one.decision.label
        if label is None:
            continue
        if label not in number:
            raise ToolError(
                f'{parent}: "{one.decision.id}" was decided to be "{label}", which is not one of {len(classes)} classes'
                f"{suggest(label, classes)}; name the data that were reviewed"
            )
        labels[place] = number[label]
    return labels


def _chosen(rows: "Rows", decided: Sequence[str], index: Tensor) -> "Rows":
    """The rows at `index` (M,), with all that belongs to them."""
    found, noise = rows.collection, rows.noise
    truth = None if found.truth is None else Truth(found.truth.labels[index])
    paths = None if found.paths is None else tuple(found.paths[i] for i in index.tolist())
    original, labels = found.train.labels[index], rows.data.labels[index]
    if noise is not None:  # what is still wrong of what was made wrong
        noise = replace(noise, labels=labels, flipped=labels != original, sha256=label_hash(labels))
    assert rows.pinned is not None
    return replace(
        rows,
        data=rows.data.rows(index),
        truth=None if rows.truth is None else Truth(rows.truth.labels[index]),
        collection=replace(found, train=found.train.rows(index), truth=truth, paths=paths),
        noise=noise,
        pinned=rows.pinned[index],
        decided=tuple(decided[i] for i in index.tolist()),
    )


def _words(begun: Round, here: Sequence[Carried], gone: Sequence[Carried]) -> list[str]:
    count = {action: sum(one.decision.action == action for one in here) for action in (*LABELLING, DROP, UNSURE)}
    changed = sum(one.decision.label not in (None, one.given) for one in here)
    pinned = _counted(sum(count[action] for action in LABELLING), "label is", "labels are")
    words = [
        f"round {begun.number}, on {_counted(begun.used, 'decision', 'decisions')}: {pinned} pinned as right ({changed:,} of "
        f"them corrected), {_counted(count[DROP], 'sample is', 'samples are')} left out"
    ]
    if count[UNSURE]:
        words[0] += f"; {_counted(count[UNSURE], 'more, unsure, stays', 'more, unsure, stay')} in doubt"
    lost = [one.decision.id for one in gone if one.decision.action != DROP]
    if lost:
        told = _counted(len(lost), "decision is about a sample that is", "decisions are about samples that are")
        words.append(f"{told} not trained on here, such as {lost[0]}")
    return words


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


@dataclass(frozen=True)
class Rows:
    """A run's rows: what trains, and apart from it what is known to be true, and what noise was made.

    Of one's own data also how they were opened, which rows are pinned as clean (N,), and what was left out.
    """

    data: NoisyData
    truth: Truth | None
    test: Held | None
    collection: Collection
    noise: Noise | None
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
        made = inject(spec, data.labels, classes, seed, groups=found.groups, name=found.name, samples=data.images)
        # Labels that were given before the noise was made are what is true of it, unless the source knows better.
        truth = truth or Truth(data.labels)
        data = data.relabelled(made.labels)
    notes, begun = opened.notes, round_of(config)
    val = None if opened.opened is None else opened.opened.val
    rows = Rows(data, truth, found.test, found, made, opened.opened, opened.pinned, opened.left_out, notes=notes, val=val)
    rows = replace(rows, memories=opened.memories)
    return rows if begun is None else decided_rows(rows, begun)
