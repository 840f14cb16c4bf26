"""Registers networks that users wrote, by name, and adapts them to x -> (logits, v) for the data's shape."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import torch
from torch import Tensor, nn

from labelsieve.errors import UsageError

Make = Callable[[int, int], nn.Module]
REGISTERED: dict[str, Make] = {}  # they may take pictures or vectors
_taking = Lock()


class WithHead(nn.Module):
    """A body x -> v (B, D) and the linear layer that reads it: x -> (logits, v), the last product in full precision."""

    def __init__(self, body: nn.Module, classifier: nn.Linear) -> None:
        super().__init__()
        self.body = body
        self.classifier = classifier
        self.features = classifier.in_features

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        v = self.body(x)
        with torch.autocast(x.device.type, enabled=False):
            v = v.float()
            return self.classifier(v), v


def adapted(module: nn.Module, shape: Sequence[int]) -> nn.Module:
    """The module as x -> (logits, v), found out by showing it two blank samples of `shape`.

    One that gives (logits, v) stays itself. For one that gives logits (B, K), v is what its last linear layer reads; a
    copy is made, so the module stays as it was. One without such a layer is an error: use `WithHead(body, linear)`.
    """
    answer, ends = _shown(module, shape)
    if isinstance(answer, tuple):
        if len(answer) == 2 and all(isinstance(part, Tensor) and part.ndim == 2 and len(part) == 2 for part in answer):
            return module
        raise UsageError(f"{_name(module)} gives {len(answer)} values; a network gives (logits (B, K), v (B, D)) or logits alone")
    if not isinstance(answer, Tensor) or answer.ndim != 2 or len(answer) != 2:
        what = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise UsageError(f"{_name(module)} gives {what} for two samples; a network gives logits (2, K), or (logits, v)")
    last = [name for name, out in ends.items() if out is answer]
    if not last:
        raise UsageError(
            f"{_name(module)} does not end in a torch.nn.Linear, so its features cannot be told from its logits; let it "
            f"return (logits, v), or give labelsieve.nets.WithHead(body, linear)"
        )
    body = copy.deepcopy(module)
    classifier = body.get_submodule(last[0])
    assert isinstance(classifier, nn.Linear)
    if not last[0]:
        return WithHead(nn.Identity(), classifier)
    body.set_submodule(last[0], nn.Identity())
    return WithHead(body, classifier)


def _shown(module: nn.Module, shape: Sequence[int]) -> tuple[object, dict[str, Tensor]]:
    """What two blank samples give, and what each linear layer gave on the way."""
    ends: dict[str, Tensor] = {}

    def remember(name: str) -> object:
        def hook(layer: nn.Module, inputs: object, output: Tensor) -> None:
            ends[name] = output

        return hook

    linear = [(name, layer) for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    handles = [layer.register_forward_hook(remember(name)) for name, layer in linear]  # type: ignore[arg-type]
    was_training = module.training
    try:
        with torch.no_grad():
            device = next((value.device for value in module.parameters()), torch.device("cpu"))
            return module.eval()(torch.zeros(2, *shape, device=device)), ends
    finally:
        module.train(was_training)
        for handle in handles:
            handle.remove()


def _name(module: nn.Module) -> str:
    return type(module).__name__


@contextmanager
def lent(network: nn.Module | Make) -> Iterator[str]:
    """A name for the network while the caller is inside; two callers have two names."""
    kind = getattr(network, "__name__", type(network).__name__)
    with _taking:
        names = (f"given:{kind}" if number == 1 else f"given:{kind}-{number}" for number in range(1, len(REGISTERED) + 2))
        name = next(name for name in names if name not in REGISTERED)
        REGISTERED[name] = copies_of(network) if isinstance(network, nn.Module) else network
    try:
        yield name
    finally:
        del REGISTERED[name]


def copies_of(module: nn.Module) -> Make:
    """A builder that gives copies of the module, each with weights of its own.

    Every layer that has `reset_parameters`, as torch's own do, draws its weights anew; others keep what they hold.
    """

    def make(channels: int, classes: int) -> nn.Module:
        made = copy.deepcopy(module)
        for layer in made.modules():
            reset = getattr(layer, "reset_parameters", None) or getattr(layer, "_reset_parameters", None)
            if callable(reset):
                reset()
        return made.train()

    return make


def own_network(name: str, channels: int, classes: int, shape: Sequence[int] | None) -> nn.Module:
    """The registered network, adapted to samples of `shape` where it is known, or a `UsageError` that says what does not fit."""
    try:
        made = REGISTERED[name](channels, classes)
    except TypeError as error:
        said = " ".join(str(error).split())[:300]
        raise UsageError(
            f'network "{name}": its builder is called with channels and classes, as in build(3, 10), and says: {said}'
        ) from None
    if not isinstance(made, nn.Module):
        raise UsageError(f'network "{name}": its builder gave {type(made).__name__}; it must give a torch.nn.Module')
    if shape is None:
        return made
    try:
        network = adapted(made, shape)
        logits = _looked(network, shape)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        said = " ".join(str(error).split())[:300]
        remedy = "use reshape or flatten in place of view" if "view" in said else "make it for samples of this shape"
        raise UsageError(f'network "{name}" cannot read samples of shape {tuple(shape)} ({said}); {remedy}') from None
    if logits.shape[1] != classes:
        raise UsageError(
            f'network "{name}" gives {logits.shape[1]} logits, and there are {classes} classes; let its last layer give {classes}'
        )
    return network


@torch.no_grad()
def _looked(network: nn.Module, shape: Sequence[int]) -> torch.Tensor:
    """Logits of two blank samples that lie in memory as they will in training."""
    x, seen = torch.zeros(2, *shape), copy.deepcopy(network).cpu().eval()
    if x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)
        seen = seen.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    logits: torch.Tensor = seen(x)[0]
    return logits
