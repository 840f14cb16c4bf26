"""Options about tables are refused for data that have none; where a table is read, or may be, they are heeded."""

from pathlib import Path

import numpy as np
import pytest

from labelsieve.config.resolve import resolve, resolve_next
from labelsieve.errors import UsageError

SAID = ("image_column=x", "label_column=x", "id_column=x", "split_column=x", "encoding=cp1252", "root=/tmp", "labels_file=/x.npy")


@pytest.mark.parametrize("setting", SAID)
@pytest.mark.parametrize("source", ["digits", "cifar10:/data", "arrays:/data.npz", "webvision:/data", "embeddings:/v.npz"])
def test_what_is_said_of_a_table_is_refused_where_there_is_none(source: str, setting: str) -> None:
    key = setting.partition("=")[0]
    with pytest.raises(UsageError, match=rf"{key} \(--.* is for .*, and {source} is none: .*leave it out$"):
        resolve(source, settings=[f"pictures.{setting}"])
    assert resolve(source, settings=[f"pictures.{key}=none"]).data.source == source


def test_pictures_in_files_may_have_a_table_and_held_out_ones_may_where_the_data_are_none(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("bild,art\ncat/0.png,cat\ndog/0.png,dog\n")
    told = {"pictures.image_column": "bild", "pictures.label_column": "art", "pictures.root": tmp_path}
    assert resolve(table, options=told).pictures.label_column == "art"
    assert resolve("digits", options={**told, "pictures.val": table}).pictures.val == str(table)


def test_a_next_round_refuses_them_and_keeps_what_the_run_had(tmp_path: Path) -> None:
    base = resolve("digits")
    with pytest.raises(UsageError, match=r"encoding \(--encoding\) is for a table, and digits is none"):
        resolve_next(base, options={"pictures.encoding": "cp1252"})
    np.save(tmp_path / "v.npy", np.zeros((2, 3), np.float32))
    vectors = resolve(tmp_path / "v.npy", options={"pictures.labels_file": tmp_path / "l.npy"})
    assert resolve_next(vectors).pictures.labels_file == str(tmp_path / "l.npy")
