"""Data as they are named in Python are found by the rule of the command line: a known name, or a path that is looked at."""

from pathlib import Path

import numpy as np
import pytest

from cli.own import folder
from labelsieve.cli.train import config_for
from labelsieve.config.resolve import resolve, resolve_next
from labelsieve.errors import UsageError


def test_a_plain_path_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = folder(tmp_path / "mine", each=2)
    np.savez(tmp_path / "a.npz", images=np.zeros((4, 8, 8), np.uint8), labels=np.array([0, 1, 0, 1]))
    np.savez(tmp_path / "v.npz", features=np.zeros((4, 8), np.float32), labels=np.array([0, 1, 0, 1]))
    monkeypatch.chdir(tmp_path)
    assert resolve("mine") == resolve(pictures) == resolve(f"pictures:{pictures}") == resolve("pictures:mine")
    assert resolve("a.npz").data.source == f"arrays:{tmp_path / 'a.npz'}"
    assert resolve("v.npz").data.source == f"embeddings:{tmp_path / 'v.npz'}"
    assert resolve_next(resolve("digits"), "mine").data.source == f"pictures:{pictures}"
    assert config_for("mine", None, None, {}, []) == resolve("mine")


def test_what_is_neither_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='did you mean "digits"'):
        resolve("digit")
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / "config.yaml").write_text("")
    with pytest.raises(UsageError, match="this is a run folder, not data"):
        resolve(tmp_path / "run")


def test_a_table_is_looked_at_with_what_was_said_of_it(tmp_path: Path) -> None:
    folder(tmp_path / "mine", each=2)
    table = tmp_path / "mine" / "t.csv"
    table.write_text("bild,art\ncat/0.png,cat\ndog/0.png,dog\n")
    told = {"pictures.image_column": "bild", "pictures.label_column": "art"}
    assert resolve(str(table), options=told).data.source == f"pictures:{table}"


@pytest.mark.parametrize("source", ["digits", "cifar10:/data", "arrays:/data.npz"])
@pytest.mark.parametrize("setting", ["pictures.size=16", "pictures.classes=a,b"])
def test_what_only_files_of_pictures_heed_is_refused_elsewhere(source: str, setting: str) -> None:
    key = setting.partition("=")[0]
    with pytest.raises(UsageError, match=f"{key} is for pictures in files, and {source} has its own"):
        resolve(source, settings=[setting])
    assert resolve(source, settings=[f"{key}=none"]).data.source == source
    resolve("pictures:/data", settings=[setting])


def test_a_size_of_vectors_and_a_second_test_set_of_other_data_than_webvision_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"pictures.size is for pictures, and embeddings:/v.npz has vectors.*leave it out"):
        resolve("embeddings:/v.npz", options={"pictures.size": 32})
    for source in ("pictures:/data", "digits"):
        with pytest.raises(UsageError, match=f"second_test is for webvision, and {source} is not that.*evaluate RUN DATA"):
            resolve(source, options={"pictures.second_test": tmp_path})
        assert resolve(source, settings=["pictures.second_test=none"]).pictures.second_test is None
    assert resolve("webvision:/data", options={"pictures.second_test": tmp_path}).pictures.second_test == str(tmp_path)
    assert resolve("embeddings:/v.npz", options={"pictures.size": None}).pictures.size is None
