"""Who judges labels without having seen them: heads on vectors, and of a few thousand pictures networks trained by folds, too.

Networks that train on a few thousand labels memorise the wrong ones long before they know the classes. So heads judge, on what
the pictures' small patches say, together with networks of the run's own kind, each trained without the fold it judges.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from labelsieve.config.fitting import may_be_judged_by_heads
from labelsieve.config.schema import Config, override
from labelsieve.data.pictures.decoding import Progress
from labelsieve.engine.device import choose_device
from labelsieve.methods.epochs import learn
from labelsieve.methods.parts.heads import HEADS, HeldOut, folds_of, held_out
from labelsieve.methods.parts.patches import patch_vectors
from labelsieve.methods.parts.scaling import compact
from labelsieve.runs.rows import Rows
from labelsieve.train.build import engine_for, make_for, method_for, only, views_of

OF_PATCHES = HEADS[:2]  # ridge and logistic; patches make poor neighbours (LOG.md)
PLAIN = {"method": "ce", "cleaner": "gmm-agn"}
FOLD = {"training.epochs": 15, "training.schedule": "cosine", "training.lr": 0.05, "training.lr_drop_factor": 1000.0}


def held_for(config: Config, rows: Rows, progress: Progress | None = None) -> HeldOut | None:
    """By those who have not seen the labels; None where a run's own networks judge. `progress` hears of their epochs."""
    if not heads_judge(config, rows.data.are_vectors):
        return None
    images, labels, classes = rows.data.images, rows.data.labels, len(rows.data.classes)
    if rows.data.are_vectors:
        return held_out((compact(images, alike) for alike in (False, True)), labels, classes, config.seed)
    vectors = patch_vectors(images, rows.collection.mirror, config.seed)
    heads = held_out([vectors], labels, classes, config.seed, OF_PATCHES)
    return heads.beside(out_of_fold(config, rows, folds_of(labels, config.seed), FOLD, progress))


def heads_judge(config: Config, vectors: bool) -> bool:
    """As `cleaning.judge` says, where they may."""
    if not may_be_judged_by_heads(config):
        return False
    return config.cleaning.judge == "heads" or (vectors and config.cleaning.judge == "auto")


def out_of_fold(config: Config, rows: Rows, fold: Tensor, settings: dict[str, Any], progress: Progress | None = None) -> Tensor:
    """Softmax (N, K) of every row by a network that has not seen its `fold` (N,): plain cross-entropy on weak views."""
    config = override(config, PLAIN | settings)
    device, data = choose_device(config.device), rows.data
    views, make = views_of(rows.collection, config.views), partial(make_for, config, rows.collection, device)
    probs = torch.zeros(len(data), len(data.classes))
    folds = int(fold.max()) + 1
    for number in range(folds):
        taken, held = (torch.nonzero(each).flatten() for each in (fold != number, fold == number))
        part = data.rows(taken)
        engine, method = engine_for(config, part, views, device), method_for(config, part, only(make(), number), device)
        engine.adopt(method)
        epochs = method.training.epochs
        for epoch in learn(method, engine, stop=epochs):
            if progress is not None:
                progress("judging", number * epochs + epoch.index + 1, folds * epochs)
        probs[held] = engine.predict(method.nets[0], engine.place(data.images[held])).logits.softmax(1).cpu()
    return probs
