"""`longremix`: DivideMix twice. The first time finds labels that stay clean, the second trains new networks with these as given.

Cordeiro, Belagiannis, Reid, Carneiro: LongReMix, Pattern Recognition 2023. Theirs, CIFAR-10 sym 20/50/80/90 %, asym 40 %: 96.2,
95.0, 93.9, 82.0, 94.7; CIFAR-100 sym: 77.8, 75.6, 62.9, 33.8. Ours at full length: not run. Letters: X the labels taken as clean,
U the others, H those of high confidence.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from labelsieve.errors import UsageError
from labelsieve.methods.contract import Cell, Look, Make, Phase, Verdict
from labelsieve.methods.dividemix import PEERS, DivideMix, Division, Judged
from labelsieve.methods.parts.evidence import pin
from labelsieve.methods.parts.sgd import part
from labelsieve.methods.parts.streams import EveryRow

LASTING = 5  # epochs in which a label was clean each time, before it is of high confidence


def cell(published: float, classes: int, lambda_u: float, *, extreme: bool = False, asymmetric: bool = False) -> Cell:
    """As they ran it: 300 epochs for each half, losses averaged over 5 epochs at 90 % noise."""
    return Cell(
        published,
        {
            "network": "preact-resnet18",
            "cleaner": "gmm-agn",
            "training.epochs": 600,
            "training.warmup": 10 if classes == 10 else 30,
            "training.batch": 64,
            "training.warmup_batch": 128,
            "training.guess_passes": 4,
            "training.lr": 0.02,
            "training.schedule": "step",
            "training.lr_drop": 0.5,
            "training.lr_drop_factor": 10.0,
            "training.weight_decay": 5e-4,
            "training.beta": 4.0,
            "training.lambda_u": lambda_u,
            "training.mixed": True,
            "training.entropy_penalty": asymmetric,
            "cleaning.mixture_threshold": 0.5,
            "cleaning.mixture_memory": LASTING if extreme else 1,
            "cleaning.least_clean": 0.0,
            "engine.eval_batch": 2000,
        },
    )


class LongReMix(DivideMix):
    """In the first half of the epochs, X are the labels that a network's own mixture called clean in each of the last five.

    The largest X of the first network becomes H. Then both networks start anew from their first weights: the labels of H are
    clean whatever their loss, and a mixed epoch is as long as the whole set, so that U is seen as often as X.

    Published, the second network's past in the first warm-up is the first one's by mistake; here it has its own.
    """

    name = "longremix"
    costs = "8 views trained on for each clean label, then for every label"
    cells: ClassVar[Mapping[str, Cell]] = {
        "cifar10-sym20": cell(96.2, 10, 0.0),
        "cifar10-sym50": cell(95.0, 10, 25.0),
        "cifar10-sym80": cell(93.9, 10, 25.0),
        "cifar10-sym90": cell(82.0, 10, 50.0, extreme=True),
        "cifar10-asym40": cell(94.7, 10, 0.0, asymmetric=True),
        "cifar100-sym20": cell(77.8, 100, 25.0),
        "cifar100-sym50": cell(75.6, 100, 150.0),
        "cifar100-sym80": cell(62.9, 100, 150.0),
        "cifar100-sym90": cell(33.8, 100, 150.0, extreme=True),
    }

    def build(self, make: Make) -> None:
        if not isinstance(self.training.sampler, EveryRow):
            raise UsageError(
                "method longremix asks which labels stay clean from epoch to epoch, so every epoch must see all of them; "
                "use --set training.epoch_batches=0, or --method dividemix"
            )
        super().build(make)
        count, device = len(self.facts.given), self.facts.device
        self.tables = {
            "streak": torch.zeros(count, len(self.nets), dtype=torch.int32, device=device),  # clean so often without a break
            "core": torch.zeros(count, dtype=torch.bool, device=device),  # H
        }
        self.again = False  # are these the second half's networks?
        self.first: dict[str, Tensor] = {}  # weights that both halves start from, until the second has begun

    @property
    def half(self) -> int:
        """The epoch in which the second half begins."""
        return self.training.epochs // 2

    def age(self, epoch: int) -> int:
        return epoch - self.half if self.again else epoch

    def lr_at(self, epoch: float) -> float:
        """The second half has the drop where a run of its own length would have it; the first has none."""
        t = self.training
        rest = t.epochs - self.half
        dropped = epoch - self.half >= t.lr_drop_epoch * rest / t.epochs
        return t.lr / t.lr_drop_factor if epoch >= self.half and dropped else t.lr

    def steps(self, labelled: int, unlabelled: int) -> int:
        """In the second half as many as the whole set has."""
        return (labelled + unlabelled) // self.training.batch + 1 if self.again else super().steps(labelled, unlabelled)

    def phases(self, epoch: int, look: Look) -> Iterator[Phase | Verdict]:
        if epoch == 0:
            self.first = {
                f"{net.number}.{k}": v.detach().clone() for net in self.nets for k, v in net.network.state_dict().items()
            }
        elif epoch == self.half:
            self.start_anew()
        if not self.again and self.c.warmup - LASTING < epoch < self.c.warmup:
            self.stage_one(epoch, look)  # the past that the first mixed epoch asks for
        yield from super().phases(epoch, look)

    def start_anew(self) -> None:
        for net, mixture in zip(self.nets, self.mixtures):
            net.load_state_dict({f"network.{name}": value for name, value in part(self.first, str(net.number)).items()})
            mixture.past_ = None
        self.again, self.has_mixed, self.first = True, False, {}

    def stage_one(self, epoch: int, look: Look) -> Judged:
        """Both mixtures' chances. The first half remembers whose stay clean; in the second, the labels of H are."""
        found = super().stage_one(epoch, look)
        if self.again:
            return found._replace(opinions={"loss": tuple(pin(each, self.tables["core"]) for each in found.opinions["loss"])})
        self.remember(torch.stack(found.opinions["loss"], 1) > self.c.mixture_threshold, epoch)
        return found

    def remember(self, clean: Tensor, epoch: int) -> None:
        """What the mixtures call clean (N, 2). H is the largest set of labels that stayed so, of equal ones the last."""
        streak, core = self.tables["streak"], self.tables["core"]
        streak.add_(1).mul_(clean)
        if epoch >= max(self.c.warmup, self.half // 2):
            steady = streak[:, 0] >= LASTING
            core.copy_(torch.where(steady.sum() >= core.sum(), steady, core))

    def verdict(self, look: Look) -> Verdict:
        """By the networks as they are; a run that stops in its first half leaves what it remembers alone."""
        kept = {name: table.clone() for name, table in self.tables.items()}
        found = super().verdict(look)
        for name, table in self.tables.items():
            table.copy_(kept[name])
        return found

    def divided(self, found: Judged, by: str) -> list[Division]:
        """In the first half, only what stayed clean is labelled."""
        if self.again:
            return super().divided(found, by)
        steady = self.tables["streak"] >= LASTING
        if self.facts.pinned is not None:
            steady = steady | self.facts.pinned.unsqueeze(1)
        return [Division(found.opinions[by][peer], steady[:, peer].cpu()) for _, peer in PEERS]

    def state_dict(self) -> dict[str, Tensor]:
        first = {f"first.{name}": value for name, value in self.first.items()}
        return super().state_dict() | first | {"again": torch.tensor(self.again)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        super().load_state_dict(state)
        self.again = bool(state.get("again", False))
        self.first = part(state, "first")
