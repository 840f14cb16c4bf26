"""A run small enough for tests: make-believe pictures, a narrow network, any method, the plain engine."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from labelsieve.data.augment.strong import views_for
from labelsieve.data.noisy_data import NoisyData
from labelsieve.engine.plain import PlainEngine
from labelsieve.methods.contract import Facts, Method, Phase, Training, Verdict
from labelsieve.methods.cpc import Cpc
from labelsieve.methods.dividemix import Division
from labelsieve.methods.epochs import Epoch, learn, run
from labelsieve.methods.net import Net, scale
from labelsieve.methods.parts.batchnorm import shared_by
from labelsieve.methods.parts.cleaners import Judge, MixtureCleaner
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.nets.small import SmallNet

K = 3
MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
LENGTHS = {"epochs": 6, "batch": 8, "warmup_batch": 16, "lr_drop_epoch": 4, "seed": 3}
OWN = {"cleaner": "cpc-agn", "warmup": 2, "prototype_warmup": 2, "ramp_epochs": 4}


def pictures(n: int = 60, seed: int = 0) -> NoisyData:
    """Three kinds of picture (one channel is bright), a third of the labels wrong: uint8 (n, 3, 8, 8)."""
    g = torch.Generator().manual_seed(seed)
    true = torch.arange(n) % K
    images = torch.randint(0, 120, (n, 3, 8, 8), generator=g)
    images[torch.arange(n), true] += 110
    wrong = torch.rand(n, generator=g) < 0.33
    labels = torch.where(wrong, (true + 1) % K, true)
    return NoisyData(images.to(torch.uint8), labels, tuple(map(str, range(n))), ("red", "green", "blue"))


def network(seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return SmallNet(3, K, width=4)


def make(
    number: int,
    *,
    heads: Mapping[str, Callable[[int], nn.Module]] | None = None,
    twin: bool = False,
    nesterov: bool = False,
    norm_devices: int = 1,
) -> Net:
    """A net as a run's would be, of a narrow network."""
    body = network(number + 10)
    if norm_devices > 1:
        shared_by(body, norm_devices)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(number)
        made = {name: head(body.classifier.in_features) for name, head in (heads or {}).items()}
    mean, std = (scale(values, 3, "cpu") for values in (MEAN, STD))
    return Net(number, body, mean, std, nesterov=nesterov, heads=made, twin=deepcopy(body) if twin else None)


def facts(data: NoisyData | None = None, pinned: Tensor | None = None, **lengths: Any) -> Facts:
    data = pictures() if data is None else data
    prior = torch.full((len(data.classes),), 1 / len(data.classes))
    return Facts(Training(**(LENGTHS | lengths)), data.labels, data.classes, prior, torch.device("cpu"), pinned)  # type: ignore[arg-type]


@dataclass
class Tiny:
    """A method and an engine, and what tests ask of them most."""

    method: Any
    engine: PlainEngine

    @property
    def nets(self) -> list[Net]:
        return self.method.nets

    @property
    def judges(self) -> list[Judge]:
        return self.method.judges

    @property
    def mixtures(self) -> list[MixtureCleaner]:
        return self.method.mixtures

    def epochs(self, start: int = 0) -> Iterator[Epoch]:
        return learn(self.method, self.engine, start)

    def run(self, phase: Phase, epoch: int) -> Tensor:
        """The phase's terms, (S, T)."""
        return run(phase, self.engine, self.method.training.seed, epoch).values

    def mix(self, r: int, division: Division, epoch: int) -> Tensor:
        """Mixed steps of network r on a division."""
        return self.run(self.method.mixed(self.nets[r], self.nets[1 - r], division, epoch, self.engine, "mixture"), epoch)

    def state(self) -> dict[str, Tensor]:
        state = {f"{net.number}.{k}": v.clone() for net in self.nets for k, v in net.state_dict().items()}
        state |= {f"method.{k}": v.clone() for k, v in self.method.state_dict().items()}
        return state | {f"tables.{k}": v.clone() for k, v in self.method.tables.items()}

    def load(self, state: dict[str, Tensor]) -> None:
        def part(head: str) -> dict[str, Tensor]:
            return {k.removeprefix(head): v.clone() for k, v in state.items() if k.startswith(head)}

        for net in self.nets:
            net.load_state_dict(part(f"{net.number}."))
        self.method.load_state_dict(part("method."))
        for name, value in part("tables.").items():
            self.method.tables[name].copy_(value)


def tiny(
    prototypes: bool = True,
    memory: int = 1,
    data: NoisyData | None = None,
    pinned: Tensor | None = None,
    norm_devices: int = 1,
    **changes: Any,
) -> Tiny:
    """CPC, or without prototypes what is left of it; `changes` of its settings, or of lengths and rates."""
    known = {field.name for field in fields(Cpc.Config)}
    own = OWN | {k: v for k, v in changes.items() if k in known} | {"mixture_memory": memory}
    if not prototypes:
        own["cleaner"] = "gmm-agn"
    own["numbers"] = {"dim": 6, "batch": 16} if own["cleaner"] in ("cpc-agn", "cpc-awr", "contrastive") else {}
    lengths = {k: v for k, v in changes.items() if k not in known}
    return built(Cpc, Cpc.Config(**own), data, pinned, norm_devices, **lengths)


def built(
    kind: type[Method],
    config: Any = None,
    data: NoisyData | None = None,
    pinned: Tensor | None = None,
    norm_devices: int = 1,
    **lengths: Any,
) -> Tiny:
    """Any method on make-believe pictures."""
    data = pictures() if data is None else data
    method = kind(kind.Config() if config is None else config, facts(data, pinned, **lengths))
    method.build(lambda number, **known: make(number, norm_devices=norm_devices, **known))  # type: ignore[arg-type]
    return Tiny(method, PlainEngine(data, views_for(data.shape, True)))


def by(epoch: Epoch, name: str) -> tuple[Tensor, ...]:
    """Each network's chances by an opinion; none in epochs without a verdict, or without that opinion."""
    return () if epoch.verdict is None else epoch.verdict.opinions.get(name, ())


def seen(epoch: Epoch) -> tuple[Evidence, ...]:
    return verdict(epoch).seen


def verdict(epoch: Epoch) -> Verdict:
    assert epoch.verdict is not None
    return epoch.verdict
