"""A folder of Parquet files as the Hub gives them, from `inspect` to `apply` and `export`."""

import io
import json
from pathlib import Path

import pytest

from cli.conftest import Shell
from cli.own import QUICK, striped
from labelsieve.corrected.apply import apply_run
from labelsieve.data.pictures import pool
from labelsieve.data.pictures.opening import open_pictures
from labelsieve.errors import UsageError
from labelsieve.issues.policy import Correction
from labelsieve.review.pictures import Pictures
from labelsieve.review.table import read_table
from labelsieve.runs.folder import RunFolder

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")


def shard(file: Path, first: int, count: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pictures = []
    for row in range(first, first + count):
        stream = io.BytesIO()
        striped(row, row % 3).save(stream, "PNG")
        pictures.append({"bytes": stream.getvalue() if row != 7 else b"broken", "path": f"{row}.png"})
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({"image": pa.array(pictures, kind), "label": [row % 3 for row in range(first, first + count)]})
    names = {"names": ["cat", "dog", "cow"], "_type": "ClassLabel"}
    said = {"info": {"features": {"image": {"_type": "Image"}, "label": names}}}
    pa.parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(said)}), file, row_group_size=10)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hub")
    shard(root / "data" / "train-00000-of-00002.parquet", 0, 30)
    shard(root / "data" / "train-00001-of-00002.parquet", 30, 30)
    shard(root / "data" / "test-00000-of-00001.parquet", 60, 12)
    return root


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(pool, "FEW", 10**6)  # decoded in this process: starting others takes longer


def test_from_inspect_to_apply(hub: Path, tmp_path: Path, shell: Shell) -> None:
    def cli(*words: object) -> str:
        found = shell(*words)
        assert found.code == 0, found
        return found.out + found.err

    assert "3 Parquet files with pictures in them" in cli("inspect", hub)
    run = tmp_path / "run"
    said = cli("train", hub, "--out", run, *QUICK)
    assert "parquet pictures" in said and "train/000007" in (run / "left_out.csv").read_text()
    assert '"pictures": 12' in cli("evaluate", run, "--json", "--device", "cpu")
    for file in hub.rglob("*-00000-of-*.parquet"):  # one is of the training split
        assert ("trained on these very" in cli("evaluate", run, file)) == file.name.startswith("train")
    cli("report", run)
    cli("export", run, "--to", "huggingface", "--out", tmp_path / "exported")
    table = read_table(run)
    shown = Pictures(RunFolder.open(run).read_config(), table)
    shown.open()
    assert shown.encoded("train/000041", "small")[0]
    before = {file: file.read_bytes() for file in hub.rglob("*.parquet")}
    decisions = {"train/000001": Correction("relabel", "cat", "seen"), "train/000031": Correction("drop", None, "seen")}
    done = apply_run(run, tmp_path / "new", decisions)
    assert {file: file.read_bytes() for file in hub.rglob("*.parquet")} == before and done.left == 71
    again = open_pictures(tmp_path / "new").collection
    assert again.train.labels[1] == 0 and "train/000031" not in again.train.ids and len(again.train) == 58
    assert again.train.ids[-1] == "train/000059" and again.train.classes == ("cat", "dog", "cow")
    assert again.test is not None and len(again.test.labels) == 12
    listed = apply_run(run, tmp_path / "labels" / "labels.csv", decisions)
    assert listed.left == 58 and listed.notes[0].startswith("13 pictures are not in it, for the run did not judge them")
    with pytest.raises(UsageError, match=r"is a folder of Parquet files; name a folder"):
        apply_run(run, tmp_path / "x.parquet", decisions)
