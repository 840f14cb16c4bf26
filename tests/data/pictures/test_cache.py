"""The cache of decoded pictures: used again, gone on with after a kill, and spared by deadly pictures."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labelsieve
from labelsieve.data.pictures import pool
from labelsieve.data.pictures.cache import PixelCache, cache_size
from labelsieve.data.pictures.decode import CRASHED
from labelsieve.data.pictures.decoding import Plan, decoded, plan
from labelsieve.data.pictures.opening import open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.presence import present
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.errors import ToolError

from .made import class_folders, noise, save


class Told:
    """Counts how many pictures were decoded (not looked at) in a run."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int]] = []

    def __call__(self, what: str, done: int, total: int) -> None:
        self.steps.append((what, done, total))

    @property
    def kinds(self) -> set[str]:
        return {what for what, _, _ in self.steps}


def test_decoded_once_and_again_only_for_another_content_or_setting(tmp_path: Path) -> None:
    class_folders(tmp_path)
    for options, kinds in [
        (PictureOptions(), {"looking", "decoding"}),
        (PictureOptions(), set()),
        (PictureOptions(size=16), {"decoding"}),
        (PictureOptions(fit="squash"), {"decoding"}),
        (PictureOptions(by_content=True), {"looking", "decoding"}),
        (PictureOptions(size=16), set()),
    ]:
        told = Told()
        open_pictures(tmp_path, options, told)
        assert told.kinds == kinds
    save(noise(77), tmp_path / "cat" / "0.png")
    told = Told()
    open_pictures(tmp_path, progress=told)
    assert told.steps[-1] == ("decoding", 6, 6)
    os.utime(tmp_path / "cat" / "1.png", ns=(1, 1))
    for options, kinds in [
        (PictureOptions(), {"looking", "decoding"}),
        (PictureOptions(by_content=True), {"looking", "decoding"}),
    ]:
        told = Told()
        open_pictures(tmp_path, options, told)
        assert told.kinds == kinds
    os.utime(tmp_path / "cat" / "1.png", ns=(2, 2))
    told = Told()
    open_pictures(tmp_path, PictureOptions(by_content=True), told)
    assert told.kinds == set()


def test_the_size_is_told_beforehand(tmp_path: Path) -> None:
    opened = open_pictures(class_folders(tmp_path), PictureOptions(cache_dir=tmp_path / "kept", size=16))
    assert opened.cache is not None and opened.plan is not None and tmp_path / "kept" in opened.cache.parents
    assert (opened.cache / "pixels.npy").stat().st_size == opened.plan.bytes == cache_size(6, 16, 3)


@pytest.mark.parametrize(("sides", "expected"), [([3, 4], 8), ([28], 28), ([31, 300, 31], 28), ([64, 64, 10], 64), ([5000], 224)])
def test_the_size_follows_the_median(sides: list[int], expected: int) -> None:
    records: list[dict[str, Any]] = [{"mode": "L", "width": side, "height": side + 50} for side in sides]
    assert plan([*records, {"reason": "broken"}], PictureOptions()) == Plan(expected, 1, "crop", len(sides) + 1)


def test_a_disk_that_is_too_small_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"need .* [KMG]iB and .* [KMG]iB are free; choose a smaller size or another cache_dir"):
        PixelCache(tmp_path / "c", (10**9, 3, 224, 224)).prepare()
    assert not (tmp_path / "c" / "pixels.npy").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    class_folders(tmp_path / "data")
    with pytest.raises(ToolError, match=r"file.*cannot be written .* another cache_dir"):
        open_pictures(tmp_path / "data", PictureOptions(cache_dir=tmp_path / "file"))


@pytest.mark.parametrize("left", [0, 100, 500])
@pytest.mark.parametrize("broken", [False, True])
def test_pixels_that_were_cut_short_are_decoded_again(left: int, broken: bool, tmp_path: Path) -> None:
    class_folders(tmp_path / "data")
    if broken:
        (tmp_path / "data" / "cat" / "x.png").write_text("no picture")
    first = open_pictures(tmp_path / "data")
    assert first.cache is not None
    expected = first.collection.train.images.clone()
    os.truncate(first.cache / "pixels.npy", left)
    again = open_pictures(tmp_path / "data")
    assert again.collection.train.images.equal(expected) and len(again.left_out) == broken


def test_a_whole_cache_that_cannot_be_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that people share: root may write anywhere, so the answer is made up."""
    class_folders(tmp_path / "data")
    first = open_pictures(tmp_path / "data")
    assert first.cache is not None
    (first.cache / "lock").unlink()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    told = Told()
    assert open_pictures(tmp_path / "data", progress=told).collection.train.images.equal(first.collection.train.images)
    assert not told.kinds and not (first.cache / "lock").exists()


def test_processes_give_the_same_pixels_as_this_one(tmp_path: Path) -> None:
    class_folders(tmp_path, each=30)
    (tmp_path / "cat" / "7.png").write_text("x")
    alone = open_pictures(tmp_path, PictureOptions(size=12, cache_dir=tmp_path / "a"))
    shared = open_pictures(tmp_path, PictureOptions(size=12, cache_dir=tmp_path / "b", workers=2))
    assert np.array_equal(alone.collection.train.images, shared.collection.train.images)
    assert alone.left_out == shared.left_out and len(alone.left_out) == 1


def test_without_processes_it_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "START", "raise SystemExit(1)")
    assert len(open_pictures(class_folders(tmp_path), PictureOptions(workers=2)).collection.train) == 6


DEADLY = """
import os
from labelsieve.data.pictures import pool
whole = pool.fetch
def fetch(reference):
    if "deadly" in str(reference):
        os._exit(9)
    return whole(reference)
pool.fetch = fetch
pool.serve()
"""


def test_a_picture_that_kills_the_decoder_costs_itself_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_folders(tmp_path)
    save(noise(50), tmp_path / "cat" / "deadly.png")
    healthy = pool.START
    monkeypatch.setattr(pool, "START", DEADLY)
    opened = open_pictures(tmp_path, PictureOptions(workers=1, size=12))
    assert [(row.path, row.reason) for row in opened.left_out] == [("cat/deadly.png", CRASHED)]
    assert np.array_equal(opened.collection.train.images[3].numpy(), np.asarray(noise(1000)).transpose(2, 0, 1))
    monkeypatch.setattr(pool, "START", healthy)
    assert open_pictures(tmp_path, PictureOptions(workers=1, size=12)).left_out == ()


def test_a_file_deleted_after_listing_is_unreadable_with_that_reason(tmp_path: Path) -> None:
    class_folders(tmp_path / "data")
    listing = present(list_pictures(recognise(tmp_path / "data"), PictureOptions()))
    (tmp_path / "data" / "dog" / "1.png").unlink()
    taken = decoded(listing, Plan(12, 3, "crop", 6), tmp_path / "cache")
    assert taken.reasons == {4: "it was gone when it was to be read"} and taken.values.shape == (5, 3, 12, 12)


SLOW = """
import sys, time
from pathlib import Path
from labelsieve.data.pictures import cache, decoding, options, presence, recognise
cache.STRETCH_BYTES = 1
def slowly(what, done, total):
    print(what, done, flush=True)
    time.sleep(0.05)
rows = presence.present(recognise.list_pictures(recognise.recognise(Path(sys.argv[1])), options.PictureOptions()))
decoding.decoded(rows, decoding.Plan(12, 3, "crop", len(rows)), Path(sys.argv[2]), 1, slowly)
"""
SOURCE = os.environ | {"PYTHONPATH": str(Path(labelsieve.__file__).parent.parent)}


def decoding_slowly(data: Path, kept: Path) -> "subprocess.Popen[str]":
    """Another process that decodes 8 pictures at a time and says so."""
    return subprocess.Popen([sys.executable, "-c", SLOW, str(data), str(kept)], stdout=subprocess.PIPE, text=True, env=SOURCE)


def test_a_killed_decode_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, kept = class_folders(tmp_path / "data", each=60), tmp_path / "kept"
    (data / "cat" / "3.png").write_text("x")
    process = decoding_slowly(data, kept)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line.split()[1]) >= 32:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    log = kept / "done.jsonl"
    with log.open("a") as stream:
        stream.write('{"stretch": 14, "unread')  # as a kill in the middle of a line leaves it
    already = {json.loads(line)["stretch"] for line in log.read_text().splitlines() if line.endswith("}")}
    assert 4 <= len(already) < 15
    monkeypatch.setattr("labelsieve.data.pictures.cache.STRETCH_BYTES", 1)
    listing = present(list_pictures(recognise(data), PictureOptions()))
    told = Told()
    taken = decoded(listing, Plan(12, 3, "crop", 120), kept, progress=told)
    assert len(told.steps) == 15 - len(already) and told.steps[-1] == ("decoding", 120, 120)
    assert [listing.ids[row] for row in taken.reasons] == ["cat/3.png"] and taken.values.shape == (119, 3, 12, 12)
    fresh = decoded(listing, Plan(12, 3, "crop", 120), tmp_path / "fresh")
    assert np.array_equal(taken.values, fresh.values)


def test_two_runs_at_once_decode_once(tmp_path: Path) -> None:
    data, kept = class_folders(tmp_path / "data", each=20), tmp_path / "kept"
    both = [decoding_slowly(data, kept) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(text.count("decoding") for text in said) == [0, 5]


def test_looking_and_inspecting_need_no_torch() -> None:
    script = (
        "import sys, labelsieve.data.inspection, labelsieve.data.pictures.pool;"
        "sys.exit('torch' in sys.modules or 'pyarrow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], env=SOURCE, check=False).returncode == 0
