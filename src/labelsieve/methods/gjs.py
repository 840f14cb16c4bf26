"""`gjs`: one network whose loss pulls two strong views of a sample and its given label towards each other.

Englesson, Azizpour: Generalized Jensen-Shannon Divergence Loss for Learning with Noisy Labels, NeurIPS 2021. It lies between
cross-entropy and the mean absolute error, and asks for consistency where labels are wrong. Theirs, as the CPC paper reports it:
CIFAR-10 sym 20/80 %, asym 40 %: 95.33, 79.11, 89.65; CIFAR-100 sym: 75.71, 44.49; WebVision 79.28. Ours at full length: not run.
Letters: pi the weight of the label, d the distributions (the label and each view's softmax), m their weighted mean,
Z = -(1 - pi) log(1 - pi).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from labelsieve.config.setting import setting
from labelsieve.methods.contract import Cell, Look, Make, Method, Phase, Terms, View
from labelsieve.methods.net import Net
from labelsieve.methods.parts import streams

LEAST = 1e-7  # shares below it count as it, so that logarithms stay finite


def cell(published: float, lr: float, weight_decay: float, pi: float) -> Cell:
    """A CIFAR cell as they ran it. Of symmetric noise they printed 20, 40, 60 and 80 %."""
    return Cell(
        published,
        {
            "network": "preact-resnet34",
            "training.epochs": 400,
            "training.batch": 128,
            "training.lr": lr,
            "training.schedule": "step",
            "training.lr_drop": 0.5,
            "training.lr_drop_factor": 10.0,
            "training.weight_decay": weight_decay,
            "views.policy": "auto",
            "engine.eval_batch": 2000,
        },
        {"pi": pi},
    )


class Gjs(Method):
    """There is no selection and no memory, and you don't need to know the noise rate; but the best pi was another for each cell.

    Its authors left out the last, short batch; here it is filled up. Their strong views are RandAugment with Cutout, here
    `views.policy`. On WebVision their rate falls by a share in every epoch, here along half a cosine.
    """

    name = "gjs"
    costs = "2 views trained on"
    varies = True
    cells: ClassVar[Mapping[str, Cell]] = {
        "cifar10-sym20": cell(95.33, 0.1, 5e-4, 0.3),
        "cifar10-sym80": cell(79.11, 0.1, 5e-4, 0.1),
        "cifar10-asym40": cell(89.65, 0.1, 1e-3, 0.3),
        "cifar100-sym20": cell(75.71, 0.2, 5e-5, 0.3),
        "cifar100-sym80": cell(44.49, 0.2, 5e-5, 0.1),
        "webvision": Cell(
            79.28,
            {
                "network": "resnet50",
                "training.epochs": 300,
                "training.batch": 32,
                "training.lr": 0.1,
                "training.schedule": "cosine",
                "training.lr_drop_factor": 1e4,
                "training.weight_decay": 1e-4,
                "training.epoch_batches": 0,
                "views.policy": "none",
            },
            {"pi": 0.1, "scaled": False},
        ),
    }

    @dataclass(frozen=True)
    class Config:
        pi: float = setting(0.3, "weight of the given label against both views; near 0: cross-entropy, near 1: absolute error",
                            low=0.001, high=0.999)  # fmt: skip
        scaled: bool = setting(True, "divide by Z, which keeps gradients alike for every pi; WebVision: false")

    def build(self, make: Make) -> None:
        self.nets = [make(0, nesterov=True)]

    def lr_at(self, epoch: float) -> float:
        """Two drops: where the run's one is, and half-way from there to the end."""
        drop, end, t = self.training.lr_drop_epoch, self.training.epochs, self.training
        if t.schedule == "step" and epoch >= (drop + end) / 2 > drop:
            return t.lr / t.lr_drop_factor**2
        return t.lr_at(epoch)

    def phases(self, epoch: int, look: Look) -> Iterator[Phase]:
        net = self.net
        order = self.order(net, epoch, self.stream(streams.PLAN, epoch, net))
        yield Phase(
            "consistency",
            gjs_step,
            (net,),
            views={"first": View(order, "strong"), "second": View(order, "strong")},
            tensors={"labels": self.facts.given[order], "lr": self.rates(epoch, len(order))},
            fixed=(net, self.c.pi, self.c.scaled),
        )


def gjs_step(net: Net, pi: float, scaled: bool, first: Tensor, second: Tensor, labels: Tensor, lr: Tensor) -> Terms:
    """Each view by itself, as published: BatchNorm sees one after the other."""
    views = torch.stack([net.look(pictures)[0].softmax(1) for pictures in (first, second)])
    loss = divergence(views, labels, pi)
    if scaled:
        loss = loss / z(pi)
    net.descend(loss, lr)
    return {"divergence": loss}


def divergence(views: Tensor, labels: Tensor, pi: float) -> Tensor:
    """sum_i pi_i KL(d_i || m), as a mean over samples; `views` (V, B, K) share the weight 1 - pi evenly."""
    views = views.clamp_min(LEAST)
    given = torch.nn.functional.one_hot(labels, views.shape[2]).to(views.dtype)
    mean = pi * given + (1 - pi) * views.mean(0)
    of_label = -(given * mean.clamp_min(LEAST).log()).sum(1)  # KL(y || m) of a one-hot y
    of_views = (views * (views.log() - mean.clamp_min(LEAST).log())).sum(2).mean(0)
    return (pi * of_label + (1 - pi) * of_views).mean()


def z(pi: float) -> float:
    return -(1 - pi) * math.log(1 - pi)
