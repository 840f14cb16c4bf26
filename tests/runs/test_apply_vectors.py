"""Corrected vectors: rows are found by the ids that the run had, and what is written can be trained on again."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelsieve.data.embeddings import read_embeddings
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.issues.policy import Decision, Policy
from labelsieve.runs.apply import apply_run
from labelsieve.runs.config import PicturesConfig
from runs.made_runs import made_run

VECTORS = np.random.default_rng(0).normal(size=(6, 4))
LABELS = ["b", "a", "b", "a", "b", "a"]
NUMBERS = [f"{row:05d}" for row in range(6)]
DECIDED = {"00001": Decision("relabel", "b"), "00004": Decision("drop", None)}


@pytest.mark.parametrize("more", [{}, {"path": [f"p/{k}.png" for k in range(6)]}, {"image": [f"{k}" for k in range(6)]}])
def test_parquet_rows_go_by_number_whatever_the_columns_are_called(more: dict[str, Any], tmp_path: Path) -> None:
    source = tmp_path / "v.parquet"
    pq.write_table(pa.table({"emb": VECTORS.tolist(), "label": LABELS} | more), source)
    assert read_embeddings(source, PictureOptions(image_column="emb")).collection.train.ids == tuple(NUMBERS)
    made_run(tmp_path / "run", f"embeddings:{source}", NUMBERS, LABELS, {}, pictures=PicturesConfig(image_column="emb"))
    done = apply_run(tmp_path / "run", tmp_path / "new.parquet", Policy(), DECIDED)
    found = pq.read_table(tmp_path / "new.parquet")
    assert done.left == 5 and found["label"].to_pylist() == ["b", "b", "b", "a", "a"]
    assert found.column_names == ["emb", "label", *more]
