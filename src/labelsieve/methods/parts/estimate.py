"""Estimates how many labels are wrong, with an interval, from both networks' evidence after the warm-up.

A network that has seen little disagrees with right labels too, so its own mistakes must not count. Neighbours in feature space
are asked instead: each sample's nearest ones vote on its label, its own label not among the votes. Where they are nearly
unanimous (the surest quarter for each class) the vote is almost surely right, and how often the given label differs there is the
noise, as far as wrong labels fall on easy and hard pictures alike. RESULTS.md holds this against known noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.heads import HeldOut
from labelsieve.methods.parts.streams import seeded


def share_interval(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Between which shares the true one lies (95 %) where `hits` among `of` were counted; nan where nothing was.

    A bootstrap would say 1 to 1 where all of twenty are hits, and holds far less than it says near there.
    """
    if of == 0:
        return math.nan, math.nan
    centre = (hits + z * z / 2) / (of + z * z)
    half = z / (of + z * z) * math.sqrt(hits * (of - hits) / of + z * z / 4)
    return max(centre - half, 0.0), min(centre + half, 1.0)


Z95, Z90, Z80 = 1.96, 1.64, 1.28
LEAST = 0.005  # a low end below it is none
ALIKE = 0.05  # networks that differ in more of the labels or classes are no judges of the noise
QUERIES, REFERENCES = 5_000, 20_000  # a sample of this size settles the share to about a point, in seconds and bounded memory
BLOCK = 32_768  # rows looked at in one go
ENOUGH = 2_000  # labels: fewer are memorised in the warm-up, wrong ones too, and the estimate says little
NEARLY_NONE = 0.05  # an interval that begins below it may be that of a clean set
SUREST = (0.1, 0.25, 0.5)  # shares of each class that count as sure: the middle one estimates, the others show how firm it is


@dataclass(frozen=True)
class NoiseEstimate:
    """Shares of wrong labels: overall with an interval, and per given class (K,).

    `high` is for people. Rules go by `firm`, which leaves out how few votes there were where next to no label is wrong: they
    were made for it, and taking hard pictures for doubtful ones costs clean data points of accuracy (LOG.md).
    """

    share: float
    low: float
    high: float
    by_class: tuple[float, ...]
    firm_high: float | None = None  # None in runs from before it was told apart
    by: str = "neighbours"  # who estimated it, a key of issues.estimate.HOW

    @property
    def firm(self) -> float:
        return self.high if self.firm_high is None else self.firm_high


def estimate_noise(seen: Sequence[Evidence], seed: int = 0) -> NoiseEstimate:
    """The mean over the networks; the interval reaches over all networks and cuts, widened by the sample's own uncertainty."""
    voted = [(*votes(evidence, seed), evidence.classes) for evidence in seen]
    found = [[wrong_shares(*one, sure) for sure in SUREST] for one in voted]
    middle = [by_cut[1] for by_cut in found]
    share = sum(each for each, _ in middle) / len(middle)
    all_shares = [each for by_cut in found for each, _ in by_cut]
    counted = max(1, int(SUREST[1] * min(len(seen[0]), QUERIES)))
    spread = Z95 * (max(share * (1 - share), 1e-4) / counted) ** 0.5
    by_class = torch.stack([each for _, each in middle]).mean(0)
    low, firm = max(min(all_shares) - spread, 0.0), min(max(all_shares) + spread, 1.0)
    # No wrong label among 300 votes leaves room for 1 % of wrong ones, where a standard deviation sees none.
    room = share_interval(0, counted)[1]
    high = max(firm, min(max(all_shares) + room, 1.0))
    return NoiseEstimate(share, low, high, tuple(by_class.tolist()), firm)


def votes(seen: Evidence, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Of a sample of rows: given labels (M,) and the neighbours' shares for each class (M, K), the row itself left out."""
    count = len(seen)
    order = torch.randperm(count, generator=seeded(seed)).to(seen.labels.device)
    queries, references = order[:QUERIES], order[:REFERENCES]
    features = F.normalize(torch.nan_to_num(seen.features[references].float()), dim=1)  # the queries come first
    labels = seen.labels[references]
    # A small class asks few: its wrong labels see one wrong label less among the others than its right ones do, so the more of
    # the class votes, the surer the votes on its wrong labels seem.
    near = min(50 if count >= 5_000 else 20, max(5, len(references) // seen.classes // 4), max(len(references) - 1, 1))
    shares = []
    for first in range(0, len(queries), 1024):
        some = queries[first : first + 1024]
        alike = features[first : first + len(some)] @ features.T
        # A query is one of the references: the same rows, in the same order.
        itself = torch.arange(first, first + len(some), device=alike.device).unsqueeze(1)
        nearest = alike.scatter_(1, itself, -torch.inf).topk(near, 1).indices
        shares.append(F.one_hot(labels[nearest], seen.classes).float().mean(1))
    return seen.labels[queries], torch.cat(shares)


def wrong_shares(given: Tensor, shares: Tensor, classes: int, sure: float) -> tuple[float, Tensor]:
    """The share of wrong labels, overall and by given class (K,), from the surest votes for each class.

    What labels were given where class c is surely voted stands for all samples that c is voted for.
    """
    unanimity, voted = shares.max(1)
    joint = torch.zeros(classes, classes, dtype=torch.float64)  # given, voted
    for c in range(classes):
        members = torch.nonzero(voted == c).flatten()
        if len(members) == 0:
            continue
        surest = members[unanimity[members].argsort(descending=True, stable=True)][: max(1, round(sure * len(members)))]
        counts = torch.bincount(given[surest], minlength=classes).cpu().double()
        joint[:, c] = counts / counts.sum() * len(members)
    rows = joint.sum(1)
    by_class = torch.where(rows > 0, 1 - joint.diagonal() / rows.clamp_min(1e-12), 0.0)
    return 1 - float(joint.diagonal().sum() / joint.sum().clamp_min(1e-12)), by_class


def noise_by(held: HeldOut, labels: Tensor) -> NoiseEstimate:
    """How many labels are wrong, by opinions on samples from those who have not seen their labels (docs/estimate.md).

    The low end: how often labels differ where the opinions are surest, less what these may get wrong themselves. The high end:
    how often they contradict the label, and as many more as may be wrong unnoticed, which is what they leave open between a class
    and its runner-up. The share itself is half way between the surest half's and what all opinions contradict in one voice; of
    one opinion, the former.
    """
    seen = held.evidence(labels)
    if not knows_classes(seen):
        return NoiseEstimate(0.0, 0.0, 1.0, (0.0,) * seen.classes, by=held.by)
    count, said = len(seen), seen.predicted
    quarter, half = (wrong_shares(labels, seen.probs, seen.classes, sure)[0] for sure in SUREST[1:])
    differs = said != labels
    contradicted_share = float(differs.double().mean())
    alike = float((held.agree & (held.said[0] != labels)).double().mean())
    rest = 1 - float(seen.probs.gather(1, labels.unsqueeze(1)).double().mean()) - contradicted_share
    second = seen.probs.scatter(1, said.unsqueeze(1), -1.0).argmax(1)
    runners_up = float((differs & (second == labels)).double().sum() / differs.double().sum().clamp_min(1))
    sure = min(quarter, half)
    # Where opinions contradict each other they are weak: the surest err in up to three quarters of this, and a quarter of it at
    # least are mistakes of theirs and not of labels (LOG.md). One opinion has nobody to contradict it: its own doubt counts.
    alone = len(held.said) == 1
    apart = 1 - seen.probs.amax(1).double() if alone else (~held.agree).double()
    unsure = float(apart.mean()) ** 2
    low = 0.95 * sure - 0.75 * unsure - Z80 * (max(sure * (1 - sure), 0.004) / max(SUREST[1] * count, 1)) ** 0.5
    most = contradicted_share - 0.25 * unsure + runners_up * max(rest, 0.0)
    high = most + Z80 * (max(contradicted_share * (1 - contradicted_share), 0.002) / count) ** 0.5
    low = low if low > LEAST else 0.0
    high = min(max(high, low), 1.0)
    share = min(max(half if alone else (max(half - unsure, 0.0) + alike) / 2, low), high)
    against, given = (torch.bincount(each, minlength=seen.classes) for each in (labels[differs], labels))
    by_class = against / given.clamp_min(1)
    scale = share / contradicted_share if contradicted_share else 0.0
    return NoiseEstimate(share, low, high, tuple((by_class.double() * scale).clamp(max=1).tolist()), by=held.by)


def knows_classes(seen: Evidence) -> bool:
    """Do opinions meet the given labels more often than the same opinions on other samples would, beyond what luck can do?"""
    count = max(len(seen), 1)
    named, given = (torch.bincount(each, minlength=seen.classes).double() / count for each in (seen.predicted, seen.labels))
    luck = float((named * given).sum())
    return 1 - contradicted([seen]) > luck + 2 * (luck * (1 - luck) / count) ** 0.5


def contradicted(seen: Sequence[Evidence]) -> float:
    """The share of labels that both networks together would not have given."""
    labels, count = seen[0].labels, 0
    for first in range(0, len(labels), BLOCK):  # (N, K) of both may be large
        rows = slice(first, first + BLOCK)
        together = torch.stack([evidence.probs[rows] for evidence in seen]).sum(0)
        count += int((together.argmax(1) != labels[rows]).sum())
    return count / max(len(labels), 1)


def lag_behind(seen: Sequence[Evidence], found: NoiseEstimate) -> bool:
    """Do the networks contradict more labels than can be wrong? Then they err where labels are right.

    With few labels that cannot be told: the estimate is often too low, and they may as well be right.
    """
    return len(seen[0]) >= ENOUGH and contradicted(seen) > found.firm


def noise_at_end(seen: Sequence[Evidence], clean: Sequence[Tensor], early: NoiseEstimate | None) -> NoiseEstimate:
    """Of trained networks: their last division where it may be trusted, else what was known before they could memorise labels.

    `early` is that (`noise_by_neighbours`). Without it a division that is not trusted leaves only a share to cut the list at.
    """
    divided = division(seen, clean)
    inside = early is None or early.low <= divided.share <= early.high
    if divided.high - divided.low < 1 and inside:
        return divided
    return early or NoiseEstimate(divided.share, 0.0, 1.0, divided.by_class, by="division")


def noise_by_neighbours(seen: Sequence[Evidence], seed: int = 0) -> NoiseEstimate:
    """Once the warm-up is over. Trained further, networks bring samples together by labels that they have memorised."""
    return noise_by(neighbours_of(seen, seed), votes(seen[0], seed)[0].cpu())


def neighbours_of(seen: Sequence[Evidence], seed: int = 0) -> HeldOut:
    """What the samples nearest in each network's features vote for, of a sample of rows (M,), each row's own label left out."""
    voted = [votes(evidence, seed)[1].cpu() for evidence in seen]
    said = torch.stack([shares.argmax(1) for shares in voted])
    return HeldOut(torch.stack(voted).mean(0), said, torch.zeros(len(said[0]), 1), "neighbours")


def division(seen: Sequence[Evidence], clean: Sequence[Tensor]) -> NoiseEstimate:
    """The share that the networks' last division takes as wrong, give or take what they differ in.

    From 0 to 1 where it says nothing: there are no two networks, they do not agree enough, or they contradict other labels than
    those they take as wrong: then they have memorised these.
    """
    wrong = torch.stack([~each.cpu() for each in clean])
    share = float(wrong.double().mean())
    by_class = _by_class(wrong[0], seen[0].labels.cpu(), seen[0].classes)
    if len(seen) > 1:
        apart = float((wrong[0] != wrong[1]).double().mean())
        differ = float((seen[0].predicted != seen[1].predicted).double().mean())
        if max(apart, differ, abs(contradicted(seen) - share)) <= ALIKE:
            wide = (apart + differ) / 2 + Z90 * (max(share * (1 - share), 0.002) / wrong.shape[1]) ** 0.5
            return NoiseEstimate(share, max(share - wide, 0.0), min(share + wide, 1.0), by_class, by="division")
    return NoiseEstimate(share, 0.0, 1.0, by_class, by="division")


def _by_class(wrong: Tensor, labels: Tensor, classes: int) -> tuple[float, ...]:
    """Of the labels of each class, the share that is wrong."""
    counts = [torch.bincount(each, minlength=classes).double() for each in (labels[wrong], labels)]
    return tuple((counts[0] / counts[1].clamp_min(1)).tolist())


def least_clean_for(high: float) -> float:
    """The least share of labels to take as clean: all but twice the interval's high end.

    Mixtures find two components in clean losses too. Where next to no label is wrong, dividing by them would only keep the hard
    pictures from being learnt, which costs accuracy (LOG.md).
    """
    return max(0.0, 1 - 2 * high)


def mixed_epochs_for(share: float) -> int:
    """How many epochs follow the warm-up: 20 where under 5 % are wrong, 30 under a quarter, 50 under three quarters, else 70.

    Clean labels leave little to divide; the more of them are wrong, the longer the networks take to win them back.
    """
    return next((epochs for below, epochs in ((0.05, 20), (0.25, 30), (0.75, 50)) if share < below), 70)


def lambda_for(share: float, classes: int) -> float:
    """lambda_u for training of some dozens of epochs: how many labels are wrong, and among how many classes.

    Up to 30 classes 0, 25, 50 for under a half, under three quarters, and more: measured on made noise (RESULTS.md), where the
    benchmark's presets, ten times as long, have 25 from a half on too. With more classes as they have it: 25 under a quarter and
    150 beyond (the squared error is a mean over classes, so the same error weighs less among many).
    """
    if classes <= 30:
        return 0.0 if share < 0.5 else 25.0 if share < 0.75 else 50.0
    return 25.0 if share < 0.25 else 150.0
