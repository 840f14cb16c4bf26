"""New pictures without labels: found as they are named, decoded a stretch at a time, in order, with their errors."""

from pathlib import Path

import numpy as np
import pytest

from data.pictures.made import noise, save
from labelsieve.data.pictures import unlabelled
from labelsieve.data.pictures.decode import pixels
from labelsieve.data.pictures.decoding import Plan
from labelsieve.data.pictures.unlabelled import find_pictures, in_chunks
from labelsieve.errors import ToolError

PLAN = Plan(8, 3, "crop", 0)


def some(root: Path, count: int) -> list[Path]:
    return [save(noise(k), root / f"{k:03d}.png") for k in range(count)]


def test_chunks_give_every_picture_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = some(tmp_path, 70)
    (tmp_path / "005.png").write_bytes(b"cut")
    (tmp_path / "066.png").write_bytes(b"")
    monkeypatch.setattr(unlabelled, "CHUNK_BYTES", 1)  # 64 pictures at the least
    names: list[str] = []
    for chunk in in_chunks(find_pictures([tmp_path, tmp_path / "none.png"]), PLAN, workers=1):
        good = [name for row, name in enumerate(chunk.names) if row not in chunk.errors]
        assert len(chunk.pixels) == len(good)
        for name, found in zip(good, chunk.pixels):
            with Path(name).open("rb") as stream:
                assert np.array_equal(found, pixels(stream, 8, 3, "crop"))
        names += chunk.names
        assert {chunk.names[row].rpartition("/")[2] for row in chunk.errors} <= {"005.png", "066.png", "none.png"}
    assert names == [*map(str, files), str(tmp_path / "none.png")]


def test_a_chunk_without_a_readable_picture(tmp_path: Path) -> None:
    (chunk,) = in_chunks(find_pictures([tmp_path / "none.png"]), PLAN)
    assert chunk.errors == {0: "there is no such file"} and chunk.pixels.shape == (0, 3, 8, 8)


def test_names_are_kept_as_given_and_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some(tmp_path / "in", 2)
    monkeypatch.chdir(tmp_path)
    found = find_pictures([Path("in/001.png"), Path("in"), Path("in/001.png")])
    assert list(found.names) == ["in/001.png", "in/000.png"]
    (chunk,) = in_chunks(found, PLAN)
    assert not chunk.errors and len(chunk.pixels) == 2


def test_loops_of_links_end_and_empty_folders_are_told(tmp_path: Path) -> None:
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "again").symlink_to(tmp_path / "loop")
    with pytest.raises(ToolError, match="no picture is there"):
        find_pictures([tmp_path / "loop"])
    some(tmp_path / "loop", 1)
    assert len(find_pictures([tmp_path / "loop"])) == 1
