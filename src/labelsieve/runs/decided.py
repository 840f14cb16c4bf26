"""A run's rows as people decided them.

Confirmed and corrected labels are pinned as clean, dropped samples are gone, "unsure" changes nothing. What is true of a row
stays with it, for measuring only.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelsieve.data import noise as label_noise
from labelsieve.data.noisy_data import Truth
from labelsieve.decisions.decision import DROP, LABELLING, UNSURE
from labelsieve.errors import ToolError, suggest
from labelsieve.runs.rounds import Carried, Round

if TYPE_CHECKING:
    from labelsieve.runs.rows import Rows


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
        noise = replace(noise, labels=labels, flipped=labels != original, sha256=label_noise.label_hash(labels))
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
