"""One rank among several: trains tiny runs of the methods that are named, and leaves what came out of each.

`python at_work.py FOLDER METHOD ...` with RANK and WORLD_SIZE in the environment; ranks meet by a file in FOLDER.
"""

import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tiny_run import Tiny, built
from torch import Tensor

from labelsieve.engine.dist import WHOLE, Ranks
from labelsieve.methods.registry import METHODS

EPOCHS = 5


def tiny(name: str, ranks: Ranks | None = None) -> Tiny:
    """The method on 60 pictures, with a short warm-up, if it has one."""
    kind = METHODS[name]
    known = {field.name for field in fields(kind.Config)}
    short = {key: value for key, value in {"warmup": 1, "prototype_warmup": 1}.items() if key in known}
    run = built(kind, kind.Config(**short), epochs=EPOCHS, lr_drop_epoch=3)
    if ranks is not None:
        run.engine.join(ranks, run.method)
    return run


def trained(run: Tiny) -> dict[str, Tensor]:
    """All epochs: the weights and tables after each, every step's terms, and the verdict."""
    found: dict[str, Tensor] = {}
    steps = 0
    for epoch in run.epochs():
        steps += sum(len(each.values) for each in epoch.trained)
        for i, each in enumerate(epoch.trained):
            found[f"{epoch.index}.terms{i}"] = each.values
        found |= {f"{epoch.index}.{name}": value.clone() for name, value in run.state().items()}
    assert epoch.verdict is not None
    found["chance"], found["shares"] = epoch.verdict.chance, epoch.verdict.shares
    found["steps"] = torch.tensor(steps)
    return found


def main(folder: Path, names: list[str], rank: int, count: int, **how: Any) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=count)
    for name in names:
        found = trained(tiny(name, Ranks(rank, count, os.environ.get("BATCHNORM", WHOLE))))
        torch.save(found, folder / f"{name}.{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), sys.argv[2:], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
