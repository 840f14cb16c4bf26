"""Features are computed once a picture, survive kills and full disks, and never are another picture's or backbone's."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from backbones.conftest import TINY
from backbones.photos import Plan, folder, listing, photo
from labelsieve.backbones.backbone import Backbone, backbone_for
from labelsieve.backbones.embedding import Embedder, placed
from labelsieve.backbones.pictures import ArrayPictures, FeatureStore, FilePictures
from labelsieve.data.pictures.framing import framed
from labelsieve.errors import ToolError
from runs.file_limit import files_at_most

PLAN = Plan(32, 3, "crop", 0)


class Counted(Backbone):
    """Knows how many pictures it has looked at, blank ones that fill a block aside."""

    def __init__(self, other: Backbone) -> None:
        super().__init__(other.name, other.network, other.sight)
        self.seen = 0

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        self.seen += int((pixels.flatten(1).amax(1) > 0).sum())
        return super().forward(pixels)


@pytest.fixture
def counted(embedder: Embedder) -> Embedder:
    return replace(embedder, backbone=Counted(embedder.backbone))


def looked(embedder: Embedder) -> int:
    assert isinstance(embedder.backbone, Counted)
    count, embedder.backbone.seen = embedder.backbone.seen, 0
    return count


def features(embedder: Embedder, root: Path) -> np.ndarray:
    found = embedder.of_listing(listing(root), PLAN, root)
    assert not found.reasons
    return found.values


def test_features_are_the_networks_own_and_in_order(embedder: Embedder, tmp_path: Path) -> None:
    root = folder(tmp_path / "data")
    found = features(embedder, root)
    frame = embedder.backbone.sight.frame
    pixels = np.stack([framed(photo(1000 * label + k), frame) for label in range(2) for k in range(10)])
    with torch.no_grad():
        expected = embedder.backbone(torch.from_numpy(pixels)).numpy()
    assert found.shape == (20, embedder.width) and np.allclose(found, expected, atol=1e-4)
    assert np.ptp(found, axis=0).max() > 1e-3


def test_each_picture_is_looked_at_once_and_a_changed_one_again(counted: Embedder, tmp_path: Path) -> None:
    root = folder(tmp_path / "data")
    first = features(counted, root)
    assert looked(counted) == 20
    assert np.array_equal(features(counted, root), first) and looked(counted) == 0
    photo(77).save(root / "cat" / "003.png")
    os.utime(root / "cat" / "003.png", ns=(1, 1))
    second = features(counted, root)
    assert looked(counted) == 1
    assert [row for row in range(20) if not np.array_equal(first[row], second[row])] == [3]
    photo(78).save(root / "dog" / "new.png")
    assert len(features(counted, root)) == 21 and looked(counted) == 1


def test_by_content_a_moved_folder_is_known(counted: Embedder, tmp_path: Path) -> None:
    root, embedder = folder(tmp_path / "data"), replace(counted, by_content=True)
    first = features(embedder, root)
    assert looked(counted) == 20
    root.rename(tmp_path / "moved")
    assert np.array_equal(features(embedder, tmp_path / "moved"), first) and looked(counted) == 0


def test_another_backbone_or_size_has_features_of_its_own(
    timm: object, weights: Path, embedder: Embedder, tmp_path: Path
) -> None:
    root = folder(tmp_path / "data")
    first = features(embedder, root)
    other = backbone_for(TINY, weights, size=48)
    changed = torch.load(weights, weights_only=True)
    changed["conv_stem.weight"] *= 2
    torch.save(changed, tmp_path / "changed.pth")
    third = backbone_for(TINY, tmp_path / "changed.pth", size=32)
    assert len({other.key, third.key, embedder.backbone.key}) == 3
    for backbone in (other, third):
        assert not np.allclose(features(replace(embedder, backbone=placed(backbone, embedder.device)), root), first)


def test_a_broken_picture_is_left_out_and_told(counted: Embedder, tmp_path: Path) -> None:
    root = folder(tmp_path / "data")
    (root / "cat" / "005.png").write_bytes((root / "cat" / "005.png").read_bytes()[:60])
    found = counted.of_listing(listing(root), PLAN, root)
    assert len(found.values) == 19 and list(found.reasons) == [5] and looked(counted) == 19
    photo(5).save(root / "cat" / "005.png")
    assert len(features(counted, root)) == 20 and looked(counted) == 1


def test_processes_decode_as_this_one_does(embedder: Embedder, tmp_path: Path) -> None:
    """From 200 pictures on, or when asked for: what is decoded ahead comes through a file that is gone afterwards."""
    root = folder(tmp_path / "data", each=30)
    (root / "dog" / "011.png").write_bytes(b"no picture")
    here = embedder.of_listing(listing(root), PLAN, root)
    other = replace(embedder, cache=tmp_path / "other")
    there = other.of_listing(listing(root), PLAN, root, workers=2)
    assert np.array_equal(here.values, there.values) and here.reasons == there.reasons and list(here.reasons) == [41]
    assert here.looks is not None and there.looks is not None and np.array_equal(here.looks, there.looks)
    assert not list(other.store().folder.glob("*.draft"))


def test_arrays_are_looked_at_as_files_are(counted: Embedder) -> None:
    pixels = np.stack([np.asarray(photo(number)) for number in (1, 2, 1)]).transpose(0, 3, 1, 2)
    found = counted.of_arrays(torch.from_numpy(pixels.copy()), "arrays")
    frame = counted.backbone.sight.frame
    with torch.no_grad():
        expected = counted.backbone(torch.from_numpy(np.stack([framed(photo(number), frame) for number in (1, 2, 1)])))
    assert torch.allclose(found, expected, atol=1e-4)
    looked(counted)
    assert torch.equal(counted.of_arrays(torch.from_numpy(pixels.copy()), "arrays"), found) and looked(counted) == 0
    grey = torch.from_numpy(pixels[:, :1].copy())
    assert torch.equal(counted.of_arrays(grey, "grey"), counted.of_arrays(grey.expand(-1, 3, -1, -1).contiguous(), "rgb"))
    with pytest.raises(ToolError, match="4 channels"):
        ArrayPictures(torch.zeros(2, 4, 8, 8, dtype=torch.uint8), "x")


class Interrupted(Exception):
    """Stands for a kill: nothing below catches it."""


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_an_interrupted_embedding_goes_on_where_it_was(
    counted: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    monkeypatch.setattr("labelsieve.backbones.embedding.KEPT", 4)
    monkeypatch.setattr(Embedder, "block", 4)
    root = folder(tmp_path / "data")
    whole = features(replace(counted, cache=tmp_path / "whole"), root)
    looked(counted)

    def stop(what: str, done: int, total: int) -> None:
        if what == "embedding" and done >= 4 * blocks:
            raise Interrupted

    with pytest.raises(Interrupted):
        counted.of_listing(listing(root), PLAN, root, progress=stop)
    looked(counted)
    assert np.array_equal(features(counted, root), whole) and looked(counted) == 20 - 4 * blocks


def test_a_killed_process_leaves_what_it_had(tmp_path: Path, weights: Path) -> None:
    """By SIGKILL, in the middle: the next one takes up its files, clears its drafts away, and computes the rest only."""
    root, cache = folder(tmp_path / "data", each=20), tmp_path / "cache"
    program = f"""
import os, signal
from pathlib import Path
import torch
import backbones.test_embedding as here
from labelsieve.backbones import embedding
from labelsieve.backbones.backbone import backbone_for
embedding.KEPT, embedding.Embedder.block = 8, 8
made = embedding.Embedder(backbone_for("{TINY}", Path(r"{weights}"), size=32), torch.device("cpu"), Path(r"{cache}"), threads=1)
def kill(what, done, total):
    if done == 24:
        os.kill(os.getpid(), signal.SIGKILL)
made.of_listing(here.listing(Path(r"{root}")), here.PLAN, Path("."), progress=kill)
"""
    tests = str(Path(__file__).parents[1])
    ended = subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": tests}, check=False)
    assert ended.returncode == -9
    made = Embedder(Counted(backbone_for(TINY, weights, size=32)), torch.device("cpu"), cache, threads=1)
    made.store().folder.joinpath("torn.123.draft").write_bytes(b"half")
    kept = sum(len(np.load(file)["keys"]) for file in made.store().folder.glob("*.npz"))
    assert kept == 24
    assert len(features(made, root)) == 40 and looked(made) == 16
    assert not list(made.store().folder.glob("*.draft"))


def test_a_damaged_file_costs_only_its_own_pictures(counted: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelsieve.backbones.embedding.KEPT", 4)
    monkeypatch.setattr(Embedder, "block", 4)
    root = folder(tmp_path / "data")
    first = features(counted, root)
    files = sorted(counted.store().folder.glob("*.npz"))
    assert len(files) == 5
    content = bytearray(files[0].read_bytes())
    content[-600] ^= 255  # in the features: their checksum does not hold any more
    files[0].write_bytes(content)
    files[1].write_bytes(files[1].read_bytes()[:100])
    looked(counted)
    assert np.array_equal(features(counted, root), first) and looked(counted) == 8


def test_a_full_disk_loses_nothing_and_goes_on_later(counted: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel refuses to let a file grow: what was put down before is used when there is room again."""
    monkeypatch.setattr("labelsieve.backbones.embedding.KEPT", 4)
    monkeypatch.setattr(Embedder, "block", 4)
    root, added = folder(tmp_path / "data"), []
    write = FeatureStore.add

    def limited(self: FeatureStore, keys: Sequence[bytes], values: np.ndarray, looks: np.ndarray) -> None:
        added.append(len(keys))
        if len(added) < 3:
            write(self, keys, values, looks)
        else:
            with files_at_most(100):
                write(self, keys, values, looks)

    monkeypatch.setattr(FeatureStore, "add", limited)
    with pytest.raises(ToolError, match="File too large.*free some space or choose another cache_dir"):
        features(counted, root)
    monkeypatch.setattr(FeatureStore, "add", write)
    looked(counted)
    assert len(features(counted, root)) == 20 and looked(counted) == 12
    assert not list(counted.store().folder.glob("*.draft"))


def test_a_disk_without_room_for_decoding_is_said(embedder: Embedder, tmp_path: Path) -> None:
    root = folder(tmp_path / "data")
    with files_at_most(1000), pytest.raises(ToolError, match="File too large.*free some space"):
        features(embedder, root)
    assert len(features(embedder, root)) == 20


def test_two_processes_at_once_share_the_work(tmp_path: Path, weights: Path) -> None:
    root, cache = folder(tmp_path / "data", each=12), tmp_path / "cache"
    program = f"""
from pathlib import Path
import numpy as np, torch
import backbones.test_embedding as here
from labelsieve.backbones.embedding import Embedder
from labelsieve.backbones.backbone import backbone_for
seen = here.Counted(backbone_for("{TINY}", Path(r"{weights}"), size=32))
made = Embedder(seen, torch.device("cpu"), Path(r"{cache}"), threads=1)
found = here.features(made, Path(r"{root}"))
print(here.looked(made), float(found.sum()))
"""
    tests = str(Path(__file__).parents[1])
    both = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": tests}
        )
        for _ in range(2)
    ]
    said = [process.communicate()[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(int(words[0]) for words in said) == [0, 24] and said[0][1] == said[1][1]


def test_keys_tell_pictures_apart(tmp_path: Path) -> None:
    root = folder(tmp_path / "data")
    whole = FilePictures(listing(root).origin).keys()
    assert len(set(whole)) == 20 and all(len(key) == 16 for key in whole)
    assert not set(whole) & set(FilePictures(listing(root).origin, white=4095).keys())
    assert not set(whole) & set(FilePictures(listing(folder(tmp_path / "copy")).origin).keys())
