"""Any `torch.nn.Module` as a network of ours: logits alone, or a body and its last layer, become x -> (logits, v)."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from labelsieve.errors import UsageError


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
