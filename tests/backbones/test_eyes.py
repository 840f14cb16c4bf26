"""How `train FOLDER` looks at pictures: what it decides, that it says why, and that what you say wins."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image

from backbones.conftest import TINY
from backbones.photos import folder, photo
from cli.conftest import Answer, Shell, shell
from labelsieve.backbones.hub import Weights
from labelsieve.errors import UsageError
from labelsieve.runs import features
from labelsieve.runs.features import AtHand, Photos, eyes_for, why_no_photos
from labelsieve.runs.folder import RunFolder

__all__ = ["Answer", "shell"]
pytestmark = pytest.mark.usefixtures("own_cache")
HERE = AtHand("resnet18", None, False)


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_may_be_cached", lambda: False)
    monkeypatch.delenv(features.NAME, raising=False)
    monkeypatch.delenv(features.FILE, raising=False)


@pytest.mark.parametrize(
    ("photos", "found", "cuda", "use", "says"),
    [
        (Photos(4000, 10, ""), HERE, False, "frozen", "4,000 photos are too few to train a network on"),
        (Photos(4000, 10, ""), HERE, True, "frozen", "4,000 photos are too few"),
        (Photos(60_000, 10, ""), HERE, False, "frozen", "there is no GPU"),
        (Photos(4000, 10, ""), None, False, "none", "5,000 photos per class to rank well, and you have 400"),
        (Photos(4000, 10, "they are grey"), HERE, False, "none", "trained from scratch: they are grey"),
    ],
)
def test_the_decision_and_why(photos: Photos, found: AtHand | None, cuda: bool, use: str, says: str) -> None:
    chosen = features._chosen(photos, found, cuda, {})
    assert chosen.settings["features.use"] == use and says in chosen.why and chosen.why.startswith("features: ")
    assert ("--features none" if use == "frozen" else "--backbone") in chosen.why


def test_on_a_gpu_enough_photos_train_the_backbone_itself(timm: ModuleType) -> None:
    chosen = features._chosen(Photos(60_000, 10, ""), HERE, True, {})
    assert chosen.settings == {
        "features.use": "none",
        "network": "timm:resnet18",
        "pretrained": "zoo",
        "pictures.size": timm.get_pretrained_cfg("resnet18").input_size[1],
    }
    assert "60,000 photos are enough" in chosen.why


def test_photos_are_told_from_digits_and_icons_by_their_headers() -> None:
    colour = {"mode": "RGB", "width": 40, "height": 30}
    assert not why_no_photos([colour] * 3)
    assert "grey" in why_no_photos([colour, {**colour, "mode": "L"}, {**colour, "mode": "I;16"}])
    assert "16 px are too small" in why_no_photos([{**colour, "height": 16}] * 3)
    assert "can be read" in why_no_photos([])


def test_a_folder_is_looked_at_and_weights_on_this_machine_are_used(
    timm: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"pictures:{folder(tmp_path / 'data')}"
    assert "you have 10" in eyes_for(source, {}).why
    monkeypatch.setattr(features, "_may_be_cached", lambda: True)
    monkeypatch.setattr(Weights, "cached", lambda self: tmp_path if self.name.startswith("resnet18.") else None)
    chosen = eyes_for(source, {"device": "cpu"})
    assert chosen.settings == {"features.use": "frozen", "features.backbone": "resnet18", "features.weights": None}
    assert "its weights are here" in chosen.why
    grey = tmp_path / "grey"
    for name in ("a", "b"):
        (grey / name).mkdir(parents=True)
        for k in range(3):
            photo(k).convert("L").save(grey / name / f"{k}.png")
    assert eyes_for(f"pictures:{grey}", {}).settings == {"features.use": "none"}


def test_what_is_said_wins_and_contradictions_are_refused(
    timm: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"pictures:{folder(tmp_path / 'data')}"
    monkeypatch.setenv(features.NAME, "resnet18")
    assert eyes_for(source, {}).settings["features.backbone"] == "resnet18"
    assert eyes_for(source, {"features.backbone": "timm:resnet50"}).settings["features.backbone"] == "resnet50"
    for given in ({"features.use": "none"}, {"network": "small"}, {"pretrained": "w.pth"}):
        assert eyes_for(source, given).settings == {"features.use": "none"}
    assert eyes_for(source, {}, preset=True).settings == eyes_for("digits", {}).settings == {"features.use": "none"}
    assert eyes_for("digits", {"features.backbone": "resnet18"}).settings["features.use"] == "frozen"
    tuned = eyes_for(source, {"features.use": "tuned", "features.backbone": "resnet18", "features.weights": "w.pth"})
    assert tuned.settings["network"] == "timm:resnet18" and tuned.settings["pretrained"] == "w.pth"
    for given, says in (
        ({"features.use": "frosen"}, 'did you mean "frozen"'),
        ({"features.use": "none", "features.backbone": "x"}, "--features none uses no backbone"),
        ({"features.weights": "w.pth"}, "needs the name of the network"),
        ({"features.backbone": "resnet18", "network": "small"}, "leave out --network"),
    ):
        with pytest.raises(UsageError, match=says):
            eyes_for(source, given)
    monkeypatch.delenv(features.NAME)
    with pytest.raises(UsageError, match="--backbone NAME"):
        eyes_for(source, {"features.use": "frozen"})


def test_train_says_it_in_one_line_and_writes_it_down(shell: Shell, timm: ModuleType, weights: Path, tmp_path: Path) -> None:
    root = folder(tmp_path / "data")
    quick = ("--epochs", "1", "--device", "cpu", "--set", "engine.threads=1")
    plain = shell("train", root, *quick, "--size", "8", "--out", tmp_path / "plain")
    assert plain.code == 0 and plain.out.startswith("features: none, trained from scratch: no weights")
    assert RunFolder.open(tmp_path / "plain").read_config().features.use == "none"
    said = ("--backbone", TINY, "--weights", weights, "--size", "32")
    planned = shell("train", root, *said, "--dry-run", "--verbose", "--device", "cpu")
    assert planned.code == 0 and planned.out.startswith("features: frozen, of test_efficientnet: as you asked")
    assert "network: mlp" in planned.out and "20 pictures" in planned.out
    later = shell("train", "--decisions", tmp_path / "plain", "--backbone", TINY, "--out", tmp_path / "next")
    assert later.code == 2 and "as the reviewed run did" in later.err


def test_inspect_says_what_train_would_do(
    shell: Shell, timm: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder(tmp_path / "data")
    assert "features: none, trained from scratch: no weights" in shell("inspect", root, "--device", "cpu").out
    monkeypatch.setenv(features.NAME, "resnet18")
    seen = shell("inspect", root, "--device", "cpu")
    assert "features: frozen, of resnet18" in seen.out and "network: mlp" in seen.out and "pixels per picture" not in seen.out


def test_what_features_do_not_heed_is_noted(shell: Shell, timm: ModuleType, weights: Path, tmp_path: Path) -> None:
    words = ("train", folder(tmp_path / "data"), "--backbone", TINY, "--weights", weights, "--size", "32", "--dry-run")
    assert "pictures.mirror: features are frozen" in shell(*words, "--no-mirror", "--device", "cpu").out
    assert "features are frozen" not in shell(*words, "--device", "cpu").out.replace("features: frozen", "")


def test_the_backbone_itself_can_be_trained_further(shell: Shell, timm: ModuleType, tmp_path: Path) -> None:
    root, own = folder(tmp_path / "data"), tmp_path / "w.pth"
    torch.save(timm.create_model(TINY).state_dict(), own)
    words = ("--features", "tuned", "--backbone", TINY, "--weights", own, "--epochs", "1", "--size", "32", "--device", "cpu")
    answer = shell("train", root, *words, "--set", "engine.threads=1", "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    assert "itself is trained further: as you asked" in answer.out and "the classifier is new" in answer.out
    config = RunFolder.open(tmp_path / "run").read_config()
    assert config.network == f"timm:{TINY}" and config.pictures.size == 32


def test_pictures_that_cannot_be_read_decide_nothing(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.fromarray(np.zeros((40, 40, 3), np.uint8)).save(tmp_path / name / "0.png")
        (tmp_path / name / "1.png").write_bytes(b"none")
    assert "you have 2" in eyes_for(f"pictures:{tmp_path}", {}).why
