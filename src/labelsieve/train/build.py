"""From a configuration to the objects of a run: data with its noise, a method with its nets, an engine. No training here."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from labelsieve import nets
from labelsieve.config.method_settings import epochs_of, settings_for
from labelsieve.config.schema import Config, ViewsConfig
from labelsieve.data.augment.strong import Views, views_for
from labelsieve.data.augment.vectors import VectorViews, vector_views
from labelsieve.data.noisy_data import Collection, NoisyData
from labelsieve.data.side_files import read_frequencies
from labelsieve.engine.device import choose_device, set_threads
from labelsieve.engine.fast import FastEngine, Speed, be_deterministic, speed_for
from labelsieve.engine.plain import PlainEngine
from labelsieve.errors import UsageError
from labelsieve.methods.contract import Facts, Make, Method, Training, Verdict
from labelsieve.methods.net import Net, scale, torchs_own
from labelsieve.methods.parts.batchnorm import can_part, normalising, shared_by
from labelsieve.methods.parts.estimate import NoiseEstimate, estimate_noise, noise_at_end, noise_by
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.heads import HeldOut
from labelsieve.methods.parts.streams import BalancedBatches, EveryRow, RandomBatches, Sampler
from labelsieve.methods.registry import method_named
from labelsieve.predict.model import seen_shape
from labelsieve.runs.rows import Rows
from labelsieve.texts import quoted


@dataclass(frozen=True)
class Parts:
    """All that `learn` needs: the method, which carries nets and settings, and the engine."""

    method: Method
    engine: PlainEngine
    ask: Callable[[], HeldOut | None] = lambda: None  # those who judge labels that they have not seen, in a run that has such

    @cached_property
    def held(self) -> HeldOut | None:
        """What they say; found out when it is first asked for."""
        return self.ask()

    def early_noise(self, seen: Sequence[Evidence]) -> NoiseEstimate:
        """How many labels seem wrong after the warm-up: for the rules that settings follow from, not for people."""
        return estimate_noise(seen) if self.held is None else noise_by(self.held, seen[0].labels.cpu())

    def noise(self, verdict: Verdict, early: NoiseEstimate | None) -> NoiseEstimate:
        """How many labels are wrong, by those who have not seen the labels that they judge, or the networks if they know.

        `early` is what the networks' features said when the warm-up was over.
        """
        if self.held is not None:
            return noise_by(self.held, verdict.seen[0].labels.cpu())
        return noise_at_end(verdict.seen, verdict.clean, early)


def training_for(config: Config, epochs: int | None = None) -> Training:
    """What all methods have in common; `epochs` are those that were decided on."""
    t, epochs = config.training, epochs_of(config, epochs)
    return Training(
        epochs=epochs,
        batch=t.batch,
        warmup_batch=t.warmup_batch,
        lr=t.lr,
        schedule=t.schedule,
        lr_drop_epoch=round(t.lr_drop * epochs),
        lr_drop_factor=t.lr_drop_factor,
        momentum=t.momentum,
        weight_decay=t.weight_decay,
        sampler=sampler_for(config),
        seed=config.seed,
    )


def sampler_for(config: Config) -> Sampler:
    """Which rows an epoch sees."""
    if not config.training.epoch_batches:
        return EveryRow()
    kind = BalancedBatches if config.training.epoch_draw == "balanced" else RandomBatches
    return kind(config.training.epoch_batches)


def make_for(config: Config, found: Collection, device: torch.device) -> Make:
    """Builds nets of the run's network, each with weights drawn by seed and number."""
    classes, channels, axes = len(found.train.classes), found.train.shape[0], len(found.train.shape)
    shape, training = seen_shape(found.train.shape, config.views.crop), config.training
    mean, std = (scale(values, axes, device) for values in (found.mean, found.std))

    def make(
        number: int,
        *,
        heads: Mapping[str, Callable[[int], nn.Module]] | None = None,
        twin: bool = False,
        nesterov: bool = False,
    ) -> Net:
        seed = (1_000_003 * config.seed + number) % 2**63
        with torchs_own:
            network = nets.build(config.network, channels, classes, seed, shape)
            made = _heads(heads or {}, network, shape, seed)
        check_shared(config, network)
        if training.norm_devices > 1:
            shared_by(network, training.norm_devices)
        known = {"momentum": training.momentum, "weight_decay": training.weight_decay, "nesterov": nesterov}
        return Net(number, network, mean, std, heads=made, twin=deepcopy(network) if twin else None, **known)  # type: ignore[arg-type]

    return make


@torch.no_grad()
def _heads(
    heads: Mapping[str, Callable[[int], nn.Module]], network: nn.Module, shape: tuple[int, ...], seed: int
) -> dict[str, nn.Module]:
    """Built for as many features as the network has, their weights drawn by the seed alone."""
    if not heads:
        return {}
    was = network.training
    features = network.eval()(torch.zeros(2, *shape))[1].shape[1]
    network.train(was)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed + 1)
        return {name: head(features) for name, head in heads.items()}


def check_shared(config: Config, network: nn.Module) -> None:
    """A `UsageError` where BatchNorm cannot do as it would on several devices."""
    devices, setting = config.training.norm_devices, f'setting "training.norm_devices" is {config.training.norm_devices}'
    if devices == 1:
        return
    if not (normalising(network) and can_part(network)):
        raise UsageError(f'{setting}, and network "{config.network}" has no BatchNorm, or one of its own; leave it at 1')
    for key in ("batch", "warmup_batch"):
        batch = getattr(config.training, key)
        if batch % devices or batch < 2 * devices:
            raise UsageError(
                f"{setting}, and training.{key}={batch} has no equal parts of two or more for each; change one of them"
            )


def parts_for(config: Config, rows: Rows) -> Parts:
    set_threads(config.engine.threads, 4 * config.training.batch * rows.data.images[0].numel())
    device = choose_device(config.device)
    engine = engine_for(config, rows.data, views_of(rows.collection, config.views), device)
    method = method_for(config, rows.data, make_for(config, rows.collection, device), device, rows.pinned)
    engine.adopt(method)
    return Parts(method, engine)


def method_for(config: Config, data: NoisyData, make: Make, device: torch.device, pinned: Tensor | None = None) -> Method:
    """The method with its nets, ready to train on `data`."""
    facts = Facts(
        training=training_for(config),
        given=data.labels,
        names=tuple(quoted(name) for name in data.classes),
        prior=prior_for(config, data).to(device),
        device=device,
        pinned=None if pinned is None else pinned.to(device),
        vectors=data.are_vectors,
    )
    method = method_named(config.method)(settings_for(config), facts)
    method.check_data()
    method.build(make)
    return method


def only(make: Make, number: int) -> Make:
    """Makes the network of that number whatever is asked for: a further one, with weights of its own."""

    def made(asked: int, **known: Any) -> Net:
        return make(number, **known)

    return cast(Make, made)


def views_of(found: Collection, chosen: ViewsConfig) -> Views | VectorViews:
    """How samples are varied: pictures by the policy, vectors by noise on the scale of each dimension."""
    if found.train.are_vectors:
        return vector_views(found.mean, found.std)
    channels, height, width = found.train.shape
    return views_for((channels, height, width), found.mirror, chosen.policy, chosen.crop)


def engine_for(config: Config, data: NoisyData, views: Views | VectorViews, device: torch.device) -> PlainEngine:
    wanted = config.engine
    if wanted.deterministic:
        be_deterministic()
    speed = speed_for(device, wanted.precision, wanted.compile, wanted.capture)
    if speed == Speed() and device.type == "cpu":
        return PlainEngine(data, views, device, wanted.eval_batch, wanted.pictures)
    return FastEngine(data, views, device, wanted.eval_batch, speed, wanted.pictures)


def prior_for(config: Config, data: NoisyData) -> Tensor:
    """What the prior penalty pulls towards (K,): even shares, how often each label was given, or what a file says."""
    classes = len(data.classes)
    if config.training.prior.startswith("file:"):
        return read_frequencies(Path(config.training.prior.removeprefix("file:")), data.classes)
    if config.training.prior == "uniform":
        return torch.full((classes,), 1 / classes)
    return torch.bincount(data.labels, minlength=classes).float() / len(data)
