"""`ngc`: one network; labels spread over the graph of nearest samples, and what hangs together in one class is trained on.

Wu, Wei, Jiang, Mao, Tang, Li: NGC, A Unified Framework for Learning with Open-World Noisy Data, ICCV 2021. Theirs, CIFAR-10 sym
20/50/80/90 %, asym 40 %: 95.88, 94.54, 91.59, 80.46, 90.55; CIFAR-100 sym: 79.31, 75.91, 62.70, 29.76; WebVision 79.16. Ours at
full length: not run. Letters: v features, z their projection of unit length, p the softmax of mean logits, S the graph, s the
soft labels that it gives, l the mixing share.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.config.setting import setting
from labelsieve.methods.contract import Cell, Look, Make, Method, Phase, Terms, Verdict, View, own_shares
from labelsieve.methods.net import Net
from labelsieve.methods.parts import losses, streams
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.neighbours import against_the_rest, nearest, voters
from labelsieve.methods.rrl import instance_logits, kept, mixed, pairs, projected

SOLVING = 20  # steps of conjugate gradients; the system is so well conditioned that they leave a millionth
STEEP = 3  # cosines count to this power


def cell(published: float, starting: int, neighbours: int, low: float, high: float) -> Cell:
    """A CIFAR cell as they ran it: 300 epochs, of which `starting` trust the labels."""
    return Cell(
        published,
        {
            "network": "preact-resnet18",
            "training.epochs": 300,
            "training.batch": 512,
            "training.lr": 0.15,
            "training.schedule": "cosine",
            "training.lr_drop_factor": 750.0,
            "training.weight_decay": 5e-4,
            "engine.eval_batch": 2000,
        },
        {"starting": starting / 300, "neighbours": neighbours, "low": low, "high": high},
    )


class Ngc(Method):
    """Every epoch, each sample's logits join a moving mean, and the labels so far spread over the graph of nearest samples: clean
    ones as they are, the others' by p. A given label that gets more than `low` of its sample stays; a label counts where the
    largest share is above `high`, and where its sample belongs to the largest part of its class that the graph holds together.

    Clean samples are mixed and classified; all are told apart by two views, and clean ones of a class are drawn together.

    Published, a class of which nothing is sure makes the first sample of the set clean; here it has no clean sample. Batches are
    filled as in `rrl`, and one in which nothing is clean does without labels. Their second view is AugMix, here `views.policy`.
    """

    name = "ngc"
    costs = "4 views trained on, 1 looked at"
    by_nearest = True
    varies = True
    cells: ClassVar[Mapping[str, Cell]] = {
        **{f"cifar10-sym{rate}": cell(best, 5, 30, 0.1, 0.7) for rate, best in
           zip((20, 50, 80, 90), (95.88, 94.54, 91.59, 80.46))},
        "cifar10-asym40": cell(90.55, 30, 10, 0.1, 0.7),
        **{f"cifar100-sym{rate}": cell(best, 30, 200, 0.01, 0.6) for rate, best in
           zip((20, 50, 80, 90), (79.31, 75.91, 62.70, 29.76))},
        "webvision": Cell(
            79.16,
            {
                "training.epochs": 80,
                "training.batch": 256,
                "training.lr": 0.2,
                "training.schedule": "cosine",
                "training.lr_drop_factor": 1000.0,
                "training.weight_decay": 1e-4,
                "training.epoch_batches": 0,
            },
            {"starting": 15 / 80, "neighbours": 100, "low": 0.02, "high": 0.8, "mixing": 0.5, "mixes_strong": False},
        ),
    }  # fmt: skip

    @dataclass(frozen=True)
    class Config:
        starting: float = setting(0.1, "share of all epochs that trust the given labels, at the beginning; CIFAR-10, "
                                  "symmetric noise: 0.017", low=0, high=1)  # fmt: skip
        low: float = setting(0.1, "a given label stays with more than this share of its soft label; CIFAR-100: 0.01",
                             low=0, high=1)  # fmt: skip
        high: float = setting(0.7, "a label can be trained on with more than this share of its soft label", low=0, high=1)
        neighbours: int = setting(0, "of a sample in the graph; 0: 200, and one in ten of a small set", low=1, zero_is_open=True)
        memory: float = setting(0.6, "how much of the mean logits stays in every epoch", low=0, high=0.9999)
        spread: float = setting(0.5, "how far labels spread over the graph; 0: not at all", low=0, high=0.99)
        dim: int = setting(64, "dimensions of the projection", low=1, high=65536)
        temperature: float = setting(0.3, "of similarities between samples, where they are told apart", low=1e-3, high=100)
        mixing: float = setting(8.0, "mixing shares are drawn from Beta(mixing, mixing)", low=0.05, high=1e3)
        mixes_strong: bool = setting(True, "strong views are mixed, too; on WebVision theirs are not")
        instances: float = setting(1.0, "weight of telling samples apart", low=0, high=1e3)
        classes: float = setting(1.0, "weight of drawing clean samples of a class together", low=0, high=1e3)

    def build(self, make: Make) -> None:
        dim, count, device = self.c.dim, len(self.facts.given), self.facts.device
        self.nets = [make(0, heads={"projector": lambda d: nn.Linear(d, dim)})]
        self.tables = {
            "logits": torch.zeros(count, self.facts.classes, device=device),  # a moving sum; `means` weighs it
            "hard": torch.zeros(count, dtype=torch.int64, device=device),  # the label that an epoch left
            "clean": torch.zeros(count, dtype=torch.bool, device=device),
        }
        self.looked = 0  # epochs in these

    @property
    def start(self) -> int:
        """The first epoch that goes by the graph."""
        return max(1, round(self.c.starting * self.training.epochs))

    def lr_at(self, epoch: float) -> float:
        """As theirs, the rate moves between epochs only."""
        return super().lr_at(floor(epoch))

    def phases(self, epoch: int, look: Look) -> Iterator[Phase | Verdict]:
        seen = look.evidence(self.net)
        found, logits = self.spread(seen)
        if epoch >= self.start:
            yield self.said(seen, found.soft)
        self.remember(found, seen.labels, logits)
        if epoch < self.start:
            yield self.mixing_given(epoch)
        else:
            yield self.training_on(self.tables["hard"].cpu(), self.tables["clean"].cpu(), epoch)

    def verdict(self, look: Look) -> Verdict:
        """By a graph as the next epoch would see it; nothing is remembered of it."""
        seen = look.evidence(self.net)
        return self.said(seen, self.spread(seen)[0].soft)

    def said(self, seen: Evidence, soft: Tensor) -> Verdict:
        """By what the graph gives to the label; what it gives most to is suggested."""
        chance = against_the_rest(soft, seen.labels)
        return self.judged((seen,), {"confidence": (own_shares(seen),), "neighbours": (chance,)}, (chance.cpu(),), soft)

    def spread(self, seen: Evidence) -> "tuple[Spread, Tensor]":
        """What the graph makes of the labels so far, and the sum of logits with this look in it."""
        keep = self.c.memory
        logits = keep * self.tables["logits"] + (1 - keep) * seen.probs.clamp_min(torch.finfo(torch.float32).tiny).log()
        probs = (logits / (1 - keep ** (self.looked + 1))).softmax(1)
        z = projected(self.net, seen.features)
        cosines, near = nearest(z, voters(len(z), self.c.neighbours), itself=False)
        return Spread(spread_over(cosines**STEEP, near, self.known(probs, seen.labels), self.c.spread), near), logits

    def known(self, probs: Tensor, given: Tensor) -> Tensor:
        """The labels that spread (N, K): clean ones alone, of others p; the given ones at first."""
        if self.looked == 0:
            return F.one_hot(given, probs.shape[1]).to(probs.dtype)
        hard = F.one_hot(self.tables["hard"], probs.shape[1]).to(probs.dtype)
        return torch.where(self.tables["clean"].unsqueeze(1), hard, probs)

    def remember(self, found: "Spread", given: Tensor, logits: Tensor) -> None:
        """Which labels are sure and hang together, for training and for the next epoch's graph."""
        share, labels = kept(found.soft, given, self.c.low).max(1)
        pinned = self.facts.pinned
        if pinned is not None:
            labels = torch.where(pinned, given, labels)
        clean = largest_parts(found.near, labels, share > self.c.high)
        self.tables["hard"].copy_(labels)
        self.tables["clean"].copy_(clean if pinned is None else clean | pinned)
        self.tables["logits"].copy_(logits)
        self.looked += 1

    def mixing_given(self, epoch: int) -> Phase:
        """An epoch of cross-entropy on given labels, mixed."""
        every = torch.ones(len(self.facts.given), dtype=torch.bool)
        views, tensors, order = self.planned(every, epoch)
        tensors = {"labels": self.facts.given[order], **tensors}
        return Phase("warm-up", mixing_step, (self.net,), views, tensors, (self.net, self.facts.classes))

    def training_on(self, labels: Tensor, clean: Tensor, epoch: int) -> Phase:
        """Every sample, whatever its label; terms about labels are of those that are clean."""
        views, tensors, order = self.planned(clean, epoch)
        tensors = {"labels": labels[order], "clean": clean[order].float(), **tensors}
        fixed = (self.net, self.facts.classes, self.c.temperature, self.c.instances, self.c.classes)
        return Phase("graph", ngc_step, (self.net,), views, tensors, fixed)

    def planned(self, clean: Tensor, epoch: int) -> tuple[dict[str, View], dict[str, Tensor], Tensor]:
        """An epoch's views and draws, and the rows (S, B) that they are of."""
        generator = self.stream(streams.PLAN, epoch, self.net)
        order = self.order(self.net, epoch, generator)
        steps = len(order)
        first, second = pairs(clean[order], 2 if self.c.mixes_strong else 1, generator)
        share = losses.beta_draws(steps, self.c.mixing, generator).float()
        tensors = {"first": first, "second": second, "share": share, "lr": self.rates(epoch, steps)}
        return {"weak": View(order, "weak"), "strong": View(order, "strong")}, tensors, order

    def state_dict(self) -> dict[str, Tensor]:
        return {"looked": torch.tensor(self.looked)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.looked = int(state.get("looked", 0))


@dataclass(frozen=True)
class Spread:
    """What the graph gives to each class (N, K), and who is near whom in it (N, k)."""

    soft: Tensor
    near: Tensor


@torch.no_grad()
def spread_over(weights: Tensor, near: Tensor, known: Tensor, spread: float) -> Tensor:
    """(I - spread * S) Z = Y / class sizes, solved for all classes at once by conjugate gradients; rows of Z as shares (N, K).

    S is the graph with edges both ways, each weight (N, k) divided by the root of both ends' sums. A sample to which nothing
    spreads keeps even shares.
    """
    count, k = near.shape
    rows = torch.arange(count, device=near.device).unsqueeze(1).expand(count, k).flatten()
    both = torch.stack((torch.cat((rows, near.flatten())), torch.cat((near.flatten(), rows))))
    values = weights.flatten().to(known.dtype).repeat(2)
    total = torch.zeros(count, dtype=known.dtype, device=near.device).index_add_(0, both[0], values)
    root = torch.where(total > 0, total, 1.0).sqrt()
    values = values / (root[both[0]] * root[both[1]])
    with warnings.catch_warnings():  # torch 2.11 announces that it does not check what it is told not to check
        warnings.filterwarnings("ignore", "Sparse invariant checks")
        graph = torch.sparse_coo_tensor(both, values, (count, count), check_invariants=False).coalesce()
    wanted = known / known.sum(0).clamp_min(torch.finfo(known.dtype).tiny)
    solved = torch.zeros_like(wanted)
    rest = wanted.clone()
    along, square = rest.clone(), rest.square().sum(0)
    for _ in range(SOLVING):
        pushed = along - spread * (graph @ along)
        curve = (along * pushed).sum(0)
        step = torch.where(curve > 0, square / curve.clamp_min(torch.finfo(known.dtype).tiny), 0.0)
        solved, rest = solved + step * along, rest - step * pushed
        now = rest.square().sum(0)
        along = rest + torch.where(square > 0, now / square.clamp_min(torch.finfo(known.dtype).tiny), 0.0) * along
        square = now
    found = solved.clamp_min(0)
    total = found.sum(1, keepdim=True)
    return torch.where(total > 0, found / total.clamp_min(torch.finfo(known.dtype).tiny), 1 / known.shape[1])


@torch.no_grad()
def largest_parts(near: Tensor, labels: Tensor, sure: Tensor) -> Tensor:
    """(N,): sure samples of the largest connected part of their class. Two are joined that are near each other, both ways."""
    count, k = near.shape
    rows = torch.arange(count, device=near.device).unsqueeze(1).expand(count, k)
    alike = sure.unsqueeze(1) & sure[near] & (labels.unsqueeze(1) == labels[near])
    one, other = rows[alike], near[alike]
    keys = one * count + other
    mutual = torch.isin(keys, other * count + one)
    one, other = one[mutual], other[mutual]
    part = torch.arange(count, device=near.device)
    while True:  # everyone takes the lowest number among its neighbours', then that one's own, until nothing changes
        lower = part.scatter_reduce(0, one, part[other], "amin")
        lower = lower[lower]
        if torch.equal(lower, part):
            break
        part = lower
    sizes = torch.bincount(part[sure], minlength=count)  # (N,) at the number of each part
    classes = int(labels.max()) + 1 if count else 0
    heads = torch.nonzero(sizes).flatten()
    largest = torch.zeros(classes, dtype=torch.int64, device=near.device).scatter_reduce(0, labels[heads], sizes[heads], "amax")
    winners = torch.full((classes,), count, device=near.device)
    best = heads[sizes[heads] == largest[labels[heads]]]
    winners = winners.scatter_reduce(0, labels[best], best, "amin")  # of equally large ones the first
    return sure & (part == winners[labels])


def mixing_step(
    net: Net,
    classes: int,
    weak: Tensor,
    strong: Tensor,
    labels: Tensor,
    first: Tensor,
    second: Tensor,
    share: Tensor,
    lr: Tensor,
) -> Terms:
    """As published, the weak views are looked at beside, and BatchNorm remembers pictures that are not mixed."""
    with torch.no_grad():
        net.look(weak)
    pixels, wanted = net.fuse(mixed)(weak, strong, labels, first, second, share, classes)
    loss = losses.labelled_loss(net.look(pixels)[0], wanted)
    net.descend(loss, lr)
    return {"cross_entropy": loss}


def ngc_step(
    net: Net,
    classes: int,
    temperature: float,
    instances: float,
    together: float,
    weak: Tensor,
    strong: Tensor,
    labels: Tensor,
    clean: Tensor,
    first: Tensor,
    second: Tensor,
    share: Tensor,
    lr: Tensor,
) -> Terms:
    """One step on two views of B samples; `clean` (B,) is 1 where a label counts; `first` and `second` say what is mixed."""
    z = F.normalize(net.heads["projector"](net.look(weak)[1]), dim=1)
    pixels, wanted = net.fuse(mixed)(weak, strong, labels, first, second, share, classes)
    cross_entropy = losses.labelled_loss(net.look(pixels)[0], wanted) * clean.amax()
    other = F.normalize(net.heads["projector"](net.look(strong)[1]), dim=1)
    apart, alike = net.fuse(contrasts)(z, other, labels, clean, temperature)
    net.descend(cross_entropy + instances * apart + together * alike, lr)
    return {"cross_entropy": cross_entropy, "instances": apart, "classes": alike}


def contrasts(z: Tensor, other: Tensor, labels: Tensor, clean: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Telling a sample's other view from all views; and, without the temperature, that view and those of clean samples of its
    class from all, the mean over these."""
    logits = instance_logits(z, other)
    apart = -F.log_softmax(logits / temperature, 1)[:, 0].mean()
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    friends = (labels.unsqueeze(1) == labels) & (clean.unsqueeze(1) * clean > 0) & ~itself
    chosen = torch.cat((torch.ones_like(friends[:, :1]), friends, friends), 1)
    shares = torch.where(chosen, F.log_softmax(logits, 1), 0.0)
    return apart, -(shares.sum(1) / chosen.sum(1)).mean()
