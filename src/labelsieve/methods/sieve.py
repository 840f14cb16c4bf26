"""`sieve`: our own method. One network and its slow twin, which relabels, chooses by neighbours' votes, and guesses for the rest.

It stands on SSR+ (`methods/ssr.py`): no warm-up, no noise rate, labels that their nearest samples vote for. New are the twin, a
moving average of the weights that judges and becomes the model; its guesses, which the network learns on strong views of any
sample; and boxes, cut from one picture and put into another, beside blends. Not measured at full length yet. Letters: y' a label
after relabelling, p the twin's softmax, l the mixing share.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.config.setting import setting
from labelsieve.methods.contract import Cell, Look, Make, Phase, Terms, Verdict, View
from labelsieve.methods.net import Eye, Net, Twin
from labelsieve.methods.parts import losses, streams
from labelsieve.methods.parts.streams import cycled
from labelsieve.methods.ssr import HEAD, Selection, Ssr, SsrPlus, head

MANY, SURE_OF_MANY, SURE_OF_FEW = 50, 0.8, 0.9  # classes; softmax that relabels from so many on, and below


class Sieve(Ssr):
    """Every epoch the twin looks at all samples as they are. Relabelling and selection are SSR's, by what the twin makes of them.

    A step has two strong views of each chosen sample, the first blended with another and the second with a box of another in it,
    and weak and strong views of samples drawn from all. Of these the network learns the twin's guess where that is sure, and to
    predict the twin's features.
    """

    name = "sieve"
    costs = "3 views trained on, 2 looked at"
    cells: ClassVar[Mapping[str, Cell]] = {name: Cell(None, cell.settings) for name, cell in SsrPlus.cells.items()}

    @dataclass(frozen=True)
    class Config(Ssr.Config):
        theta_r: float = setting(0.0, "softmax above which the twin's prediction takes the label's place; 0: 0.9, from 50 "
                                 "classes on 0.8", low=0, high=1)  # fmt: skip
        consistency: float = setting(1.0, "weight of predicting the twin's features of a weak view from a strong one", low=0)
        guesses: float = setting(1.0, "weight of the twin's guesses", low=0, high=1e3)
        sure: float = setting(0.8, "the least softmax of a guess that is learnt", low=0, high=1)
        twin: float = setting(0.999, "how much of itself the twin keeps at every step", low=0, high=0.99999)
        boxes: bool = setting(True, "half of the views get a box of another picture; no: all are blended")

    def build(self, make: Make) -> None:
        self.nets = [make(0, heads={"projector": head, "predictor": lambda _: head(HEAD)}, twin=True)]

    @property
    def twin(self) -> Twin:
        assert self.net.twin is not None
        return self.net.twin

    @property
    def model(self) -> Sequence[Eye]:
        return [self.twin]

    @property
    def theta_r(self) -> float:
        return self.c.theta_r or (SURE_OF_MANY if self.facts.classes >= MANY else SURE_OF_FEW)

    def phases(self, epoch: int, look: Look) -> Iterator[Phase | Verdict]:
        seen = look.evidence(self.twin)
        chosen = self.select(seen)
        yield self.said(seen, chosen)
        yield self.training_on(chosen, epoch, look)

    def verdict(self, look: Look) -> Verdict:
        seen = look.evidence(self.twin)
        return self.said(seen, self.select(seen))

    def training_on(self, chosen: Selection, epoch: int, look: Look) -> Phase:
        """As many steps as all samples have whole batches, whatever the number of chosen ones."""
        batch, generator = self.training.batch, self.stream(streams.PLAN, epoch, self.net)
        every = torch.arange(len(chosen.labels))
        steps = max(1, len(every) // batch)
        labels = chosen.labels.cpu()
        rows = cycled(self.drawn_from(chosen, labels, generator), steps * batch, generator).view(steps, batch)
        order = cycled(every, steps * batch, generator).view(steps, batch)
        at = torch.arange(epoch * steps, (epoch + 1) * steps)
        tensors = {
            "labels": labels[rows],
            "partner": torch.stack([torch.randperm(2 * batch, generator=generator) for _ in range(steps)]),
            "share": losses.mixing_shares(steps, self.c.beta, generator),
            "box": boxes(steps, generator),
            "keep": ((1 + at) / (10 + at)).clamp(max=self.c.twin),
            "lr": self.rates(epoch, steps),
        }
        views = {
            "strong": View(torch.cat((rows, rows), 1), "strong"),
            "weak": View(order, "weak"),
            "other": View(order, "strong"),
        }
        self.twin.network.train()  # normalised by its batches of whole pictures, which it will be asked about
        self.twin.heads.train()
        cut = self.c.boxes and not self.facts.vectors
        fixed = (self.net, self.twin, self.facts.classes, self.c, cut)
        return Phase("neighbours", sieve_step, (self.net,), views, tensors, fixed)


def sieve_step(
    net: Net,
    twin: Twin,
    classes: int,
    c: Sieve.Config,
    cut: bool,
    strong: Tensor,
    weak: Tensor,
    other: Tensor,
    labels: Tensor,
    partner: Tensor,
    share: Tensor,
    box: Tensor,
    keep: Tensor,
    lr: Tensor,
) -> Terms:
    """`strong` has two views of each of B chosen samples, in two halves; `weak` and `other` are views of any B.

    The network sees all 3B in one pass, which a GPU does faster than two.
    """
    with torch.no_grad():
        said, v = twin.look(weak)
        aim = twin.heads["projector"](v)
        confidence, guess = said.softmax(1).max(1)
    pixels, wanted = net.fuse(mixed)(strong, labels, partner, share, box, classes, cut)
    logits, v = net.look(torch.cat((pixels, other)))
    chosen = len(pixels)
    labelled = losses.labelled_loss(logits[:chosen], wanted)
    ahead = net.heads["predictor"](net.heads["projector"](v[chosen:]))
    consistency = -F.cosine_similarity(ahead, aim, dim=1).mean()
    guessed = (losses.cross_entropies(logits[chosen:], guess) * (confidence > c.sure)).mean()
    net.descend(labelled + c.consistency * consistency + c.guesses * guessed, lr)
    net.follow(keep)
    return {"cross_entropy": labelled, "consistency": consistency, "guesses": guessed}


def mixed(
    strong: Tensor, labels: Tensor, partner: Tensor, share: Tensor, box: Tensor, classes: int, cut: bool
) -> tuple[Tensor, Tensor]:
    """Each of the 2B views and its target, mixed with its partner: floats of the views' shape, (2B, K).

    The first B are blended, l of its own. With `cut`, the last B get the partner's `box` (4,): top, bottom, left and right in
    shares of a side.
    """
    wanted = F.one_hot(labels, classes).float().repeat(2, 1)
    own, others = strong.float(), strong[partner].float()
    blended = losses.mix(own, others, share)
    if not cut:
        return blended, losses.mix(wanted, wanted[partner], share)
    inside = within(box[0], box[1], own.shape[2]).unsqueeze(1) & within(box[2], box[3], own.shape[3])
    half = len(labels)
    pixels = torch.cat((blended[:half], torch.where(inside, others[half:], own[half:])))
    kept = torch.cat((share.expand(half), (1 - inside.float().mean()).expand(half))).unsqueeze(1)
    return pixels, kept * wanted + (1 - kept) * wanted[partner]


def within(first: Tensor, last: Tensor, side: int) -> Tensor:
    """(side,) bool: the pixels whose middle lies between two shares of a side."""
    middles = (torch.arange(side, device=first.device) + 0.5) / side
    return (middles >= first) & (middles < last)


def boxes(steps: int, generator: torch.Generator) -> Tensor:
    """Top, bottom, left and right of a box per step, (steps, 4), as shares of the sides: any area is as likely as any other; what
    sticks out is lost."""
    area, down, right = torch.rand(3, steps, generator=generator)
    half = area.sqrt() / 2
    return torch.stack((down - half, down + half, right - half, right + half), 1).clamp(0, 1)
