"""`rrl` (ProtoMix): one network, trained on labels that the neighbours in a small space of prototypes confirm or correct.

Li, Xiong, Hoi: Learning from Noisy Data with Robust Representation Learning, ICCV 2021. Theirs with one network, reprinted by
others: CIFAR-10 sym 20/50/80/90 %, asym 40 %: 95.8, 94.3, 92.4, 75.0, 91.9; CIFAR-100 sym: 79.1, 74.8, 57.7, 29.3. The CPC
paper's row "ProtoMix" has their best variant: 96.4, 95.3, 93.3, 77.4, 92.6; 80.3, 76.0, 61.1, 33.1. Ours at full length: not
run. Letters: v features, z their projection of unit length, c prototypes, s soft labels, p the softmax, l the mixing share.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.config.setting import setting
from labelsieve.methods.contract import Cell, Look, Make, Method, Phase, Terms, Verdict, View, own_shares
from labelsieve.methods.net import Net
from labelsieve.methods.parts import losses, streams
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.neighbours import against_the_rest, nearest, voters, weighted_mean
from labelsieve.methods.parts.streams import cycled


def cell(published: float | None, low: float, starting: int, ramp: int) -> Cell:
    """A CIFAR cell as they ran it: 200 epochs, of which `starting` trust the labels and in `ramp` the prototypes gain weight."""
    return Cell(
        published,
        {
            "network": "preact-resnet18",
            "training.epochs": 200,
            "training.batch": 128,
            "training.lr": 0.02,
            "training.schedule": "cosine",
            "training.lr_drop_factor": 100.0,
            "training.weight_decay": 5e-4,
            "engine.eval_batch": 2000,
        },
        {"low": low, "starting": starting / 200, "ramp": ramp / 200, "neighbours": 200},
    )


def web_cell(epochs: int, low: float, own: dict[str, Any], settings: dict[str, Any]) -> Cell:
    shared = {
        "training.epochs": epochs,
        "training.batch": 64,
        "training.schedule": "cosine",
        "training.weight_decay": 1e-4,
        "training.epoch_batches": 0,
    }
    return Cell(None, shared | settings, {"low": low, "neighbours": 200, "mixing": 0.5, "mixes_strong": False} | own)


class Rrl(Method):
    """A few steps of cross-entropy, then in each epoch: prototypes are the classes' mean projections, and the network learns to
    tell samples apart by two views, to put mixed views between the prototypes of both labels, and to classify.

    From epoch `starting` on, a sample's soft label is the mean of its softmax and of its neighbours' soft labels. A given label
    that has more than `low` of it stays; where the largest share is above `high`, the label is trained on.

    Published, a batch in which nothing is clean, and a class without a clean label, end in NaN; here such a batch does without
    these terms, and such a class keeps its last prototype. A batch is mixed from its clean samples only: where these are few,
    each meets several partners, so that every step has one shape. Their second view is AugMix, here it is `views.policy`.
    """

    name = "rrl"
    costs = "4 views trained on, 1 looked at"
    by_nearest = True
    varies = True
    cells: ClassVar[Mapping[str, Cell]] = {
        **{f"cifar10-sym{rate}": cell(best, 0.1, 5, 0) for rate, best in zip((20, 50, 80, 90), (95.8, 94.3, 92.4, 75.0))},
        "cifar10-asym40": cell(91.9, 0.4, 5, 40),
        **{f"cifar100-sym{rate}": cell(best, 0.02, 15, 40) for rate, best in zip((20, 50, 80, 90), (79.1, 74.8, 57.7, 29.3))},
        "clothing1m": web_cell(
            50,
            0.4,
            {"starting": 1 / 50, "prototypes": 1.0, "dim": 32, "warmup_steps": 51},
            {"training.lr": 0.01, "training.lr_drop_factor": 50.0},
        ),
        "webvision": web_cell(
            40,
            0.05,
            {"starting": 15 / 40, "high": 0.8, "prototypes": 2.0, "ramp": 4 / 40, "warmup_steps": 201},
            {"training.lr": 0.04, "training.lr_drop_factor": 200.0},
        ),
    }

    @dataclass(frozen=True)
    class Config:
        starting: float = setting(0.025, "share of all epochs that trust the given labels, at the beginning", low=0, high=1)
        warmup_steps: int = setting(101, "steps of plain cross-entropy before the first prototypes", low=0)
        low: float = setting(0.1, "a given label stays with more than this share of its soft label; CIFAR-100: 0.02; "
                             "asymmetric noise: 0.4", low=0, high=1)  # fmt: skip
        high: float = setting(0.9, "a label is trained on with more than this share of its soft label", low=0, high=1)
        neighbours: int = setting(0, "of a sample; 0: 200, and one in ten of a small set", low=1, zero_is_open=True)
        dim: int = setting(50, "dimensions of the projection", low=1, high=65536)
        temperature: float = setting(0.3, "of similarities, between samples and to prototypes", low=1e-3, high=100)
        mixing: float = setting(8.0, "mixing shares are drawn from Beta(mixing, mixing)", low=0.05, high=1e3)
        mixes_strong: bool = setting(True, "strong views are mixed, too; on the web sets theirs are not")
        prototypes: float = setting(5.0, "weight of the prototypes' loss", low=0, high=1e3)
        ramp: float = setting(0.0, "share of all epochs in which that weight grows from 1; CIFAR-100: 0.2", low=0, high=1)
        instances: float = setting(1.0, "weight of telling samples apart", low=0, high=1e3)
        reconstruction: float = setting(1.0, "weight of recovering features from their projection", low=0, high=1e3)

    def build(self, make: Make) -> None:
        dim, classes = self.c.dim, self.facts.classes
        self.nets = [make(0, heads={"projector": lambda d: nn.Linear(d, dim), "decoder": lambda d: nn.Linear(dim, d)})]
        self.tables = {"soft": torch.zeros(len(self.facts.given), classes, device=self.facts.device)}
        self.centres = torch.zeros(classes, dim, device=self.facts.device)  # c

    @property
    def start(self) -> int:
        """The first epoch that judges labels."""
        return max(1, round(self.c.starting * self.training.epochs))

    def lr_at(self, epoch: float) -> float:
        """As theirs, the rate moves between epochs only, and is a step ahead."""
        whole = math.floor(epoch)
        return super().lr_at(whole + 1 if self.training.schedule == "cosine" else whole)

    def phases(self, epoch: int, look: Look) -> Iterator[Phase | Verdict]:
        if epoch == 0 and self.c.warmup_steps:
            yield self.warm_up(look)
        seen = look.evidence(self.net)
        z, labels = projected(self.net, seen.features), seen.labels
        clean = torch.ones_like(labels, dtype=torch.bool)
        if epoch >= self.start:
            said = self.corrected(seen, z)
            yield self.said(seen, said)
            labels, clean = self.chosen(said, seen.labels)
        moved(self.centres, z, labels, clean)
        yield self.training_on(labels.cpu(), clean.cpu(), epoch)

    def verdict(self, look: Look) -> Verdict:
        seen = look.evidence(self.net)
        return self.said(seen, self.corrected(seen, projected(self.net, seen.features)))

    def said(self, seen: Evidence, soft: Tensor) -> Verdict:
        """By the soft label that the network and the neighbours agree on; its largest share is suggested."""
        chance = against_the_rest(soft, seen.labels)
        return self.judged((seen,), {"confidence": (own_shares(seen),), "neighbours": (chance,)}, (chance.cpu(),), soft)

    def corrected(self, seen: Evidence, z: Tensor) -> Tensor:
        """(N, K): the mean of p and of the neighbours' soft labels; the table has these from the last epoch, if there was one."""
        table = self.tables["soft"]
        soft = torch.where(table.sum(1, keepdim=True) > 0, table, kept(seen.probs, seen.labels, self.c.low))
        cosines, near = nearest(z, voters(len(z), self.c.neighbours), itself=False)
        return (weighted_mean(torch.softmax(cosines / self.c.temperature, 1), near, soft) + seen.probs) / 2

    def chosen(self, said: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """Labels (N,) and which are trained on (N,); the soft labels are written down."""
        soft = kept(said, given, self.c.low)
        if self.facts.pinned is not None:
            soft = torch.where(self.facts.pinned.unsqueeze(1), F.one_hot(given, soft.shape[1]).to(soft.dtype), soft)
        self.tables["soft"].copy_(soft)
        share, labels = soft.max(1)
        return labels, share > self.c.high

    def warm_up(self, look: Look) -> Phase:
        """Cross-entropy on given labels, an epoch at most."""
        given, batch = self.facts.given, self.training.batch
        steps = min(self.c.warmup_steps, math.ceil(len(given) / batch))
        generator = self.stream(streams.WARM_UP_ORDER, 0, self.net)
        order = cycled(torch.arange(len(given)), steps * batch, generator).view(steps, batch)
        views = {"weak": View(order, "weak", streams.WARM_UP_VIEWS)}
        tensors = {"labels": given[order], "lr": torch.full((steps,), self.training.lr)}
        return Phase("warm-up", reconstruction_step, (self.net,), views, tensors, (self.net, self.c.reconstruction))

    def training_on(self, labels: Tensor, clean: Tensor, epoch: int) -> Phase:
        """Every sample, whatever its label; terms about labels are of those that are clean."""
        generator = self.stream(streams.PLAN, epoch, self.net)
        order = self.order(self.net, epoch, generator)
        steps = len(order)
        first, second = pairs(clean[order], 2 if self.c.mixes_strong else 1, generator)
        c, ramp = self.c, self.c.ramp * self.training.epochs
        weight = min(1 + epoch * (c.prototypes - 1) / ramp, c.prototypes) if ramp else c.prototypes
        return Phase(
            "prototypes",
            rrl_step,
            (self.net,),
            views={"weak": View(order, "weak"), "strong": View(order, "strong")},
            tensors={
                "labels": labels[order],
                "clean": clean[order].float(),
                "first": first,
                "second": second,
                "share": losses.beta_draws(steps, c.mixing, generator).float(),
                "weight": torch.full((steps,), float(weight)),
                "lr": self.rates(epoch, steps),
            },
            fixed=(self.net, self.centres, c.temperature, c.instances, c.reconstruction),
        )

    def state_dict(self) -> dict[str, Tensor]:
        return {"centres": self.centres}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if "centres" in state:
            self.centres.copy_(state["centres"])


@torch.no_grad()
def projected(net: Net, features: Tensor) -> Tensor:
    """z of v (N, D): (N, d), of unit length."""
    return F.normalize(net.heads["projector"](features.float()), dim=1)


def kept(soft: Tensor, given: Tensor, low: float) -> Tensor:
    """Soft labels (N, K), those of given labels with more than `low` of them replaced by the given label alone."""
    stays = soft.gather(1, given.unsqueeze(1)) > low
    return torch.where(stays, F.one_hot(given, soft.shape[1]).to(soft.dtype), soft)


@torch.no_grad()
def moved(centres: Tensor, z: Tensor, labels: Tensor, clean: Tensor) -> None:
    """Each class's prototype goes to the mean of its clean samples, of unit length; without any it stays where it is."""
    members = F.one_hot(labels, len(centres)).to(z.dtype) * clean.unsqueeze(1)
    count = members.sum(0).unsqueeze(1)
    means = F.normalize(members.T @ z / count.clamp_min(1), dim=1)
    centres.copy_(torch.where(count > 0, means, centres))


def pairs(clean: Tensor, views: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Which of a step's views B (or twice B) are mixed with which: (S, views * B) each, all of clean samples.

    Every one is mixed with a partner drawn among all; where few are clean, again with another one until the step is full. A step
    without a clean sample is mixed as it is, for its weights are 0.
    """
    batch = clean.shape[1]
    firsts, seconds = [], []
    for row in clean:
        here = torch.nonzero(row).flatten()
        here = here if len(here) else torch.arange(batch)
        every = torch.cat([here + batch * view for view in range(views)])
        times = math.ceil(views * batch / len(every))
        firsts.append(every.repeat(times)[: views * batch])
        partners = [every[torch.randperm(len(every), generator=generator)] for _ in range(times)]
        seconds.append(torch.cat(partners)[: views * batch])
    return torch.stack(firsts), torch.stack(seconds)


def reconstruction_step(net: Net, reconstruction: float, weak: Tensor, labels: Tensor, lr: Tensor) -> Terms:
    logits, v = net.look(weak)
    terms = {"cross_entropy": F.cross_entropy(logits, labels), "reconstruction": recovered(net, v)[1]}
    net.descend(terms["cross_entropy"] + reconstruction * terms["reconstruction"], lr)
    return terms


def recovered(net: Net, v: Tensor) -> tuple[Tensor, Tensor]:
    """z (B, d) of features, and how badly the decoder recovers these from their projection."""
    small = net.heads["projector"](v)
    return F.normalize(small, dim=1), (torch.relu(net.heads["decoder"](small)) - v).square().mean()


def rrl_step(
    net: Net,
    centres: Tensor,
    temperature: float,
    instances: float,
    reconstruction: float,
    weak: Tensor,
    strong: Tensor,
    labels: Tensor,
    clean: Tensor,
    first: Tensor,
    second: Tensor,
    share: Tensor,
    weight: Tensor,
    lr: Tensor,
) -> Terms:
    """One step on two views of B samples; `clean` (B,) is 1 where a label counts; `first` and `second` say what is mixed."""
    logits, v = net.look(weak)
    z, error = recovered(net, v)
    _, other = net.look(strong)
    z_other, error_other = recovered(net, other)
    pixels, wanted = net.fuse(mixed)(weak, strong, labels, first, second, share, len(centres))
    _, between = net.look(pixels)
    said = F.normalize(net.heads["projector"](between), dim=1) @ centres.T / temperature
    terms = {
        "cross_entropy": losses.set_mean(losses.cross_entropies(logits, labels), clean),
        "instances": net.fuse(instance_loss)(z, z_other, temperature),
        "prototypes": losses.labelled_loss(said, wanted) * clean.amax(),
        "reconstruction": error + error_other,
    }
    loss = terms["cross_entropy"] + instances * terms["instances"] + reconstruction * terms["reconstruction"]
    net.descend(loss + weight * terms["prototypes"], lr)
    return terms


def mixed(
    weak: Tensor, strong: Tensor, labels: Tensor, first: Tensor, second: Tensor, share: Tensor, classes: int
) -> tuple[Tensor, Tensor]:
    """Views and their labels, those `first` mixed with those `second` by one share: (M, C, H, W), (M, K)."""
    pixels, wanted = torch.cat((weak, strong)).float(), F.one_hot(labels, classes).float().repeat(2, 1)
    return losses.mix(pixels[first], pixels[second], share), losses.mix(wanted[first], wanted[second], share)


def instance_logits(z: Tensor, other: Tensor) -> Tensor:
    """Products (B, 2B) of each z with both views of all others, its own other view first. Its own place is impossible."""
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    same = (z @ z.T).masked_fill(itself, -torch.inf)
    across = (z @ other.T).masked_fill(itself, -torch.inf)
    return torch.cat(((z * other).sum(1, keepdim=True), same, across), 1)


def instance_loss(z: Tensor, other: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of telling which of all views is the sample's own other one."""
    return -F.log_softmax(instance_logits(z, other) / temperature, 1)[:, 0].mean()
