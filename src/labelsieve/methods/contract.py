"""What a method is: nets and per-sample tables, phases of steps in every epoch, and a verdict on the given labels.

A method is one file beside this one. It plans what happens in an epoch and says it in phases; an engine runs them. It sees given
labels, never true ones. ARCHITECTURE.md, "How to add a method", walks through an example.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from labelsieve.errors import UsageError
from labelsieve.methods.net import Eye, Net
from labelsieve.methods.parts.cleaners import Judge
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.streams import DRAW, STRONG, WEAK, EveryRow, Sampler, cycled, seeded

Terms = Mapping[str, Tensor]  # a step's loss terms by name, each ()
Step = Callable[..., Terms]
FEW = 20  # samples, of which each one's nearest tell nothing
PIECE = 8192  # rows looked at in one go, where (N, K) of all nets would be large
Tables = dict[str, Tensor]  # (N, ...) by name: what a method remembers of each sample


@dataclass(frozen=True)
class Training:
    """What all methods have in common: how long, in which batches, at which learning rate."""

    epochs: int
    batch: int = 128
    warmup_batch: int = 128  # of epochs of plain cross-entropy
    lr: float = 0.02
    schedule: str = "step"  # or cosine
    lr_drop_epoch: int = 225
    lr_drop_factor: float = 10.0
    momentum: float = 0.9
    weight_decay: float = 5e-4
    sampler: Sampler = field(default_factory=EveryRow)  # which rows an epoch sees
    seed: int = 0

    def lr_at(self, epoch: float) -> float:
        """In one step down to lr / lr_drop_factor, or along half a cosine that ends there."""
        if self.schedule == "cosine":
            share = (1 + math.cos(math.pi * min(epoch / self.epochs, 1.0))) / 2
            return self.lr * (share + (1 - share) / self.lr_drop_factor)
        return self.lr if epoch < self.lr_drop_epoch else self.lr / self.lr_drop_factor


@dataclass(frozen=True, eq=False)
class Facts:
    """What a method may know of the samples and the run. True labels are nowhere in it."""

    training: Training
    given: Tensor  # (N,) given labels, on the host
    names: tuple[str, ...]  # of the classes, as people are shown them
    prior: Tensor  # (K,) how frequent the classes are taken to be
    device: torch.device
    pinned: Tensor | None = None  # (N,) labels that are surely right
    vectors: bool = False  # samples are vectors, not pictures

    @property
    def classes(self) -> int:
        return len(self.names)


class Make(Protocol):
    """Builds a net of the run's network, its weights drawn by seed and number."""

    def __call__(
        self,
        number: int,
        *,
        heads: Mapping[str, Callable[[int], nn.Module]] | None = None,
        twin: bool = False,
        nesterov: bool = False,
    ) -> Net:
        """`heads` are builders that are told how many features there are; `twin`: with a moving average of its weights."""


@dataclass(frozen=True, eq=False)
class View:
    """Which samples (S, M) a step looks at, and how they are varied: plain, weak or strong."""

    rows: Tensor
    kind: str = "weak"
    stream: int | None = None  # whose draws vary them; None: those of the kind

    @property
    def draws(self) -> int:
        return {"weak": WEAK, "strong": STRONG}.get(self.kind, WEAK) if self.stream is None else self.stream


@dataclass(frozen=True, eq=False)
class Phase:
    """S steps of one shape. Everything random in them is drawn beforehand, on the host.

    `step(*fixed, **inputs)` is called with a view or a tensor for each name in `views` and `tensors`: of views the pictures
    (M, C, H, W), of tensors (S, ...) the step's part (...). It changes the nets and tables it is given, reads nothing back to the
    host, and returns its loss terms by name. So the same function runs plainly, compiled, and as a recorded graph.
    """

    name: str  # as in metrics.jsonl; "warm-up" means that no label is judged yet
    step: Step
    nets: tuple[Net, ...]  # that the step trains
    views: Mapping[str, View]
    tensors: Mapping[str, Tensor]
    fixed: tuple[object, ...] = ()  # the step's first arguments; another object among them records it anew
    peers: tuple[Eye, ...] = ()  # that it asks, in eval mode
    tables: Mapping[str, Tensor] = field(default_factory=dict)  # that it writes to

    @property
    def steps(self) -> int:
        return len(next(iter(self.views.values())).rows)


def changed_by(nets: Sequence[Net], tables: Mapping[str, Tensor]) -> list[Tensor]:
    """Every tensor that a step which trains these nets and writes to these tables changes."""
    return [*(tensor for net in nets for tensor in net.tensors()), *tables.values()]


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a method makes of the given labels: of all samples, or of the `rows` (M,) that each net judged in this epoch.

    Results, report and review read this and nothing else of a method.
    """

    seen: tuple[Evidence, ...]  # each net's evidence
    opinions: Mapping[str, tuple[Tensor, ...]]  # by name, each net's chances (M,) that a label is right; the last one counts
    thresholds: Mapping[str, float]  # by name: a label counts as right strictly above it
    clean: tuple[Tensor, ...]  # (M,) bool for each net: the labels that it takes as right
    beliefs: tuple[Tensor, ...]  # (N,) for each voice: how much of its belief it gives to the label; empty with `rows`
    rows: tuple[Tensor, ...] = ()
    notes: tuple[str, ...] = ()  # what went oddly, in words
    own_shares: Tensor | None = None  # (N, K) where the method knows better than the mean of the nets' softmax

    @property
    def counts(self) -> str:
        """The name of the opinion that counts."""
        return list(self.opinions)[-1]

    @property
    def threshold(self) -> float:
        return self.thresholds[self.counts]

    @property
    def chance(self) -> Tensor:
        """(M,): how likely each label is right, by the opinion that counts, as a mean over the nets."""
        return torch.stack(self.opinions[self.counts]).mean(0)

    @property
    def shares(self) -> Tensor:
        """(N, K) on the host: how likely each class is. In pieces, for a stack of all nets' would be a second copy of them."""
        if self.own_shares is not None:
            return self.own_shares.cpu()
        pieces = zip(*(seen.probs.split(PIECE) for seen in self.seen))
        return torch.cat([torch.stack(piece).mean(0).cpu() for piece in pieces])


@dataclass(frozen=True)
class Cell:
    """A benchmark as a method's authors ran it."""

    published: float | None  # the accuracy that they printed, in per cent
    settings: Mapping[str, Any]  # by dotted key
    own: Mapping[str, Any] = field(default_factory=dict)  # of the method's own section, by name
    ours: float | None = None  # what it came to here at full length, last epoch; None: not run


class Look(Protocol):
    """What a method asks of an engine between its phases."""

    def evidence(
        self, net: Eye, rows: Tensor | None = None, view: str = "plain", draw: torch.Generator | None = None
    ) -> Evidence:
        """One pass in eval mode over all samples, or those at `rows` (M,); as they are, or varied by draws of a generator."""

    def place(self, tensor: Tensor) -> Tensor:
        """The tensor on the device."""


class Method:
    """The base of all methods: what most of them need not say is said here. A subclass in a file beside this one is known by
    its `name`; its settings are the fields of its `Config`."""

    name: ClassVar[str]
    Config: ClassVar[type]
    cells: ClassVar[Mapping[str, Cell]] = {}  # by the preset's name
    networks: ClassVar[int] = 1
    costs: ClassVar[str] = "1 view trained on"  # of each sample in an epoch, all networks together
    takes_vectors: ClassVar[bool] = True
    cleaners: ClassVar[tuple[str, ...]] = ()  # among which the setting `cleaner` chooses, the first by default; none: it has none
    own_section: ClassVar[bool] = True  # its settings are a section of config.yaml that bears its name
    settles: ClassVar[bool] = False  # settings may stay open until the noise is estimated after the warm-up
    warms_up: ClassVar[bool] = False  # `training.warmup` epochs of plain cross-entropy come first
    varies: ClassVar[bool] = False  # it trains on strong views, which `views.policy` chooses
    by_nearest: ClassVar[bool] = False  # it goes by each sample's nearest ones, so it needs some of every class
    heads_judge: ClassVar[bool] = False  # heads that have not seen a label may judge it (`parts.heads`)
    mixes_little: ClassVar[bool] = False  # in short runs small networks learn more from pictures that are hardly mixed (PAPER.md)

    def __init__(self, config: Any, facts: Facts) -> None:
        self.c, self.facts, self.training = config, facts, facts.training
        self.nets: list[Net] = []
        self.tables: Tables = {}

    def check_data(self) -> None:
        """A `UsageError` that names another method, where the data are none for this one; before there are nets."""
        samples, classes = len(self.facts.given), self.facts.classes
        if self.by_nearest and samples < max(FEW, 2 * classes):
            raise UsageError(
                f"method {self.name} goes by each sample's nearest ones, and among {samples} samples of {classes} classes hardly "
                f"any are of one class; give at least {max(FEW, 2 * classes)}, or use --method cpc"
            )

    def build(self, make: Make) -> None:
        """Make the nets and tables."""
        self.nets = [make(0)]

    def phases(self, epoch: int, look: Look) -> Iterator[Phase | Verdict]:
        """An epoch's phases, run as they come, and a verdict where labels are judged before they are trained on."""
        raise NotImplementedError

    def verdict(self, look: Look) -> Verdict:
        """On all given labels, after the last epoch or where a run stops. By default: what the nets give to the label."""
        seen = tuple(look.evidence(net) for net in self.nets)
        return self.judged(seen, {"confidence": tuple(own_shares(each) for each in seen)})

    def judged(
        self,
        seen: tuple[Evidence, ...],
        opinions: Mapping[str, tuple[Tensor, ...]],
        beliefs: Sequence[Tensor] = (),
        shares: Tensor | None = None,
    ) -> Verdict:
        """A verdict by opinions on all samples, at a threshold of one half; the nets' own belief comes before other `beliefs`."""
        pinned = self.facts.pinned
        if pinned is not None:
            opinions = {name: tuple(torch.where(pinned, 1.0, each) for each in found) for name, found in opinions.items()}
        clean = tuple(each > 0.5 for each in list(opinions.values())[-1])
        voices = (together([own_shares(each) for each in seen]), *(belief.cpu() for belief in beliefs))
        return Verdict(seen, opinions, dict.fromkeys(opinions, 0.5), clean, voices, own_shares=shares)

    @property
    def net(self) -> Net:
        """The only net, or the first."""
        return self.nets[0]

    @property
    def model(self) -> Sequence[Eye]:
        """The networks that classify, and become the run's model; a twin of a net may take its place."""
        return self.nets

    def lr_at(self, epoch: float) -> float:
        return self.training.lr_at(epoch)

    def rates(self, epoch: int, steps: int) -> Tensor:
        """The learning rate of each of an epoch's steps: (steps,)."""
        return torch.tensor([self.lr_at(epoch + i / steps) for i in range(steps)])

    def order(self, net: Net, epoch: int, draws: torch.Generator, batch: int | None = None) -> Tensor:
        """The rows (steps, batch) of an epoch, shuffled by `draws`: all it sees, and some of them twice to fill the last step."""
        batch = batch or self.training.batch
        drawn = self.training.sampler.rows(self.facts.given, batch, self.stream(DRAW, epoch, net))
        rows = torch.arange(len(self.facts.given)) if drawn is None else drawn
        steps = math.ceil(len(rows) / batch)
        return cycled(rows, steps * batch, draws).view(steps, batch)

    def stream(self, purpose: int, epoch: int, net: Net) -> torch.Generator:
        """The generator of a purpose (`parts.streams`) in an epoch: the same whatever was drawn before it."""
        return seeded(self.training.seed, purpose, epoch, net.number, 0)

    def prototypes(self, r: int) -> Judge | None:
        """What classifies features beside net r, if the method has such a thing and it has learnt."""
        return None

    def helpers(self) -> Sequence[Judge]:
        """Cleaners with steps of their own, which an engine may speed up."""
        return ()

    def settle(self, config: Any) -> None:
        """Go on with these settings: what was left open has been decided."""
        self.c = config

    def state_dict(self) -> dict[str, Tensor]:
        """What the method keeps beside nets and tables, as tensors; `tables` are kept anyway."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up where another of the same settings stood."""


def own_shares(seen: Evidence) -> Tensor:
    """How much of its belief a net gives to each given label: (N,)."""
    return seen.probs.gather(1, seen.labels.unsqueeze(1)).squeeze(1)


def together(shares: Sequence[Tensor]) -> Tensor:
    """The mean (N,) over nets, on the host; what is no number counts as none."""
    return torch.nan_to_num(torch.stack([share.float() for share in shares])).mean(0).cpu()
