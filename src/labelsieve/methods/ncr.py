"""`ncr`: one network, whose predictions are pulled to those of a sample's nearest neighbours in its batch.

Iscen, Valmadre, Arnab, Schmid: Learning with neighbor consistency for noisy labels, CVPR 2022. Theirs, reprinted by others:
CIFAR-10 sym 20/50/80/90 %, asym 40 %: 95.2, 94.3, 91.6, 75.1, 90.7; CIFAR-100 sym: 76.6, 72.5, 58.0, 30.8. Ours at full length:
not run. Letters: v features, f logits, t what the neighbours say, w their weights, T the temperature.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.config.setting import setting
from labelsieve.errors import UsageError
from labelsieve.methods.ce import plain_epoch
from labelsieve.methods.contract import Cell, Look, Method, Phase, Terms, Verdict, View
from labelsieve.methods.net import Net
from labelsieve.methods.parts import losses, streams
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.neighbours import against_the_rest, nearest, weighted_mean

LEAST = 1e-16  # of a share, as published: the logarithm of none is not taken


def cell(published: float, neighbours: int) -> Cell:
    """Their numbers for CIFAR, and their settings for mini-ImageNet, the only ones they gave; in batches of 512 in place of 128,
    in which a class of CIFAR-100 would have one picture."""
    return Cell(
        published,
        {
            "network": "preact-resnet18",
            "training.epochs": 130,
            "training.batch": 512,
            "training.warmup_batch": 512,
            "training.lr": 0.1,
            "training.schedule": "cosine",
            "training.lr_drop_factor": 1e9,
            "training.weight_decay": 5e-4,
            "engine.eval_batch": 2000,
        },
        {"neighbours": neighbours, "weight": 0.3, "starting": 10 / 130, "rise": 5 / 130},
    )


class Ncr(Method):
    """A neighbour counts by the cosine of the features to the power gamma; none that points away counts.

    From an epoch on, cross-entropy shares the loss with the divergence of the softmax at temperature T from the neighbours' mean.
    There is no selection, no memory and no second network, and you don't need to know the noise rate.
    """

    name = "ncr"
    by_nearest = True
    cells: ClassVar[Mapping[str, Cell]] = {
        "cifar10-sym20": cell(95.2, 10),
        "cifar10-sym50": cell(94.3, 100),
        "cifar10-sym80": cell(91.6, 5),
        "cifar10-sym90": cell(75.1, 5),
        "cifar10-asym40": cell(90.7, 100),
        "cifar100-sym20": cell(76.6, 10),
        "cifar100-sym50": cell(72.5, 100),
        "cifar100-sym80": cell(58.0, 5),
        "cifar100-sym90": cell(30.8, 5),
    }

    @dataclass(frozen=True)
    class Config:
        neighbours: int = setting(10, "of a sample in its batch; 0: all of the batch", low=1, zero_is_open=True)
        weight: float = setting(0.5, "of the neighbours in the loss; cross-entropy has the rest", low=0, high=1)
        starting: float = setting(0.08, "share of all epochs that are cross-entropy alone, at the beginning", low=0, high=1)
        gamma: float = setting(1.0, "cosines count to this power", low=1, high=100)
        temperature: float = setting(2.0, "of the softmax that neighbours are compared by", low=0.01, high=100)
        mixup: float = setting(0.0, "mixing shares are drawn from Beta(mixup, mixup); 0: nothing is mixed", low=0, high=1e3)
        rise: float = setting(0.0, "share of all epochs in which the learning rate rises from 0", low=0, high=1)

    def check_data(self) -> None:
        super().check_data()
        check_batch(self.training.batch, self.facts.classes, len(self.facts.given))

    @property
    def start(self) -> int:
        """The first epoch in which neighbours count."""
        return round(self.c.starting * self.training.epochs)

    def lr_at(self, epoch: float) -> float:
        """Up in a straight line first; what follows has the epochs that are left for its whole schedule."""
        rise, last = self.c.rise * self.training.epochs, self.training.epochs
        if epoch < rise:
            return self.training.lr * epoch / rise
        if self.training.schedule == "cosine" and last > rise:
            return super().lr_at((epoch - rise) / (last - rise) * last)
        return super().lr_at(epoch)

    def phases(self, epoch: int, look: Look) -> Iterator[Phase]:
        net = self.net
        if epoch < self.start:
            yield plain_epoch(self, net, epoch, entropy_penalty=False)
            return
        generator = self.stream(streams.PLAN, epoch, net)
        order = self.order(net, epoch, generator)
        steps, batch = order.shape
        tensors = {"labels": self.facts.given[order], "lr": self.rates(epoch, steps)}
        if self.c.mixup:
            tensors["share"] = losses.mixing_shares(steps * batch, self.c.mixup, generator).view(steps, batch)
        fixed = (net, self.facts.classes, self.c)
        yield Phase("neighbours", ncr_step, (net,), {"pictures": View(order, "weak")}, tensors, fixed)

    def verdict(self, look: Look) -> Verdict:
        """By what the nearest of all samples say of the label, and by the network's own belief in it."""
        seen = look.evidence(self.nets[0])
        chance = against_the_rest(self.said_by_neighbours(seen), seen.labels)
        return self.judged((seen,), {"neighbours": (chance,)}, (chance,))

    def said_by_neighbours(self, seen: Evidence) -> Tensor:
        """The neighbours' mean softmax (N, K), weighted as in training, over the whole set."""
        count = self.c.neighbours or self.training.batch - 1
        cosines, rows = nearest(seen.features, count, itself=False)
        return weighted_mean(normalised(cosines.clamp_min(0) ** self.c.gamma), rows, seen.probs)


def check_batch(batch: int, classes: int, samples: int) -> None:
    """A `UsageError` where a batch can hardly have two samples of one class: the nearest would be those of other classes."""
    if batch < classes or batch < 4:
        enough = 2 ** math.ceil(math.log2(max(4 * classes, 4)))
        larger = f"--set training.batch={enough} (in Python batch_size={enough}), or "
        raise UsageError(
            f"method ncr compares samples of one batch, and in a batch of {batch} from {classes} classes hardly any two share a "
            f"class; use {larger if samples >= enough else ''}--method ssr+, which compares all"
        )


def ncr_step(
    net: Net,
    classes: int,
    c: Ncr.Config,
    pictures: Tensor,
    labels: Tensor,
    lr: Tensor,
    share: Tensor | None = None,
) -> Terms:
    """One step on B weak views. Mixed with the batch in reverse order, each by a share of its own, if there are shares (B,)."""
    wanted = F.one_hot(labels, classes).float()
    if share is not None:
        pictures = losses.mix(pictures.float(), pictures.flip(0).float(), share.view(-1, *[1] * (pictures.dim() - 1)))
        wanted = losses.mix(wanted, wanted.flip(0), share.unsqueeze(1))
    logits, v = net.look(pictures)
    cross_entropy = losses.labelled_loss(logits, wanted)
    neighbours = net.fuse(neighbour_loss)(logits, v, c.neighbours, c.gamma, c.temperature)
    net.descend((1 - c.weight) * cross_entropy + c.weight * neighbours, lr)
    return {"cross_entropy": cross_entropy, "neighbours": neighbours}


def neighbour_loss(logits: Tensor, v: Tensor, k: int, gamma: float, temperature: float) -> Tensor:
    """T^2 KL(t || softmax(f / T)), a mean over the batch; t the mean of the k nearest softmaxes (0: of all others).

    As published, gradients flow through the neighbours and their weights, too.
    """
    batch = len(logits)
    unit = F.normalize(v, dim=1)
    alike = (unit @ unit.T).masked_fill(torch.eye(batch, dtype=torch.bool, device=v.device), -torch.inf)
    cosines, near = alike.topk(min(k or batch, batch - 1), 1)
    weights = normalised(torch.relu(cosines) ** gamma)
    said = (weights.unsqueeze(2) * (torch.softmax(logits / temperature, 1)[near] + LEAST)).sum(1)
    own = F.log_softmax(logits / temperature, 1)
    return temperature**2 * (said * (said.log() - own)).sum(1).mean()


def normalised(weights: Tensor) -> Tensor:
    """Weights (N, k) as shares of 1; even ones where every neighbour points away."""
    total = weights.sum(1, keepdim=True)
    return torch.where(total > 0, weights / total.clamp_min(torch.finfo(weights.dtype).tiny), 1 / weights.shape[1])
