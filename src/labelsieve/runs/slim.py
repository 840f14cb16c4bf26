"""Slim checkpoints, for copying over narrow links: files of at most 16 MiB, 64 MiB together for two PreAct-ResNet-18.

What is lost: weights are rounded to float16, momentum and the scores' history are left out. A run taken up from one goes on
well (momentum is back within some twenty steps) but not bit for bit.
"""

import re
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

FILE_BYTES = 15 * 2**20
MOMENTUM = re.compile(r"\w+\.((optimiser|judge\d?)\.)?momentum\.\d+")  # ours; networks of users may have parts called so


def slim(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without momenta and history; matrices and larger in float16, vectors and statistics as they are."""
    kept = {name: value for name, value in tensors.items() if not MOMENTUM.fullmatch(name) and not name.startswith("history.")}
    return {name: _rounded(value) for name, value in kept.items()}


def _rounded(value: Tensor) -> Tensor:
    if not value.is_floating_point() or value.ndim < 2:
        return value
    return value.half() if float(value.abs().max()) < torch.finfo(torch.float16).max else value.float()


def shards(tensors: Mapping[str, Tensor], limit: int = FILE_BYTES) -> Iterator[dict[str, Tensor]]:
    """The tensors in groups that fit a file each, in order; one larger than a file is cut into rows (`name#0`, `name#1`)."""
    group: dict[str, Tensor] = {}
    for name, value in _cut(tensors, limit):
        if group and _bytes(group) + value.nbytes > limit:
            yield group
            group = {}
        group[name] = value
    yield group


def joined(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The way back: what was cut into rows is whole again, and what was rounded is float32, for nobody computes in float16."""
    whole: dict[str, list[tuple[int, Tensor]]] = {}
    for name, value in tensors.items():
        stem, _, number = name.partition("#")
        whole.setdefault(stem, []).append((int(number or 0), value.float() if value.dtype == torch.float16 else value))
    return {
        stem: pieces[0][1] if len(pieces) == 1 else torch.cat([piece for _, piece in sorted(pieces, key=lambda p: p[0])])
        for stem, pieces in whole.items()
    }


def _cut(tensors: Mapping[str, Tensor], limit: int) -> Iterator[tuple[str, Tensor]]:
    for name, value in tensors.items():
        if value.nbytes <= limit or value.ndim == 0:
            yield name, value
            continue
        rows = max(1, limit * len(value) // value.nbytes)
        for number, piece in enumerate(value.split(rows)):
            yield f"{name}#{number}", piece.contiguous()


def _bytes(group: Mapping[str, Tensor]) -> int:
    return sum(value.nbytes for value in group.values())
