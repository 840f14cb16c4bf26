"""Tables that hold only what is measured on, and settings that say that a table has no such column."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cli.conftest import Shell
from cli.own import QUICK, broken, folder


def vectors(path: Path, splits: list[str] | None, count: int = 60, **more: list[str]) -> Path:
    rng, labels = np.random.default_rng(0), np.arange(count) % 3
    values = 5 * np.eye(3, 6)[labels] + rng.normal(size=(count, 6))
    columns = {"embedding": values.tolist(), "label": [f"c{k}" for k in labels], **more}
    pq.write_table(pa.table(columns | ({} if splits is None else {"split": splits})), path)
    return path


def test_vectors_of_the_test_split_alone_are_measured_on(tmp_path: Path, shell: Shell) -> None:
    data = vectors(tmp_path / "data.parquet", ["train"] * 45 + ["test"] * 15)
    assert shell("train", data, "--out", tmp_path / "run", *QUICK).code == 0
    for name, splits, split in (("t", ["test"] * 9, "test"), ("v", ["val"] * 9, "val"), ("n", None, "all")):
        answer = shell("evaluate", tmp_path / "run", vectors(tmp_path / f"{name}.parquet", splits, 9), "--json")
        assert answer.code == 0, answer.err
        assert (json.loads(answer.out)["split"], json.loads(answer.out)["pictures"]) == (split, 9)
    one = shell("evaluate", tmp_path / "run", vectors(tmp_path / "one.parquet", ["test"], 1), "--json")
    assert one.code == 0 and json.loads(one.out)["pictures"] == 1
    held = tmp_path / "t.parquet"
    assert shell("train", data, "--val", held, "--out", tmp_path / "run2", *QUICK).code == 0
    refused = shell("train", held, "--out", tmp_path / "run3", *QUICK)
    assert refused.code != 0 and "no row is in the training split" in refused.err
    assert shell("train", held, "--out", tmp_path / "run3", *QUICK, "--set", "pictures.split_column=").code == 0


def test_pictures_of_the_test_split_alone_are_measured_on(tmp_path: Path, shell: Shell) -> None:
    root = folder(tmp_path / "data")
    rows = [(path.relative_to(root).as_posix(), path.parent.name) for path in sorted(root.rglob("*.png"))]
    (root / "all.csv").write_text("path,label\n" + "".join(f"{path},{label}\n" for path, label in rows))
    (root / "test.csv").write_text("path,label,split\n" + "".join(f"{path},{label},test\n" for path, label in rows[::4]))
    assert shell("train", root / "all.csv", "--out", tmp_path / "run", *QUICK).code == 0
    answer = shell("evaluate", tmp_path / "run", root / "test.csv", "--json")
    assert answer.code == 0 and json.loads(answer.out)["split"] == "test" and json.loads(answer.out)["pictures"] == 15


def test_a_run_is_measured_again_on_what_it_was_measured_on(tmp_path: Path, shell: Shell) -> None:
    """Test pictures of a class without training pictures are passed over then as they were in training, not an error."""
    root = tmp_path / "data"
    folder(root / "train")
    folder(root / "test", ("cat", "dog", "cow", "emu"), each=4, first=50)
    trained = shell("train", root, "--out", tmp_path / "run", *QUICK)
    assert trained.code == 0 and "4 test pictures are of classes without training pictures" in trained.out
    last = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()][-2]
    for data in ((), (root,)):
        answer = shell("evaluate", tmp_path / "run", *data, "--json")
        assert answer.code == 0, answer.err
        found = json.loads(answer.out)
        assert (found["pictures"], found["split"], found["accuracy"]["both"]) == (12, "test", last["accuracy"]["both"])
    assert "note: 4 test pictures are of classes without" in shell("evaluate", tmp_path / "run").out
    alone = shell("evaluate", tmp_path / "run", root / "test")
    assert alone.code == 1 and 'class "emu" is not one of the 3' in alone.err and "leave it out" in alone.err


def test_only_pictures_that_would_be_measured_on_count_as_left_out(tmp_path: Path, shell: Shell) -> None:
    """Of 12 test pictures none was left out, and it was said that two could not be read: training pictures."""
    root = tmp_path / "data"
    folder(root / "train")
    folder(root / "test", each=4, first=50)
    broken(root / "train" / "cat" / "cut.png")
    (root / "train" / "dog" / "empty.png").write_bytes(b"")
    trained = shell("train", root, "--out", tmp_path / "run", *QUICK)
    assert trained.code == 0 and "left out: 2 pictures" in trained.out + trained.err
    assert json.loads(shell("evaluate", tmp_path / "run", "--json").out)["left_out"] == 0
    assert "left out" not in shell("evaluate", tmp_path / "run", root).out
    broken(root / "test" / "cat" / "cut.png")
    (root / "test" / "dog" / "empty.png").write_bytes(b"")
    assert json.loads(shell("evaluate", tmp_path / "run", root, "--json").out)["left_out"] == 2
    assert json.loads(shell("evaluate", tmp_path / "run", root / "train", "--json").out)["left_out"] == 2


def test_measuring_on_the_training_split_of_the_data_is_said(tmp_path: Path, shell: Shell) -> None:
    root = tmp_path / "data"
    folder(root / "train")
    folder(root / "test", each=4, first=50)
    assert shell("train", root, "--out", tmp_path / "run", *QUICK).code == 0
    assert "trained on these very pictures" in shell("evaluate", tmp_path / "run", root / "train").out
    for other in (root, root / "test", folder(tmp_path / "train", each=2)):
        answer = shell("evaluate", tmp_path / "run", other)
        assert answer.code == 0 and "trained on these" not in answer.out, other
    said = shell("train", root, "--out", tmp_path / "next", *QUICK, "--val", root / "train")
    assert said.code == 0 and "--val names the training pictures themselves" in said.out + said.err


def test_an_empty_id_column_is_none_and_stays_so_in_the_run(tmp_path: Path, shell: Shell) -> None:
    data = vectors(tmp_path / "v.parquet", None, id=["same"] * 60)
    assert shell("train", data, "--out", tmp_path / "run", *QUICK).code != 0
    answer = shell("train", data, "--out", tmp_path / "run", *QUICK, "--id-column", "")
    assert answer.code == 0, answer.err
    assert "id_column: ''" in (tmp_path / "run" / "config.yaml").read_text()
    assert "\n00007," in (tmp_path / "run" / "issues.csv").read_text()


def test_what_is_wrong_with_val_is_told_before_pictures_are_decoded(tmp_path: Path, shell: Shell) -> None:
    root, cache = folder(tmp_path / "data"), tmp_path / "cache"
    (root.parent / "short.csv").write_text("path,size\ndata/cat/0.png,3\n")
    (root.parent / "other.csv").write_text("path,label\ndata/cat/0.png,cta\n")
    vectors(tmp_path / "v.parquet", None, 9)
    np.savez(tmp_path / "x.npz", images=np.zeros((4, 12, 12), np.uint8), labels=["cat", "dog", "cat", "emu"])
    said = {
        "short.csv": "say which one holds the labels",
        "other.csv": 'the class "cta" is not one of the 3',
        "v.parquet": "the model is trained on pictures",
        "x.npz": 'the class "emu" is not one of the 3',
    }
    for name, words in said.items():
        answer = shell("train", root, "--val", tmp_path / name, "--out", tmp_path / "run", "--cache-dir", cache, *QUICK)
        assert answer.code != 0 and words in answer.err, answer
        assert not list(cache.glob("*/pixels.npy")) and not (tmp_path / "run").exists()
