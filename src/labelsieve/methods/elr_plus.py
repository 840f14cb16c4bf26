"""`elr+`: two networks on mixed pictures, each held to a memory of what the other one's slow twin said of every sample.

Liu, Niles-Weed, Razavian, Fernandez-Granda: Early-Learning Regularization Prevents Memorization of Noisy Labels, NeurIPS 2020.
What networks learn first is right; the memory keeps it when they begin to memorise. Theirs, CIFAR-10 sym 20/50/80/90 %, asym
40 %: 95.8, 94.8, 93.3, 78.7, 93.0; CIFAR-100 sym: 77.6, 73.6, 60.8, 33.4; Clothing1M 74.8, WebVision 77.78. The CPC paper's row
has 1 to 4 points less. Ours at full length: not run. Letters: t the memory (N, K), l the mixing share, q the mixed memory, p the
softmax of a mixed picture.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.config.setting import setting
from labelsieve.methods.contract import Cell, Look, Make, Method, Phase, Terms, Verdict, View, own_shares, together
from labelsieve.methods.net import Net, Twin
from labelsieve.methods.parts import losses, streams

LEAST = 1e-4  # shares are kept within this and 1 - this
MANY = 100  # classes from which on mixed labels are weighed by the memory, as the published code does for CIFAR-100


def cell(published: float, epochs: int, drop: int, own: Mapping[str, float], **settings: Any) -> Cell:
    """As they ran it; what CIFAR cells share stands here."""
    shared = {
        "network": "preact-resnet18",
        "training.epochs": epochs,
        "training.batch": 128,
        "training.lr": 0.02,
        "training.schedule": "step",
        "training.lr_drop": drop / epochs,
        "training.lr_drop_factor": 10.0,
        "training.weight_decay": 5e-4,
    }
    return Cell(published, shared | {"engine.eval_batch": 2000} | settings, own)


FEW = {"strength": 3.0, "memory": 0.7}
HUNDRED = {"strength": 7.0, "memory": 0.9, "ramp_steps": 40_000}


class ElrPlus(Method):
    """There is no selection, and you don't need to know the noise rate; but its authors took another strength and memory for
    asymmetric noise and for CIFAR-100.

    Published, a twin starts from weights of its own; here it starts from its network's. On one GPU theirs adds both networks'
    logits, as here; on two, it takes one network and the other's twin.
    """

    name = "elr+"
    networks = 2
    costs = "2 views trained on, 2 looked at"
    cells: ClassVar[Mapping[str, Cell]] = {
        **{f"cifar10-sym{rate}": cell(best, 200, 150, FEW) for rate, best in zip((20, 50, 80, 90), (95.8, 94.8, 93.3, 78.7))},
        "cifar10-asym40": cell(93.0, 200, 150, {"strength": 1.0, "memory": 0.9}),
        **{f"cifar100-sym{rate}": cell(best, 250, 200, HUNDRED) for rate, best in
           zip((20, 50, 80, 90), (77.6, 73.6, 60.8, 33.4))},
        "clothing1m": cell(
            74.8,
            15,
            7,
            FEW | {"twin": 0.9999, "twin_ramp_steps": 0},
            **{
                "network": "resnet50",
                "training.batch": 64,
                "training.lr": 0.002,
                "training.weight_decay": 1e-3,
                "training.epoch_batches": 3000,
                "training.epoch_draw": "balanced",
            },
        ),
        "webvision": cell(
            77.78,
            100,
            50,
            FEW | {"mixing": 1.5, "twin_ramp_steps": 0},
            **{"network": "resnet50", "training.batch": 32, "training.epoch_batches": 0},
        ),
    }  # fmt: skip

    @dataclass(frozen=True)
    class Config:
        strength: float = setting(3.0, "lambda, weight of the pull towards the memory; CIFAR-100: 7", low=0, high=1e3)
        memory: float = setting(0.7, "beta, how much of the memory stays at every look; CIFAR-100 and asymmetric noise: 0.9",
                                low=0, high=0.9999)  # fmt: skip
        ramp_steps: int = setting(0, "steps over which the pull grows to its full weight; CIFAR-100: 40000", low=0)
        mixing: float = setting(1.0, "mixing shares are drawn from Beta(mixing, mixing)", low=0.05, high=1e3)
        twin: float = setting(0.997, "how much of itself a slow twin keeps at every step", low=0, high=0.99999)
        twin_ramp_steps: int = setting(40_000, "steps over which a twin slows down to that; 0: it is the mean of all steps until "
                                       "it keeps so much", low=0)  # fmt: skip
        weighs_labels: bool | None = setting(None, "mixed labels are weighed by the memory; none: from 100 classes on")

    def build(self, make: Make) -> None:
        self.nets = [make(0, twin=True), make(1, twin=True)]
        count, classes = len(self.facts.given), self.facts.classes
        self.tables = {f"memory{net.number}": torch.zeros(count, classes, device=self.facts.device) for net in self.nets}

    def phases(self, epoch: int, look: Look) -> Iterator[Phase]:
        for net, peer in (self.nets, self.nets[::-1]):
            assert peer.twin is not None
            peer.twin.network.train()  # as published: twins are normalised by their batch
            yield self.pulled(net, peer.twin, epoch)

    def pulled(self, net: Net, twin: Twin, epoch: int) -> Phase:
        """An epoch of mixed steps of a network; the other one's twin writes its memory."""
        c, generator = self.c, self.stream(streams.PLAN, epoch, net)
        order = self.order(net, epoch, generator)
        steps, batch = order.shape
        partners = torch.stack([torch.randperm(batch, generator=generator) for _ in range(steps)])
        at = torch.arange(epoch * steps, (epoch + 1) * steps)
        table = self.tables[f"memory{net.number}"]
        weighs = self.facts.classes >= MANY if c.weighs_labels is None else c.weighs_labels
        return Phase(
            "early learning",
            elr_step,
            (net,),
            views={"pictures": View(order, "weak")},
            tensors={
                "rows": order,
                "labels": self.facts.given[order],
                "partner": partners,
                "share": losses.mixing_shares(steps, c.mixing, generator),
                "pull": c.strength * grown(at + 1, c.ramp_steps),
                "keep": kept(at + 2, c.twin, c.twin_ramp_steps),
                "lr": self.rates(epoch, steps),
            },
            fixed=(net, twin, table, c.memory, weighs),
            # The twin's statistics of BatchNorm move as it looks.
            tables={"memory": table, **dict(twin.network.named_buffers())},
        )

    def verdict(self, look: Look) -> Verdict:
        """What networks and memories give to the label; what the memories hold likeliest is suggested."""
        seen = tuple(look.evidence(net) for net in self.nets)
        memories = [remembered(self.tables[f"memory{net.number}"], each.probs) for net, each in zip(self.nets, seen)]
        held = [memory.gather(1, each.labels.unsqueeze(1)).squeeze(1) for memory, each in zip(memories, seen)]
        opinions = {"confidence": tuple(own_shares(each) for each in seen), "memory": tuple(held)}
        return self.judged(seen, opinions, (together(held),), torch.stack(memories).mean(0))


def elr_step(
    net: Net,
    twin: Twin,
    table: Tensor,
    memory: float,
    weighs: bool,
    pictures: Tensor,
    rows: Tensor,
    labels: Tensor,
    partner: Tensor,
    share: Tensor,
    pull: Tensor,
    keep: Tensor,
    lr: Tensor,
) -> Terms:
    """The twin writes what it makes of the pictures as they are; the network learns from them mixed in pairs, B each."""
    with torch.no_grad():
        said = twin.look(pictures)[0].softmax(1)
        table.index_copy_(0, rows, memory * table[rows] + (1 - memory) * said)
        known = table[rows]
        held = losses.mix(known, known[partner], share)
        given = F.one_hot(labels, table.shape[1]).to(held.dtype)
        wanted = losses.mix(given, given[partner], share)
        if weighs:
            wanted = weighed(wanted, held)
    pixels = pictures.float()
    logits, _ = net.look(losses.mix(pixels, pixels[partner], share))
    labelled, regularised = losses.labelled_loss(logits, wanted), regulariser(logits, held)
    net.descend(labelled + pull * regularised, lr)
    net.follow(keep)
    return {"labelled": labelled, "early_learning": regularised}


def regulariser(logits: Tensor, held: Tensor) -> Tensor:
    """Mean of log(1 - <q, p>): the smaller, the nearer predictions are to the memory."""
    shares = logits.softmax(1).clamp(LEAST, 1 - LEAST)
    return torch.log(1 - (held * shares).sum(1)).mean()


def weighed(wanted: Tensor, held: Tensor) -> Tensor:
    """Mixed labels (B, K) times the mixed memory, renormalised; a memory that knows none of the labels leaves them alone."""
    product = wanted * held
    total = product.sum(1, keepdim=True)
    return torch.where(total > 0, product / total.clamp_min(1e-12), wanted)


def grown(at: Tensor, steps: int) -> Tensor:
    """exp(-5 (1 - t / T)^2) at each step t, 1 from step T on."""
    if steps == 0:
        return torch.ones(len(at))
    return torch.exp(-5 * (1 - (at.double() / steps).clamp(max=1)).square()).float()


def kept(at: Tensor, most: float, steps: int) -> Tensor:
    """How much of itself a twin keeps at step t: more and more, up to `most`."""
    return most * grown(at, steps) if steps else (1 - 1 / at.double()).clamp(max=most).float()


def remembered(table: Tensor, probs: Tensor) -> Tensor:
    """The memory as shares (N, K); of samples that were never looked at, what the network says."""
    total = table.sum(1, keepdim=True)
    return torch.where(total > 0, table / total.clamp_min(1e-12), probs)
