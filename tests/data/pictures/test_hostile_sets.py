"""Data sets that strangers made to do harm: Arrow files that lie, splits that lead elsewhere, modules among the pictures."""

import io
import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from labelsieve.data.pictures import cache
from labelsieve.data.pictures.fetch import fetch
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.pool import Child
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.data.pictures.stored import unlabelled_stored
from labelsieve.errors import ToolError

pa = pytest.importorskip("pyarrow")
COUNT = 12


def png(value: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((12, 12), value, np.uint8)).save(buffer, "png")
    return buffer.getvalue()


def saved(folder: Path) -> Path:
    """As `datasets` writes one; the label column's offsets are 0, 3, 6, ..."""
    table = pa.table(
        {
            "image": [{"bytes": png(k), "path": None} for k in range(COUNT)],
            "label": ["cat" if k % 2 else "dog" for k in range(COUNT)],
        }
    )
    folder.mkdir()
    with pa.OSFile(str(folder / "data.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    features = {"image": {"_type": "Image"}, "label": {"_type": "Value", "dtype": "string"}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    return folder


def read_all(folder: Path) -> None:
    listing = list_pictures(recognise(folder, PictureOptions()), PictureOptions())
    for row in range(len(listing)):
        fetch(listing.origin.reference(row)).close()


LABELS = np.arange(0, 3 * (COUNT + 1), 3).astype("<i4").tobytes()
PICTURES = np.cumsum([0, *(len(png(k)) for k in range(COUNT))]).astype("<i4").tobytes()


@pytest.mark.parametrize("offsets", [LABELS, PICTURES])
@pytest.mark.parametrize(("slot", "value"), [(COUNT, 2**30), (5, -100_000), (5, 2**24)])
def test_values_beyond_an_arrow_file_are_refused_unread(tmp_path: Path, offsets: bytes, slot: int, value: int) -> None:
    """Unchecked, the process reads whatever lies there in memory, or is killed for it."""
    folder = saved(tmp_path / "set")
    read_all(folder)
    content = bytearray((folder / "data.arrow").read_bytes())
    place = content.find(offsets) + 4 * slot
    assert place > 4 * slot
    content[place : place + 4] = struct.pack("<i", value)
    (folder / "bad.arrow").write_bytes(content)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "bad.arrow"}]}))
    with pytest.raises(ToolError, match="not a whole Arrow file"):
        read_all(folder)


@pytest.mark.parametrize("split", ["../private", "..", "/etc", ""])
def test_a_split_is_a_folder_of_the_set(tmp_path: Path, split: str) -> None:
    saved(tmp_path / "private")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "dataset_dict.json").write_text(json.dumps({"splits": [split]}))
    with pytest.raises(ToolError, match="is no folder in it"):
        unlabelled_stored(tmp_path / "set", PictureOptions())


@pytest.mark.parametrize("name", ["dataset_dict.json", "dataset_info.json"])
def test_facts_nested_without_end_are_an_error_in_words(tmp_path: Path, name: str) -> None:
    folder = saved(tmp_path / "set")
    (folder / name).write_text("[" * 100_000)
    with pytest.raises(ToolError, match=name):
        read_all(folder)


def test_a_line_nested_without_end_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(ToolError, match="line 1 is not JSON"):
        read_all(tmp_path / "t.jsonl")


def test_a_schema_nested_without_end_is_passed_over(tmp_path: Path) -> None:
    table = pa.table({"image": [png(k) for k in range(COUNT)], "label": ["cat", "dog"] * (COUNT // 2)})
    hostile = table.replace_schema_metadata({b"huggingface": b"[" * 100_000})
    pa.parquet.write_table(hostile, tmp_path / "set.parquet")
    read_all(tmp_path / "set.parquet")


@pytest.mark.parametrize("module", ["json", "struct", "labelsieve"])
def test_decoding_processes_import_nothing_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """`cd stranger; labelsieve inspect .`: a json.py among the pictures would be run."""
    (tmp_path / f"{module}.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'hit')!r}).touch()\n")
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    monkeypatch.chdir(tmp_path)
    child = Child()
    try:
        task = {"do": "survey", "references": [["file", str(tmp_path), "a.png", False]], "first": 0, "verify": False}
        assert child.carefully(task)[0]["width"] == 8
    finally:
        child.end()
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("name", ["lock", "done.jsonl", "pixels.npy", "pixels.draft"])
def test_a_cache_with_links_is_not_written(tmp_path: Path, name: str) -> None:
    """A configuration may name a cache that came along with it."""
    (tmp_path / "precious").write_text("words")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / name).symlink_to(tmp_path / "precious")
    with pytest.raises(ToolError, match="a link, which no cache has"), cache.locked(tmp_path / "cache"):
        pass
    assert (tmp_path / "precious").read_text() == "words"


@pytest.mark.parametrize("name", ["lock", "done.jsonl", "pixels.npy"])
def test_a_cache_with_pipes_is_not_waited_for(tmp_path: Path, name: str) -> None:
    (tmp_path / "cache").mkdir()
    os.mkfifo(tmp_path / "cache" / name)
    with pytest.raises(ToolError, match="a pipe or a device, which no cache has"), cache.locked(tmp_path / "cache"):
        pass


def test_the_users_own_cache_is_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoded pictures may be of files that others may not read. A cache that was named may be shared."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    cache.make_folder(cache.default_cache_dir() / "abc")
    assert (tmp_path / "home" / "labelsieve").stat().st_mode & 0o077 == 0
    cache.make_folder(tmp_path / "named" / "abc")
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "named").stat().st_mode == (tmp_path / "plain").stat().st_mode
