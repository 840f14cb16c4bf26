"""`gjs`: one network whose loss pulls two strong views of a sample and its given label towards each other.

Englesson, Azizpour: Generalized Jensen-Shannon Divergence Loss for Learning with Noisy Labels, NeurIPS 2021. It lies between
cross-entropy and the mean absolute error, and asks for consistency where labels are wrong. Paper, as the CPC paper reports it:
CIFAR-10 sym 20/80 % 95.33, 79.11; CIFAR-100 75.71, 44.49. Not measured here at full length. Letters: pi the weight of the label,
d the distributions (the label and each view's softmax), m their weighted mean, Z = -(1 - pi) log(1 - pi).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from labelsieve.config.setting import setting
from labelsieve.methods.contract import Look, Make, Method, Phase, Terms, View
from labelsieve.methods.net import Net
from labelsieve.methods.parts import streams
from labelsieve.methods.parts.subsets import cycled

LEAST = 1e-7  # shares below it count as it, so that logarithms stay finite


class Gjs(Method):
    name = "gjs"
    costs = "2 views trained on"
    varies = True

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
        net, given, batch = self.nets[0], self.facts.given, self.training.batch
        drawn = self.training.sampler.rows(given, batch, self.stream(streams.DRAW, epoch, net))
        rows = torch.arange(len(given)) if drawn is None else drawn
        steps = math.ceil(len(rows) / batch)
        order = cycled(rows, steps * batch, self.stream(streams.PLAN, epoch, net)).view(steps, batch)
        yield Phase(
            "consistency",
            gjs_step,
            (net,),
            views={"first": View(order, "strong"), "second": View(order, "strong")},
            tensors={"labels": given[order], "lr": self.rates(epoch, steps)},
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
