"""`dividemix`: two networks, each trained by MixMatch on the labels that a mixture over its peer's losses takes as clean.

Li, Socher, Hoi: DivideMix, ICLR 2020. Paper (theirs): CIFAR-10 sym 20/50/80/90 %: 96.1, 94.6, 93.2, 76.0. Not measured here at
full length; RESULTS.md has shorter runs. Letters: w the chance that a label is clean, T the temperature, l the mixing share,
x and u labelled and unlabelled views, B pictures each.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.config.setting import setting
from labelsieve.methods import MIXTURES
from labelsieve.methods.ce import plain_epoch
from labelsieve.methods.contract import Look, Make, Method, Phase, Terms, Verdict, View, own_shares, together
from labelsieve.methods.net import Net
from labelsieve.methods.parts import losses, streams
from labelsieve.methods.parts.batchnorm import guesses
from labelsieve.methods.parts.estimate import contradicted
from labelsieve.methods.parts.evidence import Evidence, at, collapse, pin, taken, weighed
from labelsieve.methods.parts.mixture import MixtureCleaner
from labelsieve.methods.parts.sgd import part
from labelsieve.methods.parts.streams import cycled

PEERS = ((0, 1), (1, 0))
BLOCK = 32_768  # rows that are judged in one go where the set is too large to be gathered whole
PHASES = {"loss": "mixture", "prototype": "prototypes"}  # what an epoch is called, by the opinion that divides in it


class Judged(NamedTuple):
    """What each network makes of its rows: evidence and chances by name, (M,); `rows` (M,) of a draw, none: all, in order."""

    seen: tuple[Evidence, ...]
    opinions: dict[str, tuple[Tensor, ...]]
    rows: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Division:
    """One network's training set: `w` (M,) is the chance that a label is clean, `clean` (M,) those taken as labelled.

    `rows` (M,) are the samples they belong to, on the host; None: all of them, in order.
    """

    w: Tensor
    clean: Tensor
    rows: Tensor | None = None


class DivideMix(Method):
    name = "dividemix"
    networks = 2
    costs = "8 views trained on for each clean label"
    own_section = False  # training.* and cleaning.*
    cleaners: ClassVar[tuple[str, ...]] = MIXTURES
    settles = True
    warms_up = True

    @dataclass(frozen=True)
    class Config:
        cleaner: str = setting("gmm-agn", "gmm-agn: one mixture over all losses; gmm-awr: one for each class")
        warmup: int = setting(8, "epochs of plain cross-entropy before the first division", low=0)
        entropy_penalty: bool = setting(False, "negative entropy in the warm-up, for asymmetric noise")
        mixture_threshold: float = setting(0.5, "strictly above: clean by loss", low=0, high=1)
        mixture_memory: int = setting(1, "mean of so many last loss vectors goes into the mixture", low=1, high=100)
        mixture_range: str = setting(
            "all", "losses are brought to 0..1 over all labels or each class's", choices=("all", "class")
        )
        least_clean: float = setting(0.0, "at least this share of labels is taken as clean", low=0, high=1)
        mixed: bool = setting(True, "mixed epochs after the warm-up; false: plain ones, as long as `caught_up` says")
        caught_up: float = setting(-1.0, "mixed epochs begin once networks contradict no larger share of the labels")
        lambda_u: float = setting(25.0, "weight of the unlabelled loss, which decides most", low=0)
        ramp_epochs: int = setting(16, "so long after the warm-up, lambda_u grows from 0 to its full weight", low=0)
        temperature: float = setting(0.5, "targets are sharpened as p^(1/temperature)", low=1e-3, high=10)
        beta: float = setting(4.0, "mixing shares are drawn from Beta(beta, beta)", low=0.05, high=1e3)
        prior_weight: float = setting(1.0, "of the penalty that pulls predictions towards the prior", low=0)
        guess_passes: int = setting(1, "passes that guess from a step's weak views", choices=(1, 2, 4))
        train_unlabelled: bool = setting(True, "false: only the labelled half is trained on, as on the web sets")
        strong_views: bool = setting(True, "mix strong views, in methods that have them")

    def build(self, make: Make) -> None:
        self.nets = [make(0), make(1)]
        known = {"per_class": self.c.cleaner.endswith("-awr"), "own_range": self.c.mixture_range == "class"}
        self.mixtures = [MixtureCleaner(memory=self.c.mixture_memory, **known) for _ in self.nets]
        self.has_mixed = False  # has it trained on a division yet?

    def settle(self, config: Config) -> None:
        super().settle(config)
        for mixture in self.mixtures:
            mixture.memory = config.mixture_memory

    def phases(self, epoch: int, look: Look) -> Iterator[Phase | Verdict]:
        """Algorithm 1, "CPC based DivideMix"; line numbers are the listing's. Lines 8-9 and 12-15 are CPC's (`cpc.py`)."""
        if self.age(epoch) < self.c.warmup:
            for net in self.nets:
                yield plain_epoch(self, net, epoch, self.c.entropy_penalty)  # line 2
            return
        found = self.stage_one(epoch, look)  # lines 5-6, 8-9, 12-15
        if not self.mixes(epoch, found):
            yield self.said(found, "loss", plain=True)
            for net in self.nets:
                yield plain_epoch(self, net, epoch, self.c.entropy_penalty, "plain")
            return
        self.has_mixed = True
        by = self.deciding(epoch)  # lines 18-23
        divisions = self.divided(found, by)
        yield self.said(found, by)
        for r, peer in PEERS:
            yield self.mixed(self.nets[r], self.nets[peer], divisions[r], epoch, look, PHASES[by])  # line 24

    def verdict(self, look: Look) -> Verdict:
        """One more division; of a set of which epochs draw some rows, all are judged by what was learnt from draws."""
        found = self.stage_one(self.training.epochs, look)
        if found.rows:
            found = self.judge_all(look)
        return self.said(found, list(found.opinions)[-1])

    def stage_one(self, epoch: int, look: Look) -> Judged:
        """Both divisions, before either network trains: of all rows, or of a draw for each network that will train on it.

        Both networks look at both draws, so that the cross-over holds: what network r trains on, its peer has judged.
        """
        sampler, batch = self.training.sampler, self.training.batch
        rows = [sampler.rows(self.facts.given, batch, self.stream(streams.DRAW, epoch, net)) for net in self.nets]
        draws = [some for some in rows if some is not None]
        if not draws:
            return self.judge(epoch, look)
        found = [self.judge(epoch, look, some) for some in draws]
        # Of what network r judged, the rows that its peer will train on.
        seen = tuple(found[peer].seen[r] for r, peer in PEERS)
        opinions = {name: tuple(found[peer].opinions[name][r] for r, peer in PEERS) for name in found[0].opinions}
        return Judged(seen, opinions, tuple(draws[peer] for _, peer in PEERS))

    def judge(self, epoch: int, look: Look, rows: Tensor | None = None) -> Judged:
        """Evidence, and each network's chances by a mixture over its losses (lines 5-6)."""
        pinned = at(self.facts.pinned, rows)
        seen = tuple(look.evidence(net, rows) for net in self.nets)
        for mixture, each in zip(self.mixtures, seen):
            mixture.learn(each)
        return Judged(seen, {"loss": tuple(pin(mixture.judge(each), pinned) for mixture, each in zip(self.mixtures, seen))})

    def deciding(self, epoch: int) -> str:
        """The opinion that divides in this epoch."""
        return "loss"

    def thresholds(self) -> dict[str, float]:
        return {"loss": self.c.mixture_threshold}

    def divided(self, found: Judged, by: str) -> list[Division]:
        """What each network trains on: what its peer found. The host waits for it."""
        threshold, least, divisions = self.thresholds()[by], self.c.least_clean, []
        for _, peer in PEERS:
            chances, rows = found.opinions[by][peer], found.rows[peer] if found.rows else None
            clean = taken(chances, threshold, at(self.facts.pinned, rows), least)
            divisions.append(Division(weighed(chances, clean, threshold, least), clean.cpu(), rows))
        return divisions

    def mixes(self, epoch: int, found: Judged) -> bool:
        """Always, or once the networks have caught up with labels that may all be right, if there is time; then to the end.

        Mixed epochs make networks contradict more labels at first, so that without a memory they would take turns with plain
        ones. Where it was told that plain ones go on to the end (nothing is to catch up with), they do, whatever was before.
        """
        if self.c.mixed or (self.has_mixed and self.c.caught_up >= 0):
            return True
        # While half of the epochs at the full learning rate are ahead: later, mixing costs more than it can win back.
        in_time = 2 * epoch < self.c.warmup + self.training.lr_drop_epoch
        together = [[seen] for seen in found.seen] if found.rows else [found.seen]
        return in_time and sum(contradicted(seen) for seen in together) / len(together) <= self.c.caught_up

    def said(self, found: Judged, by: str, plain: bool = False) -> Verdict:
        """What was found, for the record; in a plain epoch everything is trained on."""
        divided = tuple(taken(each, self.thresholds()[by], None, self.c.least_clean) for each in found.opinions[by])
        clean = tuple(torch.ones_like(each) for each in divided) if plain else divided
        beliefs = () if found.rows else self.beliefs(found)
        return Verdict(found.seen, found.opinions, self.thresholds(), clean, beliefs, found.rows, self.notes(found, divided))

    def beliefs(self, found: Judged) -> tuple[Tensor, ...]:
        """How much the networks give to each label, and what else has a voice: (N,) each."""
        return (together([own_shares(seen) for seen in found.seen]),)

    def notes(self, found: Judged, divided: Sequence[Tensor]) -> tuple[str, ...]:
        """What went oddly, by network: a collapsed partition, classes without a mixture, losses that were no numbers."""
        notes, names = [], self.facts.names
        for net, mixture, mask, seen in zip(self.nets, self.mixtures, divided, found.seen):
            who = f"network {net.number + 1}"
            collapsed = collapse(mask, seen.predicted, seen.classes, seen.labels, self.c.least_clean, names)
            if collapsed:
                notes.append(f"{who}: the partition collapsed: {collapsed}")
            if mixture.unfitted_ and mixture.per_class:
                few = ", ".join(names[k] for k in mixture.unfitted_[:5])
                more = " ..." if len(mixture.unfitted_) > 5 else ""
                notes.append(f"{who}: no mixture could be fitted to {few}{more}; their labels count as clean")
            elif mixture.unfitted_:
                notes.append(f"{who}: the losses have no spread; all labels count as clean")
            if mixture.excluded_:
                notes.append(f"{who}: {mixture.excluded_} losses were not finite and were left out")
        return tuple(notes)

    def judge_all(self, look: Look) -> Judged:
        """Every row, judged in blocks by what cleaners have learnt from draws; evidence comes to the host, features halved."""
        seen, opinions, count = [], list[dict[str, Tensor]](), len(self.facts.given)
        for net in self.nets:
            columns: dict[str, Tensor] = {}
            for rows in torch.arange(count).split(BLOCK):
                evidence = look.evidence(net, rows)
                parts = {name: getattr(evidence, name).cpu() for name in ("labels", "losses", "probs")}
                parts["features"] = evidence.features.half().cpu()
                for name, cleaner in self.voices(net.number).items():
                    parts[f"by {name}"] = pin(cleaner.judge(evidence), at(self.facts.pinned, rows)).cpu()
                # Filled block by block: blocks put together at the end would be there twice, gigabytes of features.
                columns = columns or {name: some.new_empty(count, *some.shape[1:]) for name, some in parts.items()}
                for name, some in parts.items():
                    columns[name][rows[0] : rows[-1] + 1] = some
            seen.append(Evidence(*(columns[name] for name in ("labels", "losses", "probs", "features"))))
            opinions.append({name: columns[f"by {name}"] for name in self.voices(net.number)})
        return Judged(tuple(seen), {name: tuple(each[name] for each in opinions) for name in opinions[0]})

    def voices(self, r: int) -> Mapping[str, MixtureCleaner]:
        """Network r's cleaners, by the names of their opinions."""
        return {"loss": self.mixtures[r]}

    def mixed(self, net: Net, peer: Net, division: Division, epoch: int, look: Look, name: str) -> Phase:
        """Line 24, stage 2: an epoch of mixed steps on the peer's division."""
        plan = self.plan(net, division, epoch)
        x, u = plan.labelled, plan.unlabelled
        rows, given, w = torch.stack((x, x, u, u), 1).flatten(1), self.facts.given, look.place(division.w)
        if division.rows is not None:
            rows, given = division.rows[rows], given[division.rows]
        views = {"weak": View(rows, "weak")}
        if self.mixes_strong:
            views["strong"] = View(rows, "strong")
        return Phase(
            name,
            mixed_step,
            (net,),
            views=views,
            tensors={
                "labels": given[x],
                "w": w[look.place(x)],
                "partner": plan.partners,
                "share": plan.shares,
                "lambda_u": plan.lambdas,
                "lr": self.rates(epoch, plan.steps),
            },
            fixed=(net, peer, self.c, self.facts.prior),
            peers=(peer,),
        )

    @property
    def mixes_strong(self) -> bool:
        return self.varies and bool(self.c.strong_views)

    def plan(self, net: Net, division: Division, epoch: int) -> "EpochPlan":
        clean, c = division.clean.cpu(), self.c  # there already, or the host would wait for all that is queued
        x, u = torch.nonzero(clean).flatten(), torch.nonzero(~clean).flatten()
        if len(x) == 0:  # nothing is clean: the likeliest batch keeps the network moving (ruling 9)
            x = division.w.cpu().argsort(descending=True, stable=True)[: self.training.batch]
        if len(u) == 0:
            u = torch.arange(len(clean))
        batch = self.training.batch
        steps = self.steps(len(x), len(u))
        generator = self.stream(streams.PLAN, epoch, net)
        labelled = cycled(x, steps * batch, generator).view(steps, batch)
        unlabelled = cycled(u, steps * batch, generator).view(steps, batch)
        partners = torch.stack([torch.randperm(4 * batch, generator=generator) for _ in range(steps)])
        shares = losses.mixing_shares(steps, c.beta, generator)
        progress = [losses.ramp(self.age(epoch) + i / steps, c.warmup, c.ramp_epochs) for i in range(steps)]
        return EpochPlan(steps, labelled, unlabelled, partners, shares, c.lambda_u * torch.tensor(progress))

    def age(self, epoch: int) -> int:
        """Epochs since the networks were new."""
        return epoch

    def steps(self, labelled: int, unlabelled: int) -> int:
        """Of a mixed epoch: every labelled sample once."""
        return math.ceil(labelled / self.training.batch)

    def state_dict(self) -> dict[str, Tensor]:
        state = {"mixed": torch.tensor(self.has_mixed)}
        for r, mixture in enumerate(self.mixtures):
            state |= {f"teacher{r}.{name}": value for name, value in mixture.state_dict().items()}
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.has_mixed = bool(state.get("mixed", False))
        for r, mixture in enumerate(self.mixtures):
            mixture.load_state_dict(part(state, f"teacher{r}"))


@dataclass(frozen=True)
class EpochPlan:
    """Which rows of the division meet in which step: rows (S, B), the pairing (S, 4B), shares and lambda_u (S,)."""

    steps: int
    labelled: Tensor
    unlabelled: Tensor
    partners: Tensor
    shares: Tensor
    lambdas: Tensor


def mixed_step(
    net: Net,
    peer: Net,
    c: DivideMix.Config,
    prior: Tensor,
    weak: Tensor,
    labels: Tensor,
    w: Tensor,
    partner: Tensor,
    share: Tensor,
    lambda_u: Tensor,
    lr: Tensor,
    strong: Tensor | None = None,
) -> Terms:
    """One step of the vicinal risk (Eq. 1): guess on weak views, mix and train on strong ones.

    Views are ordered x1, x2, u1, u2, B pictures each; `labels` and `w` (B,) belong to the x; `partner` (4B,) permutes all.
    """
    half = 2 * len(labels)
    trained = 2 * half if c.train_unlabelled else half
    wanted = targets(net, peer, c, weak, labels, w)
    pixels, wanted = net.fuse(mixed)(weak if strong is None else strong, wanted, partner[:trained], share)
    logits, _ = net.look(pixels)
    labelled, unlabelled, penalty = net.fuse(vicinal_terms)(logits, wanted, prior, half)
    net.descend(labelled + lambda_u * unlabelled + c.prior_weight * penalty, lr)
    return {"labelled": labelled, "unlabelled": unlabelled, "penalty": penalty}


@torch.no_grad()
def targets(net: Net, peer: Net, c: DivideMix.Config, weak: Tensor, labels: Tensor, w: Tensor) -> Tensor:
    """Refined and guessed targets (4B, K) for the views x1, x2, u1, u2 (4B, C, H, W).

    The trained network stays in train mode while it guesses (its running statistics move), the peer is in eval mode.
    """
    own = guesses(net, weak, c.guess_passes)
    other = peer.look(weak[2 * len(labels) :])[0]
    found: Tensor = net.fuse(aims)(own, other, labels, w, c.temperature)
    return found


def aims(own: Tensor, other: Tensor, labels: Tensor, w: Tensor, temperature: float) -> Tensor:
    """Targets (4B, K) from the trained network's logits (4B, K) and the peer's on the unlabelled half (2B, K)."""
    own, other = torch.softmax(own, 1), torch.softmax(other, 1)
    x1, x2, u1, u2 = own.chunk(4)
    given = F.one_hot(labels, own.shape[1]).to(own.dtype)
    refined = losses.refine(given, (x1 + x2) / 2, w, temperature)
    guessed = losses.guess((u1, u2, *other.chunk(2)), temperature)
    return torch.cat((refined, refined, guessed, guessed))


def mixed(strong: Tensor, wanted: Tensor, partner: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """The first M = len(partner) pictures and targets, each mixed with its partner: (M, C, H, W) floats, (M, K)."""
    first = len(partner)
    pixels = losses.mix(strong[:first].float(), strong[partner].float(), share)
    return pixels, losses.mix(wanted[:first], wanted[partner], share)


def vicinal_terms(logits: Tensor, wanted: Tensor, prior: Tensor, half: int) -> tuple[Tensor, Tensor, Tensor]:
    """Lx over the first `half` rows, Lu over the rest, and the penalty over all."""
    return (
        losses.labelled_loss(logits[:half], wanted[:half]),
        losses.unlabelled_loss(logits[half:], wanted[half:]),
        losses.prior_penalty(logits, prior),
    )
