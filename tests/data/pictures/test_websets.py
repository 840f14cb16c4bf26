"""Clothing1M and WebVision in their official layouts, made small: what is read, what is missing, what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from labelsieve.data.pictures.opening import Opened, open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import recognise
from labelsieve.data.pictures.websets import CLOTHES, WEBSETS
from labelsieve.data.sources import SOURCES, open_data, open_own, source_at
from labelsieve.data.web_inspection import web_inspection
from labelsieve.errors import ToolError, UsageError

from .made_websets import clothing1m, imagenet_flat, imagenet_folders, webvision, wnid

SMALL = PictureOptions(size=16)


def stripe(images: torch.Tensor) -> list[int]:
    """Which fifth of each picture is bright."""
    rows = images.float().mean((1, 3))
    return (rows.argmax(1) * 6 // images.shape[2]).tolist()


def opened(source: str, options: PictureOptions = SMALL) -> Opened:
    return open_own(source, options)


def test_clothing1m_gives_its_three_splits_by_the_lists(tmp_path: Path) -> None:
    found = opened(f"clothing1m:{clothing1m(tmp_path / 'c')}")
    train, test, val = found.collection.train, found.collection.test, found.val
    assert test is not None and val is not None
    assert (len(train), len(val.labels), len(test.labels)) == (48, 9, 9)
    assert train.ids[0] == "images/0/2/noisy_train47,47.jpg" and train.classes == CLOTHES[:3]
    assert train.shape == (3, 16, 16) and found.collection.mean == WEBSETS["clothing1m"].mean and found.collection.truth is None
    assert val.labels.tolist() == test.labels.tolist() == [k % 3 for k in reversed(range(9))]
    expected = [(k % 3 + (k % 5 == 0)) % 3 for k in reversed(range(48))]
    assert train.labels.tolist() == expected
    assert [stripe(held.images) for held in (val, test)] == [val.labels.tolist()] * 2
    assert any("T-Shirt" not in note and "Suit" in note for note in found.notes)


def test_webvision_takes_its_first_classes_and_the_validation_set(tmp_path: Path) -> None:
    found = opened(f"webvision:{webvision(tmp_path / 'w')}")
    train, test = found.collection.train, found.collection.test
    assert test is not None and found.val is None and found.collection.also == {}
    assert (len(train), len(test.labels)) == (48, 9) and "google/q0002/a b5.jpg" in train.ids
    assert train.classes == ("thing 0", "thing 1", "thing 2")
    assert stripe(test.images) == test.labels.tolist() == [k % 3 for k in range(9)]
    assert torch.equal(train.labels, torch.arange(48) % 3)


@pytest.mark.parametrize("form", ["folders", "val.txt", "LOC_val_solution.csv", "beside"])
def test_ilsvrc12_is_read_in_each_form(form: str, tmp_path: Path) -> None:
    root, place = webvision(tmp_path / "w"), tmp_path / "imagenet" / "val"
    if form == "folders":
        imagenet_folders(place)
    else:
        imagenet_flat(place, "val.txt" if form == "beside" else form)
    if form == "beside":
        (place / "val.txt").replace(place.parent / "val.txt")
    also = opened(f"webvision:{root}", PictureOptions(size=16, second_test=place)).collection.also
    held = also["ilsvrc12"]
    assert sorted(held.labels.tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert stripe(held.images) == held.labels.tolist()


def test_unreadable_pictures_of_ilsvrc12_are_told(tmp_path: Path) -> None:
    root, place = webvision(tmp_path / "w"), tmp_path / "val"
    imagenet_folders(place)
    options = PictureOptions(size=16, second_test=place)
    files = sorted(place.rglob("*.*"))
    for broken in {file.parent: file for file in files}.values():  # one of each class
        broken.write_bytes(b"no picture")
    found = opened(f"webvision:{root}", options)
    assert len(found.collection.also["ilsvrc12"].labels) == 6 and len(found.left_out) == 3
    assert "3 pictures of the second test set (ilsvrc12) cannot be read: left out" in found.notes
    with pytest.raises(ToolError, match="3 pictures cannot be read"):
        opened(f"webvision:{root}", replace(options, strict=True))


def test_ilsvrc12_is_found_below_webvision_and_needs_names(tmp_path: Path) -> None:
    root = webvision(tmp_path / "w", names=False)
    imagenet_folders(root / "imagenet" / "val")
    with pytest.raises(ToolError, match=r"6 class folders, and WebVision's info/synsets\.txt is missing"):
        opened(f"webvision:{root}")
    webvision(tmp_path / "w")
    assert len(opened(f"webvision:{root}").collection.also["ilsvrc12"].labels) == 9


def test_ilsvrc12_without_labels_says_what_it_needs(tmp_path: Path) -> None:
    root, place = webvision(tmp_path / "w"), imagenet_flat(tmp_path / "flat")
    (place / "val.txt").unlink()
    options = PictureOptions(size=16, second_test=place)
    with pytest.raises(ToolError, match=r"neither class folders \(n01440764, \.\.\.\) nor val\.txt"):
        opened(f"webvision:{root}", options)
    with pytest.raises(ToolError, match="nowhere: no such folder"):
        opened(f"webvision:{root}", PictureOptions(size=16, second_test=tmp_path / "nowhere"))


@pytest.mark.parametrize("name", ["clothing1m", "webvision"])
def test_a_web_set_is_recognised_by_its_lists(name: str, tmp_path: Path) -> None:
    root = {"clothing1m": clothing1m, "webvision": webvision}[name](tmp_path / "data")
    assert source_at(str(root)) == f"{name}:{root}" and recognise(root).kind == name
    assert len(open_pictures(root, SMALL).collection.train) == 48
    assert name in SOURCES
    with pytest.raises(UsageError, match=f"{name}:PATH"):
        open_data(name)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("clothing1m", "annotations/clean_label_kv.txt"),
        ("clothing1m", "annotations/noisy_train_key_list.txt"),
        ("webvision", "info/val_filelist.txt"),
    ],
)
def test_a_missing_list_is_named(name: str, gone: str, tmp_path: Path) -> None:
    root = {"clothing1m": clothing1m, "webvision": webvision}[name](tmp_path / "data")
    (root / gone).unlink()
    with pytest.raises(ToolError, match=f"{gone} missing"):
        opened(f"{name}:{root}")
    found = web_inspection(name, root, SMALL)
    assert found.missing == (gone,) and not found.is_whole
    assert f"warning: {gone} is missing" in found.lines()


def test_an_empty_folder_lists_all_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"noisy_label_kv\.txt, .* images missing; Clothing1M is only partly there"):
        opened(f"clothing1m:{tmp_path}")


def test_a_folder_half_unpacked_is_refused_and_counted(tmp_path: Path) -> None:
    root = clothing1m(tmp_path / "data")
    for path in sorted((root / "images" / "0" / "1").iterdir()):
        path.unlink()
    (root / "images/2/0/clean_test0,0.jpg").unlink()
    says = r'17 of 66 listed pictures are missing \(train: 16 of 48, the first is "images/0/1/.*"; test: 1 of 9'
    with pytest.raises(ToolError, match=says):
        opened(f"clothing1m:{root}")
    found = web_inspection("clothing1m", root, SMALL)
    train, val, test = found.splits
    assert [(split.listed, split.there) for split in found.splits] == [(48, 32), (9, 9), (9, 8)]
    assert len(train.missing) == 5 and val.missing == () and test.missing == ("images/2/0/clean_test0,0.jpg",)
    assert any("16 are missing: images/0/1/" in line for line in found.lines())
    json.dumps(found.as_dict(), default=str)
    went_on = opened(f"clothing1m:{root}", PictureOptions(size=16, incomplete=True))
    assert len(went_on.collection.train) == 32 and len(went_on.left_out) == 17


def test_a_few_dead_pictures_are_left_out_and_told(tmp_path: Path) -> None:
    root = clothing1m(tmp_path / "data", train=120)
    (root / "images/0/0/noisy_train0,0.jpg").unlink()
    found = opened(f"clothing1m:{root}")
    assert len(found.collection.train) == 119 and found.left_out[0].id == "images/0/0/noisy_train0,0.jpg"


@pytest.mark.parametrize(
    ("file", "line", "says"),
    [
        ("annotations/noisy_label_kv.txt", "images/0/0/x.jpg 14", r"line 50: class 14 is outside 0\.\.13"),
        ("annotations/noisy_label_kv.txt", "images/0/0/x.jpg", "line 50: .* is not a path and a class number"),
        ("annotations/noisy_train_key_list.txt", "images/5/5/none.jpg", "1 of 49 keys have no label in .*noisy_label_kv"),
        ("annotations/noisy_train_key_list.txt", "../outside.jpg", "line 49: .* leads out"),
        ("annotations/clean_label_kv.txt", "/etc/passwd 1", "line 19: .* leads out"),
    ],
)
def test_a_wrong_line_is_named(file: str, line: str, says: str, tmp_path: Path) -> None:
    root = clothing1m(tmp_path / "data")
    with (root / file).open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(ToolError, match=says) as caught:
        opened(f"clothing1m:{root}")
    assert file.rpartition("/")[2] in str(caught.value)


def test_the_same_pictures_are_not_decoded_twice_and_stay_on_the_disk(tmp_path: Path) -> None:
    root = webvision(tmp_path / "w")
    first = opened(f"webvision:{root}")
    assert first.cache is not None and first.plan is not None and first.plan.size == 16
    stamp = (first.cache / "pixels.npy").stat().st_mtime_ns
    again = opened(f"webvision:{root}").collection.train.images
    assert (first.cache / "pixels.npy").stat().st_mtime_ns == stamp
    assert np.array_equal(np.load(first.cache / "pixels.npy", mmap_mode="r")[:48], again.numpy())
    assert not again.is_pinned() and web_inspection("webvision", root, SMALL).cache_bytes == 128 + 57 * 3 * 16 * 16


def test_inspection_tells_of_the_second_test_set(tmp_path: Path) -> None:
    root = webvision(tmp_path / "w")
    assert any("--second-test" in note for note in web_inspection("webvision", root, SMALL).notes)
    place = imagenet_folders(tmp_path / "val")
    found = web_inspection("webvision", root, PictureOptions(second_test=place))
    assert found.is_whole and found.splits[-1].listed == 18 and found.splits[-1].name.startswith("ilsvrc12")
    assert found.cache_bytes == 128 + (57 + 18) * 3 * 256 * 256
    assert wnid(0) == "n01440764"
