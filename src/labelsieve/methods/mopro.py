"""`mopro`: one network, its slow twin and a queue; labels are corrected batch by batch, by the softmax and moving prototypes.

Li, Xiong, Hoi: MoPro, Webly Supervised Learning with Momentum Prototypes, ICLR 2021. Its authors trained on all of WebVision,
1,000 classes, and have no numbers for the cells here. The CPC paper has 72.23 for its prototypes as a classifier on WebVision's
first 50 classes. Ours at full length: not run. Letters: q the projection of a weak view, k the twin's of a strong one, both of
unit length, c the prototypes, s the soft label, p the softmax.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.config.setting import setting
from labelsieve.errors import UsageError
from labelsieve.methods.contract import Cell, Look, Make, Method, Phase, Terms, Verdict, View, own_shares
from labelsieve.methods.net import Net
from labelsieve.methods.parts import losses, streams
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.neighbours import against_the_rest

QUEUE = 8192  # keys, and of a small set no more than half as many as it has samples
LAST_DROP = 0.8  # where the learning rate drops again, on the way from its drop to the end


class MoPro(Method):
    """The network learns to find a sample's twin key among those of the last batches, to put the sample at its label's prototype,
    and to classify. A prototype moves a little towards each sample of its class, in every step.

    From epoch `starting` on, a batch's labels are corrected first, by s, the mean of p and of a softmax over the prototypes: the
    largest share's class where it is above `sure`, else the given label where it has more than 1/K, else none. Samples without a
    label are only told apart.

    Afterwards its authors train the classifier anew on the corrected labels; here the run ends before that. The queue may have
    any length, where theirs must be a multiple of the batch.
    """

    name = "mopro"
    costs = "1 view trained on, 1 looked at"
    varies = True
    cells: ClassVar[Mapping[str, Cell]] = {
        "webvision": Cell(
            None,
            {
                "network": "resnet50",
                "training.epochs": 90,
                "training.batch": 256,
                "training.lr": 0.1,
                "training.schedule": "step",
                "training.lr_drop": 40 / 90,
                "training.lr_drop_factor": 10.0,
                "training.weight_decay": 1e-4,
                "training.epoch_batches": 0,
                "views.policy": "autoaugment-imagenet",
            },
            {"starting": 11 / 90, "queue": QUEUE},
        )
    }

    @dataclass(frozen=True)
    class Config:
        starting: float = setting(0.122, "share of all epochs that trust the given labels, at the beginning", low=0, high=1)
        sure: float = setting(0.8, "a class with more than this share of the soft label becomes the label", low=0, high=1)
        softmax: float = setting(0.5, "share of the softmax in the soft label; prototypes have the rest", low=0, high=1)
        dim: int = setting(128, "dimensions of the projection", low=1, high=65536)
        temperature: float = setting(0.1, "of similarities, to keys and to prototypes", low=1e-3, high=100)
        queue: int = setting(0, "how many keys are remembered; 0: 8192, and half of a small set", low=1, high=1e7,
                             zero_is_open=True)  # fmt: skip
        twin: float = setting(0.999, "how much of itself the slow twin keeps at every step", low=0, high=0.99999)
        memory: float = setting(0.999, "how much of itself a prototype keeps at every sample of its class", low=0, high=0.99999)
        instances: float = setting(1.0, "weight of finding the sample's own key", low=0, high=1e3)
        prototypes: float = setting(1.0, "weight of the prototypes' loss, from the second epoch on", low=0, high=1e3)

    def build(self, make: Make) -> None:
        dim, device = self.c.dim, self.facts.device
        self.nets = [make(0, heads={"projector": lambda d: projector(d, dim)}, twin=True)]
        length = self.c.queue or max(self.training.batch, min(QUEUE, len(self.facts.given) // 2))
        if length < self.training.batch:
            raise UsageError(
                f"mopro.queue={length} has no room for the keys of a batch of {self.training.batch}; "
                f"use --set mopro.queue={16 * self.training.batch}"
            )
        drawn = torch.randn(length, dim, generator=self.stream(streams.PROTOTYPES, 0, self.nets[0]))
        self.queue = F.normalize(drawn, dim=1).to(device)
        self.centres = torch.zeros(self.facts.classes, dim, device=device)  # c

    @property
    def start(self) -> int:
        """The first epoch that corrects labels."""
        return max(2, round(self.c.starting * self.training.epochs))

    def lr_at(self, epoch: float) -> float:
        """Two drops, between epochs."""
        t, whole = self.training, floor(epoch)
        if t.schedule == "step" and whole >= t.lr_drop_epoch + LAST_DROP * (t.epochs - t.lr_drop_epoch) > t.lr_drop_epoch:
            return t.lr / t.lr_drop_factor**2
        return t.lr_at(whole)

    def phases(self, epoch: int, look: Look) -> Iterator[Phase]:
        net, given, batch = self.net, self.facts.given, self.training.batch
        assert net.twin is not None
        net.twin.network.train()  # as published: keys are normalised by their batch
        order = self.order(net, epoch, self.stream(streams.PLAN, epoch, net))
        steps = len(order)
        places = torch.arange(epoch * steps * batch, (epoch + 1) * steps * batch).view(steps, batch) % len(self.queue)
        pinned = torch.zeros(len(given)) if self.facts.pinned is None else self.facts.pinned.cpu().float()
        yield Phase(
            "prototypes",
            mopro_step,
            (net,),
            views={"weak": View(order, "weak"), "strong": View(order, "strong")},
            tensors={
                "labels": given[order],
                "pinned": pinned[order],
                "places": places,
                "correcting": torch.full((steps,), float(epoch >= self.start)),
                "weight": torch.full((steps,), self.c.prototypes if epoch else 0.0),
                "lr": self.rates(epoch, steps),
            },
            fixed=(net, self.queue, self.centres, self.c),
            tables={"queue": self.queue, "centres": self.centres},
        )

    def verdict(self, look: Look) -> Verdict:
        """By the softmax, and by the soft label, which the prototypes have a part in."""
        seen = look.evidence(self.net)
        soft = self.soft_labels(seen)
        chance = against_the_rest(soft, seen.labels)
        return self.judged((seen,), {"confidence": (own_shares(seen),), "prototype": (chance,)}, (chance.cpu(),), soft)

    @torch.no_grad()
    def soft_labels(self, seen: Evidence) -> Tensor:
        """s (N, K)."""
        q = F.normalize(self.net.heads["projector"](seen.features.float()), dim=1)
        return torch.lerp((q @ self.centres.T / self.c.temperature).softmax(1), seen.probs, self.c.softmax)

    def state_dict(self) -> dict[str, Tensor]:
        return {"queue": self.queue, "centres": self.centres}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        for name, tensor in self.state_dict().items():
            if name in state:
                tensor.copy_(state[name])


def projector(features: int, dim: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, dim))


def mopro_step(
    net: Net,
    queue: Tensor,
    centres: Tensor,
    c: MoPro.Config,
    weak: Tensor,
    strong: Tensor,
    labels: Tensor,
    pinned: Tensor,
    places: Tensor,
    correcting: Tensor,
    weight: Tensor,
    lr: Tensor,
) -> Terms:
    """One step on two views of B samples; `correcting` is 1 where labels are corrected, `places` (B,) where keys are queued."""
    logits, v = net.look(weak)
    q = F.normalize(net.heads["projector"](v), dim=1)
    with torch.no_grad():
        assert net.twin is not None
        net.follow(torch.full_like(lr, c.twin))
        k = F.normalize(net.twin.heads["projector"](net.twin.look(strong)[1]), dim=1)
    found = torch.cat(((q * k).sum(1, keepdim=True), q @ queue.T), 1) / c.temperature
    near = q @ centres.T / c.temperature
    with torch.no_grad():
        soft = torch.lerp(near.softmax(1), logits.softmax(1), c.softmax)
        labels, used = corrected(soft, labels, pinned > 0, c.sure, correcting > 0)
    terms = {
        "cross_entropy": losses.set_mean(losses.cross_entropies(logits, labels), used),
        "instances": -F.log_softmax(found, 1)[:, 0].mean(),
        "prototypes": losses.set_mean(losses.cross_entropies(near, labels), used),
    }
    net.descend(terms["cross_entropy"] + c.instances * terms["instances"] + weight * terms["prototypes"], lr)
    with torch.no_grad():
        queue.index_copy_(0, places, k)
        moved(centres, q.detach(), labels, used, c.memory)
    return terms


def corrected(soft: Tensor, labels: Tensor, pinned: Tensor, sure: float, correcting: Tensor) -> tuple[Tensor, Tensor]:
    """Labels (B,), and 1 for those that count (B,); the given ones as they are where nothing is corrected."""
    share, likeliest = soft.max(1)
    takes = correcting & ~pinned & (share > sure)
    stays = soft.gather(1, labels.unsqueeze(1)).squeeze(1) > 1 / soft.shape[1]
    return torch.where(takes, likeliest, labels), (~correcting | pinned | takes | stays).to(soft.dtype)


def moved(centres: Tensor, q: Tensor, labels: Tensor, used: Tensor, keep: float) -> None:
    """Each prototype after it moved towards the samples of its class one after the other, then of unit length.

    At once: what a sample leaves behind has shrunk by `keep` for each later one of its class.
    """
    members = F.one_hot(labels, len(centres)).to(q.dtype) * used.unsqueeze(1)  # (B, K)
    later = members.sum(0) - members.cumsum(0)
    left = (members * keep**later).T @ q
    centres.copy_(F.normalize(keep ** members.sum(0).unsqueeze(1) * centres + (1 - keep) * left, dim=1))
