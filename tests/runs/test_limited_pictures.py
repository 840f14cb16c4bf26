"""A limit on one's own pictures: chosen from the listing, before any picture is opened; and ids that are not trained on."""

from pathlib import Path

import pytest

from cli.own import folder
from labelsieve.config.schema import Config, override
from labelsieve.data.pictures import pool
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.sources import limited, open_own
from labelsieve.errors import ToolError, UsageError
from labelsieve.runs.rows import open_rows


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(pool, "FEW", 10**6)
    for split, each, first in (("train", 20, 0), ("test", 3, 100), ("val", 2, 200)):
        folder(tmp_path / "set" / split, each=each, first=first)
    return f"pictures:{tmp_path / 'set'}"


def test_a_limit_chooses_the_rows_it_always_did_and_opens_no_others(tmp_path: Path, source: str) -> None:
    looked: list[int] = []
    options = PictureOptions(cache_dir=tmp_path / "cache")
    opened = open_own(source, options, lambda what, done, count: looked.append(count), limit=12)
    assert max(looked) == 12 + 9 + 6
    whole = open_own(source, options).collection
    assert opened.collection.train.ids == limited(whole, 12).train.ids
    assert opened.collection.test is not None and len(opened.collection.test.labels) == 9
    assert opened.paths == opened.collection.paths and len(opened.undrawn) == 60 - 12
    with pytest.raises(UsageError, match="cannot hold 3 classes"):
        open_own(source, options, limit=2)


@pytest.mark.parametrize(("name", "said"), [("test/cat/100.png", "the test split"), ("./val/dog/201.png", "the val split")])
def test_a_trusted_id_of_another_split_is_said_to_be_there(tmp_path: Path, source: str, name: str, said: str) -> None:
    (tmp_path / "sure.txt").write_text(f"train/cat/1.png\n{name}\n")
    settings = {"data.source": source, "data.trusted": str(tmp_path / "sure.txt"), "pictures.cache_dir": str(tmp_path / "cache")}
    with pytest.raises(ToolError, match=f"belongs to {said}, which is not trained on; .*remove it"):
        open_rows(override(Config(), settings))


def test_a_trusted_id_that_was_not_drawn_is_no_error(tmp_path: Path, source: str) -> None:
    (tmp_path / "sure.txt").write_text("".join(f"train/cat/{k}.png\n" for k in range(20)))
    settings = {"data.source": source, "data.trusted": str(tmp_path / "sure.txt"), "pictures.cache_dir": str(tmp_path / "cache")}
    found = open_rows(override(Config(), settings | {"data.limit": 12}))
    assert found.pinned is not None and int(found.pinned.sum()) == 4 == int((found.collection.train.labels == 0).sum())


def test_measuring_on_the_training_pictures_is_said(tmp_path: Path, source: str) -> None:
    place = tmp_path / "set" / "train"
    settings = {"data.source": f"pictures:{place}", "pictures.cache_dir": str(tmp_path / "cache"), "pictures.val": str(place)}
    assert any("--val names the training pictures" in note for note in open_rows(override(Config(), settings)).notes)
    apart = settings | {"pictures.val": str(tmp_path / "set" / "test")}
    assert not any("--val" in note for note in open_rows(override(Config(), apart)).notes)
