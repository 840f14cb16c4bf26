"""`promix`: two networks with two heads each, trained on every label that its loss, a prediction or both networks speak for.

Xiao, Dong, Wang, Feng, Wu, Chen, Zhao: ProMix, Combating Label Noise via Maximizing Clean Sample Utility, IJCAI 2023. Theirs,
best epoch, CIFAR-10 sym 20/50/80/90 %, asym 40 %: 97.69, 97.40, 95.49, 93.36, 96.59; CIFAR-100 sym: 82.64, 80.06, 69.37, 42.93.
With labels that people gave: CIFAR-10N aggre 97.65, rand1 97.39, worst 96.34, CIFAR-100N 73.79. Ours at full length: not run.
Letters: p the softmax, pi the mean p of samples that are chosen and of those that are not, rho the share of the set that is
chosen by loss, tau the share of p from which a label is sure, l the mixing share.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.config.setting import setting
from labelsieve.methods.ce import plain_epoch
from labelsieve.methods.contract import Cell, Look, Make, Method, Phase, Terms, Verdict, View, own_shares
from labelsieve.methods.net import Net
from labelsieve.methods.parts import losses, streams
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.neighbours import against_the_rest
from labelsieve.methods.parts.streams import cycled

SIDE = 32  # pixels a side at which masks are drawn; other sizes have them stretched
DECAY = 3  # a mask's waves are weaker by this power of their frequency
HEADS = 2  # the classifier, and a second one that alone learns from samples that are not chosen


def cell(published: float, classes: int, rho: float = 0.5, asymmetric: bool = False) -> Cell:
    """A CIFAR cell as they ran it. At 80 and 90 % their files don't say which rho; here it is the one of most others."""
    few = classes == 10
    return Cell(
        published,
        {
            "network": "resnet18-cifar",
            "training.epochs": 600,
            "training.batch": 256,
            "training.warmup_batch": 256,
            "training.lr": 0.05,
            "training.schedule": "cosine",
            "training.lr_drop_factor": 1000.0,
            "training.weight_decay": 5e-4,
            "views.policy": "auto",
            "engine.eval_batch": 2000,
        },
        {
            "rho": rho,
            "tau": 0.99 if few else 0.95,
            "debias": 0.8 if few else 0.5,
            "starting": (10 if few else 30) / 600,
            "entropy_penalty": asymmetric,
        },
    )


class ProMix(Method):
    """In each given class, the rho N/K labels of the smallest loss are chosen. In a batch, those join whose label has more than
    tau of p; and towards the end, samples of which both networks surely predict one class, with that as their label.

    A network learns from chosen samples weakly and strongly varied, mixed, and cut into each other by random masks (FMix). A
    second head learns the same, and in the first sixth of the run from samples that are not chosen, too. Logits are shifted by
    the logarithm of pi where losses are taken, and against it where labels are guessed, so that common classes don't grow.

    rho is a hidden noise prior: with it you say that so many labels of each class are right. Its authors took 0.7 at 20 % noise,
    and 0.5 elsewhere. You get 0.5 if you say nothing: with more than half of the labels wrong, some of these are trained on from
    the beginning; with few wrong ones, tau brings in the rest.

    Published, a batch in which all or none are chosen ends in NaN; here it does without these terms. A mixed batch is filled up
    with the mixtures it has, so that every step has one shape. Masks are drawn from all low frequencies, as FMix's paper has it;
    its code leaves most of the horizontal ones out. Their strong views are RandAugment with Cutout, here `views.policy`.
    Vectors have no places to cut, and do without masks.
    """

    name = "promix"
    networks = 2
    costs = "12 views trained on, 2 looked at"
    varies = True
    cells: ClassVar[Mapping[str, Cell]] = {
        "cifar10-sym20": cell(97.69, 10, 0.7),
        "cifar10-sym50": cell(97.40, 10),
        "cifar10-sym80": cell(95.49, 10),
        "cifar10-sym90": cell(93.36, 10),
        "cifar10-asym40": cell(96.59, 10, asymmetric=True),
        "cifar100-sym20": cell(82.64, 100, 0.7),
        "cifar100-sym50": cell(80.06, 100),
        "cifar100-sym80": cell(69.37, 100),
        "cifar100-sym90": cell(42.93, 100),
    }

    @dataclass(frozen=True)
    class Config:
        rho: float = setting(0.5, "so large a share of an even class is chosen by loss: no more than what is right of it; "
                             "with 20 % noise 0.7", low=0.001, high=1)  # fmt: skip
        tau: float = setting(0.99, "a label with more than this share of the softmax is chosen; CIFAR-100: 0.95", low=0, high=1)
        debias: float = setting(0.8, "how far common classes are held back in losses and guesses; CIFAR-100: 0.5", low=0, high=10)
        debias_rate: float = setting(0.9999, "how much of the mean softmax stays at every step", low=0, high=0.999999)
        starting: float = setting(0.05, "share of all epochs that are plain cross-entropy, at the beginning", low=0, high=1)
        entropy_penalty: bool = setting(False, "negative entropy in these epochs, for asymmetric noise")
        ramp: float = setting(50 / 600, "share of all epochs in which all but cross-entropy on weak views gains its weight",
                              low=0, high=1)  # fmt: skip
        unchosen: float = setting(0.1, "weight that samples which are not chosen gain on the second head in twice the ramp; "
                                  "after it they have none", low=0, high=1e3)  # fmt: skip
        guessing: float = setting(250 / 600, "share of all epochs, the last ones, in which both networks' predictions choose",
                                  low=0, high=1)  # fmt: skip
        filled: float = setting(0.9, "these choose until so much of a batch is chosen", low=0, high=1)
        temperature: float = setting(0.5, "what is not chosen is guessed as p^(1/temperature)", low=1e-3, high=10)
        mixing: float = setting(4.0, "mixing shares are drawn from Beta(mixing, mixing)", low=0.05, high=1e3)

    def build(self, make: Make) -> None:
        classes = self.facts.classes
        self.nets = [make(number, heads={"second": lambda d: nn.Linear(d, classes)}) for number in range(2)]
        # pi of each network: of chosen samples, of the others
        self.priors = torch.full((2, 2, classes), 1 / classes, device=self.facts.device)

    @property
    def start(self) -> int:
        """The first epoch that chooses; before it there is one at least, for losses of drawn weights say nothing."""
        return max(1, round(self.c.starting * self.training.epochs)) if self.c.starting else 0

    def lr_at(self, epoch: float) -> float:
        """As theirs, the rate moves between epochs only."""
        return super().lr_at(floor(epoch))

    def phases(self, epoch: int, look: Look) -> Iterator[Phase | Verdict]:
        if epoch < self.start:
            for net in self.nets:
                yield plain_epoch(self, net, epoch, self.c.entropy_penalty)
            return
        seen = tuple(look.evidence(net) for net in self.nets)
        yield self.said(seen)
        yield self.training_on(torch.stack([self.small_losses(each) for each in seen], 1).cpu(), epoch)

    def small_losses(self, seen: Evidence) -> Tensor:
        """(N,): in each class the labels of the smallest losses, and those that are surely right."""
        chosen, pinned = smallest(seen.losses, seen.labels, seen.classes, self.c.rho), self.facts.pinned
        return chosen if pinned is None else chosen | pinned

    def training_on(self, selected: Tensor, epoch: int) -> Phase:
        """Whole batches of all samples; `selected` (N, 2) are those that each network's losses chose."""
        c, given, batch, net = self.c, self.facts.given, self.training.batch, self.nets[0]
        generator = self.stream(streams.PLAN, epoch, net)
        drawn = self.training.sampler.rows(given, batch, self.stream(streams.DRAW, epoch, net))
        rows = torch.arange(len(given)) if drawn is None else drawn
        steps = max(1, len(rows) // batch)
        order = cycled(rows, steps * batch, generator).view(steps, batch)
        mixtures = 2 if self.facts.vectors else 4  # of each network: every head's mixed batch, then every head's masked one
        shares = losses.mixing_shares(2 * HEADS * steps, c.mixing, generator).view(steps, 2, HEADS)
        tensors = {
            "labels": given[order],
            "selected": selected[order],
            "partners": torch.rand(steps, 2, mixtures, batch, generator=generator),
            "shares": shares,
            "weight": torch.full((steps,), grown(epoch, c.ramp * self.training.epochs)),
            "unchosen": torch.full((steps,), self.weight_of_unchosen(epoch)),
            "guessing": torch.full((steps,), float(self.training.epochs - epoch < round(c.guessing * self.training.epochs))),
            "lr": self.rates(epoch, steps),
        }
        if not self.facts.vectors:
            tensors["areas"] = torch.rand(steps, 2, HEADS, generator=generator)  # Beta(1, 1)
            tensors["masks"] = ranked_waves(steps * 2 * HEADS, generator).view(steps, 2, HEADS, SIDE, SIDE)
        views = {"weak": View(order, "weak"), "strong": View(order, "strong")}
        fixed = (*self.nets, self.priors, self.c)
        return Phase("chosen", promix_step, tuple(self.nets), views, tensors, fixed, tables={"priors": self.priors})

    def weight_of_unchosen(self, epoch: int) -> float:
        length = 2 * self.c.ramp * self.training.epochs
        return self.c.unchosen * epoch / length if epoch < length else 0.0

    def verdict(self, look: Look) -> Verdict:
        return self.said(tuple(look.evidence(net) for net in self.nets))

    def said(self, seen: tuple[Evidence, ...]) -> Verdict:
        """By p, and by what guesses are made of: both heads without what common classes owe to being common."""
        soft = [self.debiased(r, each) for r, each in enumerate(seen)]
        chances = tuple(against_the_rest(each, its.labels) for each, its in zip(soft, seen))
        opinions = {"confidence": tuple(own_shares(each) for each in seen), "guess": chances}
        return self.judged(seen, opinions, (torch.stack(chances).mean(0).cpu(),), torch.stack(soft).mean(0))

    @torch.no_grad()
    def debiased(self, r: int, seen: Evidence) -> Tensor:
        """(N, K): the mean of both heads' debiased softmax."""
        log_prior = self.priors[r, 0].log()
        second = self.nets[r].heads["second"](seen.features.float())
        first = seen.probs.clamp_min(torch.finfo(torch.float32).tiny).log()
        return torch.stack([(logits - self.c.debias * log_prior).softmax(1) for logits in (first, second)]).mean(0)

    def state_dict(self) -> dict[str, Tensor]:
        return {"priors": self.priors}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if "priors" in state:
            self.priors.copy_(state["priors"])


def smallest(of: Tensor, labels: Tensor, classes: int, rho: float) -> Tensor:
    """(N,): in each class the ceil(rho N/K) rows of the smallest losses, at least one and no more than there are."""
    by_loss = of.argsort(stable=True)
    by_class = by_loss[labels[by_loss].argsort(stable=True)]
    sizes = torch.bincount(labels, minlength=classes)
    place = torch.arange(len(labels), device=labels.device) - (sizes.cumsum(0) - sizes)[labels[by_class]]
    return torch.zeros_like(labels, dtype=torch.bool).scatter_(0, by_class, place < max(1, ceil(rho * len(labels) / classes)))


def grown(epoch: float, length: float) -> float:
    return min(1.0, epoch / length) if length else 1.0


def ranked_waves(count: int, generator: torch.Generator) -> Tensor:
    """Pictures (count, SIDE, SIDE) of random waves, long ones strongest; each pixel is the share of pixels that are brighter.

    So a mask of a given area is where it is below that: blobs of no particular form.
    """
    across, along = torch.fft.rfftfreq(SIDE), torch.fft.fftfreq(SIDE)
    frequency = (along.unsqueeze(1).square() + across.square()).sqrt().clamp_min(1 / SIDE)
    drawn = torch.view_as_complex(torch.randn(count, *frequency.shape, 2, generator=generator))
    waves = torch.fft.irfft2(drawn / frequency**DECAY, s=(SIDE, SIDE)).flatten(1)
    return (waves.argsort(1, descending=True).argsort(1) / SIDE**2).view(count, SIDE, SIDE)


class Chosen(NamedTuple):
    """What a network learns from in a batch, (B,) each: the labels, and whose count."""

    labels: Tensor
    used: Tensor


def promix_step(
    one: Net,
    other: Net,
    priors: Tensor,
    c: ProMix.Config,
    weak: Tensor,
    strong: Tensor,
    labels: Tensor,
    selected: Tensor,
    partners: Tensor,
    shares: Tensor,
    weight: Tensor,
    unchosen: Tensor,
    guessing: Tensor,
    lr: Tensor,
    areas: Tensor | None = None,
    masks: Tensor | None = None,
) -> Terms:
    """One step of both networks on two views of B samples; `selected` (B, 2) are those that the losses chose."""
    nets = (one, other)
    looks = [(both_heads(net, weak), both_heads(net, strong)) for net in nets]
    with torch.no_grad():
        found = chosen([seen[0] for seen, _ in looks], labels, selected.bool(), priors, c, guessing > 0)
    summed: dict[str, Tensor] = {}
    for r, (net, (seen, varied), its) in enumerate(zip(nets, looks, found)):
        shift, other_shift = c.debias * priors[r].log()  # as they are before this step
        with torch.no_grad():
            aim = losses.sharpen((seen[0] - other_shift).softmax(1), c.temperature)
            moved(priors[r], seen[0].softmax(1), its.used, c.debias_rate)
        between, cut = [], []
        for h in range(HEADS):
            between.append(mixed(net, h, weak, its, partners[r, h], shares[r, h], shift))
            if masks is not None and areas is not None:
                cut.append(masked(net, h, weak, its, partners[r, HEADS + h], areas[r, h], masks[r, h], shift))
        terms = {
            "cross_entropy": sum_of([learnt(logits + shift, its) for logits in seen]),
            "strong": sum_of([learnt(logits + shift, its) for logits in varied]),
            "mixed": sum_of(between),
            **({"masked": sum_of(cut)} if cut else {}),
        }
        spare = 1 - its.used
        of_spare = [soft_loss(logits[1] + other_shift, aim, spare) for logits in (seen, varied)]
        terms["unchosen"] = of_spare[0] + weight * of_spare[1]
        loss = terms["cross_entropy"] + unchosen * terms["unchosen"]
        loss = loss + weight * sum_of([terms[name] for name in ("strong", "mixed", "masked") if name in terms])
        net.descend(loss, lr)
        summed = {name: value.detach() + summed.get(name, 0.0) for name, value in terms.items()}
    return summed


def both_heads(net: Net, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """The classifier's logits and the second head's, (B, K) each."""
    logits, v = net.look(pixels)
    return logits, net.heads["second"](v)


def chosen(
    logits: Sequence[Tensor], labels: Tensor, selected: Tensor, priors: Tensor, c: ProMix.Config, guessing: Tensor
) -> list[Chosen]:
    """Of each network, by its logits (B, K): given labels that are chosen by loss or are sure, else its guess. Where `guessing`,
    the surest samples on whose class both agree are used, too, until a batch is full."""
    p = [each.softmax(1) for each in logits]
    sure = [each.max(1) for each in p]
    agreed = (sure[0].indices == sure[1].indices) & (sure[0].values > c.tau) & (sure[1].values > c.tau) & guessing
    surety = (sure[0].values + sure[1].values) / 2
    found = []
    for r, shares in enumerate(p):
        kept = selected[:, r] | (shares.gather(1, labels.unsqueeze(1)).squeeze(1) > c.tau)
        new = agreed & ~kept
        place = torch.where(new, surety, -1.0).argsort(descending=True, stable=True).argsort()
        used = kept | (new & (place < int(len(labels) * c.filled) - kept.sum()))
        guess = (logits[r] - c.debias * priors[r, 0].log()).argmax(1)
        found.append(Chosen(torch.where(kept, labels, guess), used.to(shares.dtype)))
    return found


def moved(prior: Tensor, p: Tensor, used: Tensor, keep: float) -> None:
    """pi of chosen samples and of the others (2, K) a little towards their mean p; without any it stays where it is."""
    members = torch.stack((used, 1 - used))
    count = members.sum(1, keepdim=True)
    prior.copy_(torch.where(count > 0, keep * prior + (1 - keep) * (members @ p) / count.clamp_min(1), prior))


def sum_of(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(tuple(values)).sum(0)


def learnt(logits: Tensor, its: Chosen) -> Tensor:
    return losses.set_mean(losses.cross_entropies(logits, its.labels), its.used)


def soft_loss(logits: Tensor, aim: Tensor, used: Tensor) -> Tensor:
    return losses.set_mean(-(aim * F.log_softmax(logits, 1)).sum(1), used)


def mixed(net: Net, head: int, weak: Tensor, its: Chosen, partner: Tensor, share: Tensor, shift: Tensor) -> Tensor:
    """Chosen pictures mixed in pairs by a share, on a head."""
    first, second = pairs(its.used, partner)
    pixels = losses.mix(weak[first].float(), weak[second].float(), share)
    return of_pairs(net, head, pixels, its, first, second, share, shift)


def masked(net: Net, head: int, weak: Tensor, its: Chosen, partner: Tensor, area: Tensor, waves: Tensor, shift: Tensor) -> Tensor:
    """Chosen pictures cut into each other along a mask, on a head; `area` () is the first one's part, `waves` (SIDE, SIDE)."""
    first, second = pairs(its.used, partner)
    mask = waves[None, None]
    if weak.shape[2:] != waves.shape:
        mask = F.interpolate(mask, weak.shape[2:], mode="bilinear", antialias=False)
    pixels = torch.where(mask < area, weak[first], weak[second])
    return of_pairs(net, head, pixels, its, first, second, area, shift)


def pairs(used: Tensor, partner: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows of a batch are mixed with which (B,) each: the chosen ones in order, and in that of the numbers `partner` (B,).

    Again from the start until all B places are filled; where nothing is chosen, all are mixed, for it weighs nothing.
    """
    out = (used <= 0) & (used.amax() > 0)
    count = (~out).sum()
    again = torch.arange(len(used), device=used.device) % count
    return out.to(torch.uint8).argsort(stable=True)[again], torch.where(out, 2.0, partner).argsort()[again]


def of_pairs(
    net: Net, head: int, pixels: Tensor, its: Chosen, first: Tensor, second: Tensor, share: Tensor, shift: Tensor
) -> Tensor:
    """Cross-entropy on both labels, the first one's weighted by the share; nothing where nothing is chosen."""
    logits = both_heads(net, pixels)[head] + shift
    one, other = (losses.cross_entropies(logits, its.labels[rows]).mean() for rows in (first, second))
    return losses.mix(one, other, share) * its.used.amax()
