"""ResNet-18 and -50 by their published sizes and shapes, against another implementation, and from files of weights."""

from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from labelsieve.backbones.weights import read_weights, start_from
from labelsieve.errors import ToolError
from labelsieve.nets import build
from labelsieve.nets.resnet import Bottleneck, PlainBlock, ResNet


@pytest.mark.parametrize(("name", "parameters", "features"), [("resnet18", 11_689_512, 512), ("resnet50", 25_557_032, 2048)])
def test_published_sizes(name: str, parameters: int, features: int) -> None:
    network = build(name, 3, 1000, 0)
    assert sum(p.numel() for p in network.parameters()) == parameters
    assert network.features == features


def test_the_stem_and_three_stages_halve() -> None:
    network = build("resnet18", 3, 10, 0).eval()
    sizes = []
    for name in ("conv1", "layer1", "layer2", "layer3", "layer4"):
        network.get_submodule(name).register_forward_hook(lambda module, inputs, output: sizes.append(output.shape[-1]))
    network(torch.zeros(1, 3, 224, 224))
    assert sizes == [112, 56, 28, 14, 7]


def test_a_bottleneck_strides_in_its_middle() -> None:
    blocks = [m for m in build("resnet50", 3, 10, 0).modules() if isinstance(m, Bottleneck)]
    assert len(blocks) == 16
    assert [b.conv2.stride[0] for b in blocks if b.downsample is not None] == [1, 2, 2, 2]
    assert all(b.conv1.stride[0] == b.conv3.stride[0] == 1 for b in blocks)


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_the_same_as_timms_with_the_same_weights(timm: ModuleType, name: str, tmp_path: Path) -> None:
    theirs = timm.create_model(name, num_classes=5).eval()
    g = torch.Generator().manual_seed(0)
    for module in theirs.modules():  # neutral BatchNorm would hide mistakes
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.copy_(0.1 * torch.randn(module.running_mean.shape, generator=g))  # type: ignore[union-attr]
            module.weight.data.copy_(0.5 + torch.rand(module.weight.shape, generator=g))
    save_file(theirs.state_dict(), tmp_path / "weights.safetensors")
    ours = build(name, 3, 7, 0).eval()
    start_from(ours, read_weights(tmp_path / "weights.safetensors"), "weights")
    x = torch.randn(2, 3, 64, 64, generator=g)
    with torch.no_grad():
        features = theirs.forward_head(theirs.forward_features(x), pre_logits=True)
        torch.testing.assert_close(ours(x)[1], features, rtol=1e-4, atol=1e-5)


def small(channels: int = 3, classes: int = 4) -> ResNet:
    return ResNet(PlainBlock, (1, 1), channels, classes, width=4)


def same(a: nn.Module, b: nn.Module) -> bool:
    ours, theirs = a.state_dict(), b.state_dict()
    return all(torch.equal(value, theirs[name]) for name, value in ours.items() if not name.startswith("classifier"))


@pytest.mark.parametrize("form", ["plain", "nested", "wrapped", "safetensors", "run"])
def test_weights_come_from_files_of_any_usual_form(form: str, tmp_path: Path) -> None:
    source, target = small(), small(classes=9)
    state = {name.replace("classifier.", "fc."): value for name, value in source.state_dict().items()}
    path = tmp_path / ("w.safetensors" if form in ("safetensors", "run") else "w.pth")
    if form == "safetensors":
        save_file(state, path)
    elif form == "run":
        save_file({f"{r}.network.{name}": value.clone() for r in (0, 1) for name, value in source.state_dict().items()}, path)
    else:
        plain = {f"module.{name}": value for name, value in state.items()} if form == "wrapped" else state
        torch.save({"state_dict": plain, "epoch": 3} if form == "nested" else plain, path)
    head = target.classifier.weight.clone()
    assert not same(source, target)
    start_from(target, read_weights(path), str(path))
    assert same(source, target) and torch.equal(head, target.classifier.weight)


def test_colour_weights_serve_grey_pictures() -> None:
    source, target = small(), small(channels=1)
    start_from(target, source.state_dict(), "w")
    torch.testing.assert_close(target.conv1.weight, source.conv1.weight.sum(1, keepdim=True))


def test_weights_of_another_network_are_refused_and_nothing_is_changed() -> None:
    target = small()
    before = {name: value.clone() for name, value in target.state_dict().items()}
    with pytest.raises(ToolError, match=r'weights of this network are not in it, the first is "conv1.weight"'):
        start_from(target, {"somewhere.else": torch.zeros(1)}, "w")
    wrong = small().state_dict() | {"layer1.0.conv1.weight": torch.zeros(3, 3)}
    with pytest.raises(ToolError, match=r'"layer1.0.conv1.weight" is \(3, 3\)'):
        start_from(target, wrong, "w")
    assert all(torch.equal(value, before[name]) for name, value in target.state_dict().items())


class Spy:
    """What a hostile file would hold: unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.path,))


def test_a_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    torch.save({"conv1.weight": torch.zeros(1), "spy": Spy(tmp_path / "ran")}, tmp_path / "w.pt")
    with pytest.raises(ToolError, match="more than weights"):
        read_weights(tmp_path / "w.pt")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("name", "content"), [("w.pt", b"no weights"), ("w.safetensors", b"no weights"), ("w.pt", b"")])
def test_damaged_files_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ToolError, match=name.replace(".", r"\.")):
        read_weights(tmp_path / name)


def test_a_file_without_tensors_is_named(tmp_path: Path) -> None:
    torch.save({"epoch": 3}, tmp_path / "w.pt")
    with pytest.raises(ToolError, match="no table of tensors"):
        read_weights(tmp_path / "w.pt")
