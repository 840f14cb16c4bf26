"""`ssr` and `ssr+`: one network, trained on labels that their nearest samples vote for, after sure predictions replaced some.

Feng, Tzimiropoulos, Patras: SSR, BMVC 2022. Theirs, CIFAR-10 sym 20/50/80/90 %, asym 40 %: ssr+ 96.7, 96.1, 95.6, 95.2, 95.5; ssr
96.3, 95.7, 95.2, 94.6, 95.1. CIFAR-100 sym: ssr+ 79.7, 77.2, 71.9, 66.6; ssr 79.0, 75.9, 69.5, 61.8. Ours at full length: not
run. Letters: y' a label after relabelling, v features, g the projector, h the predictor, l the mixing share.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.config.setting import setting
from labelsieve.methods.contract import Cell, Look, Make, Method, Phase, Terms, Verdict, View, own_shares, together
from labelsieve.methods.net import Net
from labelsieve.methods.parts import losses, streams
from labelsieve.methods.parts.evidence import Evidence, collapse
from labelsieve.methods.parts.neighbours import VOTERS, against_the_rest, voters, votes
from labelsieve.methods.parts.streams import cycled

HEAD = 128  # dimensions that g and h lead to


def cifar(published: tuple[float, ...], sure: tuple[float, ...]) -> dict[str, Cell]:
    """CIFAR-10 sym 20/50/80/90 % and asym 40 %, CIFAR-100 sym 20/50/80/90 %, theirs and with which theta_r; as they ran it."""
    shared = {
        "network": "preact-resnet18",
        "training.epochs": 300,
        "training.batch": 128,
        "training.lr": 0.02,
        "training.schedule": "cosine",
        "training.lr_drop_factor": 50.0,
        "training.weight_decay": 5e-4,
        "views.policy": "auto",
        "engine.eval_batch": 2000,
    }
    names = [f"cifar10-{noise}" for noise in ("sym20", "sym50", "sym80", "sym90", "asym40")]
    names += [f"cifar100-sym{rate}" for rate in (20, 50, 80, 90)]
    return {
        name: Cell(best, shared, {"theta_r": theta, "neighbours": VOTERS}) for name, best, theta in zip(names, published, sure)
    }


SURE = (0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.8)


class Selection(NamedTuple):
    """What an epoch trains on, (N,) each: the label y', its votes over those of the strongest class, and who is in."""

    labels: Tensor
    support: Tensor
    clean: Tensor
    shares: Tensor  # (N, K): the votes in proportion to the classes' sizes, as shares of 1


class Ssr(Method):
    """Every epoch starts from the given labels. Where the softmax is above theta_r, the prediction takes the label's place. The k
    nearest samples vote by these labels, each class in proportion to its size, and a label counts as clean where no class has
    more votes (theta_s = 1). Clean ones are drawn evenly over classes, two strong views each, and mixed.

    There is no warm-up, and you don't need to know the noise rate.
    """

    name = "ssr"
    costs = "2 views trained on, 3 looked at"
    by_nearest = True
    cells: ClassVar[Mapping[str, Cell]] = cifar((96.3, 95.7, 95.2, 94.6, 95.1, 79.0, 75.9, 69.5, 61.8), SURE)
    varies = True

    @dataclass(frozen=True)
    class Config:
        theta_r: float = setting(0.9, "softmax above which the prediction takes the label's place", low=0, high=1)
        theta_s: float = setting(1.0, "a label is clean with so large a share of the strongest class's votes", low=0, high=1)
        neighbours: int = setting(0, "how many samples vote; 0: 200, and one in ten of a small set", low=1, zero_is_open=True)
        beta: float = setting(4.0, "mixing shares are drawn from Beta(beta, beta)", low=0.05, high=1e3)
        consistency: float = setting(0.0, "weight of predicting a weak view's features from a strong one's", low=0)

    def build(self, make: Make) -> None:
        heads = {"projector": head, "predictor": lambda _: head(HEAD)} if self.c.consistency else None
        self.nets = [make(0, heads=heads)]

    @property
    def theta_r(self) -> float:
        return float(self.c.theta_r)

    def lr_at(self, epoch: float) -> float:
        """As theirs, the rate moves between epochs only."""
        return super().lr_at(math.floor(epoch))

    def phases(self, epoch: int, look: Look) -> Iterator[Phase | Verdict]:
        seen = look.evidence(self.net, None, "weak", self.stream(streams.WEAK_FEATURES, epoch, self.net))
        chosen = self.select(seen)
        yield self.said(seen, chosen)
        yield self.training_on(chosen, epoch, look)

    def verdict(self, look: Look) -> Verdict:
        """By the pictures as they are."""
        seen = look.evidence(self.net)
        return self.said(seen, self.select(seen))

    def select(self, seen: Evidence) -> Selection:
        """Relabelling and selection, by one pass's evidence."""
        pinned = self.facts.pinned
        relabelled = relabel(seen, self.theta_r)
        if pinned is not None:
            relabelled = torch.where(pinned, seen.labels, relabelled)
        shares = vote_shares(seen.features, relabelled, seen.classes, voters(len(relabelled), self.c.neighbours))
        support = shares.gather(1, relabelled.unsqueeze(1)).squeeze(1) / shares.amax(1)
        clean = support >= self.c.theta_s
        return Selection(relabelled, support, clean if pinned is None else clean | pinned, shares)

    def said(self, seen: Evidence, chosen: Selection) -> Verdict:
        """Of the given labels: each one's votes against the strongest other class's. At even votes a label counts as clean."""
        chance, pinned = against_the_rest(chosen.shares, seen.labels), self.facts.pinned
        if pinned is not None:
            chance = torch.where(pinned, 1.0, chance)
        clean = chosen.clean & (chosen.labels == seen.labels)
        return Verdict(
            (seen,),
            {"neighbours": (chance,)},
            {"neighbours": self.c.theta_s / (1 + self.c.theta_s)},
            (clean,),
            (together([own_shares(seen)]), together([chance])),
            notes=self.notes(seen, chosen),
        )

    def notes(self, seen: Evidence, chosen: Selection) -> tuple[str, ...]:
        """What went oddly: a collapsed selection, classes of which nothing is clean."""
        notes, names = [], self.facts.names
        collapsed = collapse(chosen.clean, seen.predicted, seen.classes, seen.labels, 1.0, names)
        if collapsed:
            notes.append(f"the selection collapsed: {collapsed}")
        counts = torch.bincount(chosen.labels[chosen.clean], minlength=seen.classes)
        lost = [name for name, count in zip(names, counts.tolist()) if not count]
        if lost:
            more = " ..." if len(lost) > 5 else ""
            notes.append(f"no label of {', '.join(lost[:5])}{more} counts as clean; this epoch does not train on them")
        return tuple(notes)

    def training_on(self, chosen: Selection, epoch: int, look: Look) -> Phase:
        """As many steps as all samples have whole batches, whatever the number of clean ones."""
        batch, generator = self.training.batch, self.stream(streams.PLAN, epoch, self.net)
        every = torch.arange(len(chosen.labels))
        steps = max(1, len(every) // batch)
        labels = chosen.labels.cpu()
        rows = cycled(self.drawn_from(chosen, labels, generator), steps * batch, generator).view(steps, batch)
        tensors = {
            "labels": labels[rows],
            "partner": torch.stack([torch.randperm(2 * batch, generator=generator) for _ in range(steps)]),
            "share": losses.mixing_shares(steps, self.c.beta, generator),
            "lr": self.rates(epoch, steps),
        }
        order = cycled(every, steps * batch, generator).view(steps, batch)
        views = {
            "strong": View(torch.cat((rows, rows), 1), "strong"),
            "weak": View(order, "weak"),
            "other": View(order, "strong"),
        }
        fixed = (self.net, self.facts.classes, float(self.c.consistency))
        return Phase("neighbours", ssr_step, (self.net,), views, tensors, fixed)

    def drawn_from(self, chosen: Selection, labels: Tensor, generator: torch.Generator) -> Tensor:
        """Clean rows, those of each class repeated to the number of the largest one; where nothing is clean, the likeliest."""
        clean = torch.nonzero(chosen.clean.cpu()).flatten()
        if len(clean) == 0:
            clean = chosen.support.cpu().argsort(descending=True, stable=True)[: self.training.batch]
        groups = [clean[labels[clean] == k] for k in labels[clean].unique().tolist()]
        largest = max(map(len, groups))
        return torch.cat([cycled(group, largest, generator) for group in groups])


class SsrPlus(Ssr):
    """With feature consistency: from a sample's strong view, a head predicts the features of its weak view."""

    name = "ssr+"
    costs = "3 views trained on, 2 looked at"
    cells: ClassVar[Mapping[str, Cell]] = cifar((96.7, 96.1, 95.6, 95.2, 95.5, 79.7, 77.2, 71.9, 66.6), SURE)

    @dataclass(frozen=True)
    class Config(Ssr.Config):
        consistency: float = setting(1.0, "weight of predicting a weak view's features from a strong one's", low=0)


def head(inputs: int) -> nn.Module:
    """g and h: two layers."""
    return nn.Sequential(nn.Linear(inputs, 2 * HEAD), nn.BatchNorm1d(2 * HEAD), nn.ReLU(), nn.Linear(2 * HEAD, HEAD))


def relabel(seen: Evidence, theta_r: float) -> Tensor:
    """y' (N,): the prediction where the softmax is above the threshold, else the given label."""
    sure, predicted = seen.probs.max(1)
    return torch.where(sure > theta_r, predicted, seen.labels)


def vote_shares(features: Tensor, labels: Tensor, classes: int, k: int) -> Tensor:
    """The k nearest samples' votes, one each, divided by how frequent their class is, as shares of 1: (N, K)."""
    frequent = torch.bincount(labels, minlength=classes).float() + 1e-10
    balanced = votes(features, labels, classes, k) / (frequent / frequent.sum())
    return balanced / balanced.sum(1, keepdim=True)


def ssr_step(
    net: Net,
    classes: int,
    consistency: float,
    strong: Tensor,
    weak: Tensor,
    other: Tensor,
    labels: Tensor,
    partner: Tensor,
    share: Tensor,
    lr: Tensor,
) -> Terms:
    """One step. `strong` has two views of each of B clean samples, in two halves; `weak` and `other` are views of any B.

    Without consistency these are only looked at, as published: BatchNorm remembers pictures that are not mixed, too, and the
    next selection goes by what it remembers.
    """
    pixels, wanted = net.fuse(mixed)(strong, labels, partner, share, classes)
    logits, _ = net.look(pixels)
    loss = labelled = losses.labelled_loss(logits, wanted)
    terms = {"cross_entropy": labelled}
    with torch.no_grad():
        _, v = net.look(weak)
        aim = net.heads["projector"](v) if consistency else v
    with torch.set_grad_enabled(consistency > 0):
        _, v = net.look(other)
    if consistency:
        guess = net.heads["predictor"](net.heads["projector"](v))
        terms["consistency"] = -F.cosine_similarity(guess, aim, dim=1).mean()
        loss = labelled + consistency * terms["consistency"]
    net.descend(loss, lr)
    return terms


def mixed(strong: Tensor, labels: Tensor, partner: Tensor, share: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Each of the 2B views and its target, mixed with its partner: (2B, C, H, W) floats, (2B, K)."""
    wanted = F.one_hot(labels, classes).float().repeat(2, 1)
    pixels = losses.mix(strong.float(), strong[partner].float(), share)
    return pixels, losses.mix(wanted, wanted[partner], share)
