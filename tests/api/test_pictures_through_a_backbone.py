"""`find_label_issues(pictures=...)` and `NoisyLabelClassifier(backbone=...)`: photos as people hold them, seen through timm."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from backbones.conftest import TINY, lite0, timm, weights
from backbones.photos import photo
from labelsieve import NoisyLabelClassifier, find_label_issues
from labelsieve.api.labels import BadInput
from labelsieve.backbones.hub import Weights
from labelsieve.runs import features

__all__ = ["lite0", "timm", "weights"]
pytestmark = pytest.mark.usefixtures("own_cache")


def drawn(number: int, label: int) -> Image.Image:
    """Red on the left or blue on the right, and noise: what even random features tell apart."""
    pixels = np.random.default_rng(number).integers(0, 80, (40, 50, 3)).astype(np.uint8)
    if label:
        pixels[:, 25:, 2] += 170
    else:
        pixels[:, :25, 0] += 170
    return Image.fromarray(pixels)


def files(root: Path, count: int = 40) -> tuple[list[Path], np.ndarray]:
    labels = np.arange(count) % 2
    paths = [root / f"{k}.png" for k in range(count)]
    for k, path in enumerate(paths):
        drawn(k, labels[k]).save(path)
    return paths, labels


def test_paths_pictures_and_arrays_give_the_same_table(timm: ModuleType, weights: Path, tmp_path: Path) -> None:
    paths, labels = files(tmp_path)
    given = labels.copy()
    given[:2] = 1 - given[:2]
    names = np.array(["red", "blue"])[given]
    by_path = find_label_issues(pictures=paths, labels=names, backbone=TINY, weights=weights)
    assert by_path.id.tolist() == [str(path) for path in paths] and set(by_path.order[:2].tolist()) == {0, 1}
    pictures = [Image.open(path) for path in paths]
    arrays = np.stack([np.asarray(one) for one in pictures])
    for seen in (pictures, arrays, [str(path) for path in paths]):
        other = find_label_issues(pictures=seen, labels=names, backbone=TINY, weights=str(weights))
        assert np.allclose(other.label_score, by_path.label_score, atol=1e-4)


def test_pictures_that_cannot_be_read_are_left_out_with_a_warning(timm: ModuleType, weights: Path, tmp_path: Path) -> None:
    paths, labels = files(tmp_path)
    paths[3].write_bytes(b"no picture")
    paths[7].unlink()
    with pytest.warns(UserWarning, match=r"2 of 40 pictures cannot be read: .*3\.png .*7\.png .*left out"):
        found = find_label_issues(pictures=paths, labels=labels, backbone=TINY, weights=weights)
    assert len(found.id) == 38 and str(paths[3]) not in found.id and str(paths[4]) in found.id
    with pytest.raises(BadInput, match=r"2 of 40 pictures cannot be read.*fix them"):
        NoisyLabelClassifier(backbone=TINY, weights=weights).fit(paths, labels)


def test_a_classifier_learns_from_photos_of_any_size(timm: ModuleType, weights: Path, tmp_path: Path) -> None:
    paths, labels = files(tmp_path)
    model = NoisyLabelClassifier(backbone=TINY, weights=weights, epochs=4, random_state=0).fit(paths, labels)
    assert model.score(paths, labels) > 0.9
    odd = [drawn(100, 1).resize((80, 60)), drawn(101, 0).resize((33, 44))]
    assert model.predict(odd).tolist() == [1, 0]
    assert np.allclose(model.predict_proba(paths[:3]), model.predict_proba([Image.open(path) for path in paths[:3]]), atol=1e-4)


def test_what_contradicts_itself_is_refused(
    timm: ModuleType, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, labels = files(tmp_path, 8)
    with pytest.raises(BadInput, match="give features and labels, or pictures"):
        find_label_issues(labels=labels)
    with pytest.raises(BadInput, match="give features and labels, or pictures"):
        find_label_issues(np.zeros((8, 3)), labels, pictures=paths)
    with pytest.raises(BadInput, match="are for pictures"):
        find_label_issues(np.zeros((8, 3)), labels, backbone=TINY)
    with pytest.raises(BadInput, match="is one path"):
        find_label_issues(pictures=str(tmp_path), labels=labels, backbone=TINY, weights=weights)
    with pytest.raises(BadInput, match="has the shape"):
        find_label_issues(pictures=np.zeros((8, 3)), labels=labels, backbone=TINY, weights=weights)
    with pytest.raises(BadInput, match="did you mean"):
        find_label_issues(pictures=paths, labels=labels, backbone="resnet188")
    with pytest.raises(BadInput, match="not the weights of resnet18"):
        find_label_issues(pictures=paths, labels=labels, backbone="resnet18", weights=weights)
    with pytest.raises(BadInput, match="name it: backbone="):
        NoisyLabelClassifier(weights=weights).fit(np.zeros((8, 3)), labels)
    monkeypatch.setattr(features, "_may_be_cached", lambda: False)
    monkeypatch.delenv(features.NAME, raising=False)
    with pytest.raises(BadInput, match="no weights of a pretrained network are on this machine"):
        find_label_issues(pictures=paths, labels=labels)
    monkeypatch.setattr(Weights, "cached", lambda self: None)
    with pytest.raises(BadInput, match="this is offline"):
        find_label_issues(pictures=paths, labels=labels, backbone=TINY, offline=True)


def test_real_features_find_wrong_labels(lite0: Path, tmp_path: Path) -> None:
    """Smooth pictures, and others in coarse squares; four of 40 labels are exchanged."""
    paths = []
    for k in range(40):
        picture = photo(k, (120, 120))
        if k % 2 == 0:
            picture = picture.resize((12, 12)).resize((120, 120), Image.Resampling.NEAREST)
        paths.append(tmp_path / f"{k}.jpg")
        picture.save(paths[-1])
    labels = np.arange(40) % 2
    labels[:4] = 1 - labels[:4]
    found = find_label_issues(pictures=paths, labels=labels, backbone="tf_efficientnet_lite0", weights=lite0)
    assert set(found.order[:4].tolist()) == {0, 1, 2, 3}
