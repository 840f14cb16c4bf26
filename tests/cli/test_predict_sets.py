"""`predict` on what `train` reads: Parquet files with pictures in them, tables, saved data sets and arrays, labelled or not."""

import csv
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.conftest import Shell
from cli.own import QUICK, folder, striped
from labelsieve.cli.main import main
from labelsieve.data.pictures import pool
from labelsieve.data.pictures.unlabelled import is_set

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
CELL = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on picture files that every test here asks."""
    root = tmp_path_factory.mktemp("home")
    words = ["train", folder(root / "mine"), "--out", root / "run", *QUICK, "--size", 12, "--cache-dir", root / "cache"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["labelsieve", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
    assert not end.value.code
    return root


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "FEW", 10**6)  # decoded in this process: starting others takes longer


def png(number: int) -> bytes:
    stream = io.BytesIO()
    striped(number, number % 3).save(stream, "PNG")
    return stream.getvalue()


def shard(file: Path, numbers: range, **more: Any) -> Path:
    """Without labels; the picture 7 is broken."""
    file.parent.mkdir(parents=True, exist_ok=True)
    cells = [{"bytes": png(k) if k != 7 else b"broken", "path": f"{k}.png"} for k in numbers]
    pa.parquet.write_table(pa.table({"image": pa.array(cells, CELL), **more}), file, row_group_size=3)
    return file


def said_of_files(shell: Shell, home: Path, tmp_path: Path, numbers: range) -> list[str]:
    """What the same pictures get as files."""
    for k in numbers:
        (tmp_path / "as files").mkdir(exist_ok=True)
        (tmp_path / "as files" / f"{k:03d}.png").write_bytes(png(k))
    answer = shell("predict", home / "run", tmp_path / "as files")
    return [row["probability"] for row in csv.DictReader(io.StringIO(answer.out))]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_parquet_file_without_labels(tmp_path: Path, shell: Shell, home: Path) -> None:
    answer = shell("predict", home / "run", shard(tmp_path / "new.parquet", range(10)))
    assert answer.code == 0, answer.err
    found = rows(answer.out)
    assert [row["id"] for row in found] == [f"{k:06d}" for k in range(10)]
    assert found[7]["error"] and not found[7]["label"] and "1 of 10 pictures could not be read" in answer.err
    as_files = said_of_files(shell, home, tmp_path, range(10))
    assert [row["probability"] for row in found if not row["error"]] == as_files[:7] + as_files[8:]


def test_a_folder_of_shards_by_split_with_a_split_that_train_does_not_know(tmp_path: Path, shell: Shell, home: Path) -> None:
    shard(tmp_path / "hub" / "data" / "train-00000-of-00002.parquet", range(2))
    shard(tmp_path / "hub" / "data" / "train-00001-of-00002.parquet", range(2, 4))
    shard(tmp_path / "hub" / "data" / "extra-00000-of-00001.parquet", range(4, 6))
    answer = shell("predict", home / "run", tmp_path / "hub", "--format", "jsonl")
    assert answer.code == 0, answer.err
    found = [json.loads(line) for line in answer.out.splitlines()]
    assert [one["id"] for one in found] == ["extra/000000", "extra/000001", *(f"train/{k:06d}" for k in range(4))]
    got = [f"{one['predictions'][0]['probability']:.6f}" for one in found]
    as_files = said_of_files(shell, home, tmp_path, range(6))
    assert got == as_files[4:] + as_files[:4]


def test_several_places_keep_their_rows_apart(tmp_path: Path, shell: Shell, home: Path) -> None:
    one = shard(tmp_path / "one.parquet", range(2), id=["a", "b"])
    two = shard(tmp_path / "two.parquet", range(2), id=["a", "b"])
    answer = shell("predict", home / "run", one, home / "mine" / "cat" / "0.png", two)
    assert answer.code == 0, answer.err
    ids = [row["id"] for row in rows(answer.out)]
    assert ids == [str(home / "mine" / "cat" / "0.png"), f"{one}:a", f"{one}:b", f"{two}:a", f"{two}:b"]


def test_a_table_of_paths_needs_no_labels(tmp_path: Path, shell: Shell, home: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text("picture,key\ncat/0.png,x\ndog/none.png,y\n")
    first = shell("predict", home / "run", table)
    assert first.code == 2 and "--image-column" in first.err and not first.out
    answer = shell("predict", home / "run", table, "--image-column", "picture", "--root", home / "mine")
    assert answer.code == 0, answer.err
    found = rows(answer.out)
    assert [row["id"] for row in found] == ["x", "y"] and found[0]["label"] and found[1]["error"] == "there is no such file"
    unused = shell("predict", home / "run", home / "mine", "--root", home)
    assert unused.code == 2 and "pictures.root" in unused.err


def test_a_saved_data_set(tmp_path: Path, shell: Shell, home: Path) -> None:
    saved = tmp_path / "saved"
    for name, numbers in (("train", range(2)), ("unlabelled", range(2, 4))):
        (saved / name).mkdir(parents=True)
        table = pa.table({"image": pa.array([{"bytes": png(k), "path": None} for k in numbers], CELL)})
        with pa.ipc.new_stream(str(saved / name / "data.arrow"), table.schema) as stream:
            stream.write_table(table)
        (saved / name / "dataset_info.json").write_text(json.dumps({"features": {"image": {"_type": "Image"}}}))
        (saved / name / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    (saved / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "unlabelled"]}))
    answer = shell("predict", home / "run", saved)
    assert answer.code == 0, answer.err
    found = rows(answer.out)
    assert [row["id"] for row in found] == ["train/000000", "train/000001", "unlabelled/000000", "unlabelled/000001"]
    assert [row["probability"] for row in found] == said_of_files(shell, home, tmp_path, range(4))


def test_arrays_of_pictures_must_have_the_models_shape(tmp_path: Path, shell: Shell, home: Path) -> None:
    pictures = np.stack([np.asarray(striped(k, k % 3)) for k in range(4)])
    np.savez(tmp_path / "new.npz", images=pictures, ids=np.array(list("abcd")))
    answer = shell("predict", home / "run", tmp_path / "new.npz")
    assert answer.code == 0, answer.err
    assert [row["id"] for row in rows(answer.out)] == list("abcd")
    assert [row["probability"] for row in rows(answer.out)] == said_of_files(shell, home, tmp_path, range(4))
    np.savez(tmp_path / "wide.npz", images=np.zeros((2, 16, 16), np.uint8))
    wide = shell("predict", home / "run", tmp_path / "wide.npz", "--out", tmp_path / "out.csv")
    assert wide.code == 1 and "(1, 16, 16)" in wide.err and "(1, 12, 12)" in wide.err and not (tmp_path / "out.csv").exists()
    np.savez(tmp_path / "few.npz", images=pictures, ids=np.array(["a"]))
    assert '1 ids for 4 samples of "images"' in shell("predict", home / "run", tmp_path / "few.npz").err


def test_arrays_of_every_split(tmp_path: Path, shell: Shell, home: Path) -> None:
    """As Keras and others write them: whoever asks most likely wants the test pictures."""
    pictures = np.stack([np.asarray(striped(k, k % 3)) for k in range(4)])
    np.savez(tmp_path / "both.npz", x_train=pictures[:2], y_train=[0, 1], x_test=pictures[2:], y_test=[2, 0])
    answer = shell("predict", home / "run", tmp_path / "both.npz")
    assert answer.code == 0, answer.err
    assert [row["id"] for row in rows(answer.out)] == ["00000", "00001", "test/00000", "test/00001"]
    assert [row["probability"] for row in rows(answer.out)] == said_of_files(shell, home, tmp_path, range(4))
    np.savez(tmp_path / "odd.npz", x_train=pictures[:2], x_test=np.zeros((2, 16, 16), np.uint8))
    odd = shell("predict", home / "run", tmp_path / "odd.npz")
    assert odd.code == 1 and '"x_test" is (1, 16, 16), of "x_train" (1, 12, 12)' in odd.err


def test_vectors_and_empty_files_are_no_pictures(tmp_path: Path, shell: Shell, home: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((2, 3)))
    vectors = shell("predict", home / "run", tmp_path / "v.npy")
    assert vectors.code == 2 and "looks at pictures" in vectors.err and not vectors.out
    empty = shell("predict", home / "run", shard(tmp_path / "empty.parquet", range(0)))
    assert empty.code == 1 and "it has no rows" in empty.err
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and then nothing")
    torn = shell("predict", home / "run", tmp_path / "torn.parquet")
    assert torn.code == 1 and "it is not a whole Parquet file" in torn.err
    gone = shell("predict", home / "run", tmp_path / "none.parquet")
    assert gone.code == 1 and "there is no such file" in gone.err


@pytest.fixture
def anyone() -> Iterator[None]:
    """Permissions hold for everybody but the super-user."""
    before = os.geteuid()
    os.seteuid(before or 65_534)
    yield
    os.seteuid(before)


def test_a_folder_that_may_not_be_looked_into_is_passed_over(anyone: None) -> None:
    with tempfile.TemporaryDirectory() as place:  # tmp_path may lie where only the super-user goes
        for locked in (Path(place) / "locked", Path(place) / "half" / "locked"):
            locked.mkdir(parents=True)
            locked.chmod(0)
        assert not is_set(Path(place) / "locked") and not is_set(Path(place) / "half")
        (Path(place) / "half" / "locked").chmod(0o700)
        (Path(place) / "locked").chmod(0o700)


@pytest.mark.parametrize("setting", ["pictures.size=20", "pictures.fit=pad", "pictures.workers=3", "pictures.label_column=y"])
def test_settings_that_would_do_nothing_are_refused(tmp_path: Path, shell: Shell, home: Path, setting: str) -> None:
    table = tmp_path / "t.csv"
    table.write_text("path\nmissing.png\n")
    answer = shell("predict", home / "run", table, "--set", setting)
    assert answer.code == 2 and setting.partition("=")[0] in answer.err and "image_column" in answer.err
