"""Numbers by formula, for tests against values that were recorded with published code: the same on any machine and version."""

import torch
from torch import Tensor, nn

from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.losses import cross_entropies


def waves(*shape: int, phase: float = 0.0) -> Tensor:
    """Values between -1 and 1 of no visible order."""
    places = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(1000 * torch.sin(places + 1 + phase)).float().view(shape)


def pixels(*shape: int, phase: float = 0.0) -> Tensor:
    """Bytes."""
    return ((waves(*shape, phase=phase) + 1) * 127.5).to(torch.uint8)


@torch.no_grad()
def fill(module: nn.Module, phase: float) -> None:
    """Weights by formula, on the scale of usual ones; BatchNorm's factors are near 1, biases near 0."""
    for i, (name, weight) in enumerate(module.named_parameters()):
        made = waves(*weight.shape, phase=phase + i / 7)
        fan = weight[0].numel() if weight.dim() > 1 else 100
        weight.copy_(made / fan**0.5 + (weight.dim() == 1 and name.endswith("weight")))


def traces(tensors: list[Tensor]) -> list[list[float]]:
    """What tells tensors apart in four numbers each: sum, length, and products with two waves."""
    found = []
    for tensor in tensors:
        flat = tensor.detach().double().flatten()
        others = [waves(len(flat), phase=phase).double() for phase in (0.3, 0.9)]
        found.append([float(flat.sum()), float(flat.norm()), *(float(flat @ other) for other in others)])
    return found


def assert_alike(found: list[list[float]], recorded: list[list[float]]) -> None:
    """Of traces: within 1e-5, relative to the number or to the longest tensor's length, whichever is more."""
    assert len(found) == len(recorded)
    one, other = torch.tensor(found), torch.tensor(recorded)
    assert torch.allclose(one, other, rtol=1e-5, atol=1e-5 * max(1.0, float(other[:, 1].max())))


def evidence_by_formula(samples: int = 240, dimensions: int = 8, classes: int = 5) -> Evidence:
    """Classes that overlap, and some of the labels wrong."""
    true = (waves(samples, phase=1.0) * 1e4).long().abs() % classes
    centres = waves(classes, dimensions, phase=2.0)
    features = centres[true] + 1.1 * waves(samples, dimensions, phase=3.0)
    off = (waves(samples, phase=4.0) > 0.3).long() * (1 + (waves(samples, phase=5.0) > 0).long())
    given = (true + off) % classes
    logits = features @ (1.5 * centres + 0.2 * waves(classes, dimensions, phase=6.0)).T + 0.1 * waves(classes, phase=7.0)
    return Evidence(given, cross_entropies(logits, given), logits.softmax(1), features)
