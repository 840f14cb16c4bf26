"""Decisions on rows of every kind of data: each row keeps its own picture, path and truth, whatever was dropped before it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from data.pictures.made import class_folders
from labelsieve.config.schema import Config, override
from labelsieve.decisions.decision import LABELLING, Decision
from labelsieve.runs.rounds import Carried, Round
from labelsieve.runs.rows import Rows, rows_for
from runs.tiny import arrays_file

pytestmark = pytest.mark.usefixtures("own_cache")

CLASSES = ("ant", "bee", "cat", "dog")


def tree(root: Path) -> str:
    return f"pictures:{class_folders(root / 'source', CLASSES)}"


def manifest(root: Path) -> str:
    top = class_folders(root / "source", CLASSES)
    lines = [f"row{n},{path.relative_to(top)},{path.parent.name}" for n, path in enumerate(sorted(top.rglob("*.png")))]
    (top / "list.csv").write_text("\n".join(["id,path,label", *lines]) + "\n")
    return f"pictures:{top / 'list.csv'}"


def arrays(root: Path) -> str:
    return arrays_file(root / "stripes.npz", true_labels=np.arange(48) % 3)


def vectors(root: Path) -> str:
    rng = np.random.default_rng(0)
    np.savez(root / "vectors.npz", features=rng.normal(size=(40, 5)).astype(np.float32), labels=np.arange(40) % 4)
    return f"embeddings:{root / 'vectors.npz'}"


def digits(root: Path) -> str:
    return "digits"


KINDS: dict[str, tuple[Callable[[Path], str], dict[str, Any]]] = {
    "tree": (tree, {}),
    "manifest": (manifest, {}),
    "arrays": (arrays, {}),
    "vectors": (vectors, {}),
    "digits": (digits, {"data.noise": "pair:0.4", "data.limit": 60}),
    "trusted": (arrays, {"data.noise": "sym:0.5"}),
}


def decided(root: Path, config: Config, answers: dict[str, tuple[str, str | None]]) -> Rows:
    """The rows of a second round with these answers."""
    told = [
        Carried(Decision(name, name, action, label if action in LABELLING else None, "ada", ""), 1, "")
        for name, (action, label) in answers.items()
    ]
    (root / "round.json").write_text(Round(2, "first", (), tuple(told)).text())
    return rows_for(override(config, {"data.decisions": str(root / "round.json")}))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_stay_whole(tmp_path: Path, kind: str) -> None:
    make, settings = KINDS[kind]
    config = override(Config(), {"data.source": make(tmp_path), "device": "cpu", "pictures.workers": 1} | settings)
    if kind == "trusted":
        (tmp_path / "ids.txt").write_text("00000\n00001\n00002\n")
        config = override(config, {"data.trusted": str(tmp_path / "ids.txt")})
    before = rows_for(config)
    ids, last = before.data.ids, before.data.classes[-1]
    answers = {ids[0]: ("drop", None), ids[2]: ("relabel", last), ids[5]: ("drop", None), ids[-1]: ("keep", last)}
    after = decided(tmp_path, config, answers | {ids[1]: ("unsure", None), ids[3]: ("accept", last)})
    kept = [n for n in range(len(ids)) if n not in (0, 5)]
    index = torch.tensor(kept)
    assert after.data.ids == tuple(ids[n] for n in kept) and torch.equal(after.data.images, before.data.images[index])
    wanted = before.data.labels.clone()
    wanted[[2, 3, len(ids) - 1]] = len(before.data.classes) - 1
    assert torch.equal(after.data.labels, wanted[index])
    assert after.pinned is not None and after.decided is not None
    assert {after.data.ids[n] for n in torch.nonzero(after.pinned).flatten().tolist()} == {ids[2], ids[3], ids[-1]}
    assert [action for action in after.decided if action] == ["unsure", "relabel", "accept", "keep"]
    if before.truth is not None:
        assert after.truth is not None and torch.equal(after.truth.labels, before.truth.labels[index])
    if before.collection.paths is not None:
        assert after.collection.paths == tuple(before.collection.paths[n] for n in kept)
    if before.noise is not None:
        assert after.noise is not None and torch.equal(
            after.noise.flipped, after.data.labels != before.collection.train.labels[index]
        )


def test_decisions_on_samples_outside_a_limit_are_passed_over_with_a_word(tmp_path: Path) -> None:
    config = override(Config(), {"data.source": arrays(tmp_path), "data.limit": 12})
    inside = rows_for(config).data.ids
    outside = next(f"{n:05d}" for n in range(48) if f"{n:05d}" not in inside)
    rows = decided(tmp_path, config, {inside[0]: ("keep", "0"), outside: ("keep", "0")})
    assert len(rows.data) == 12 and f"such as {outside}" in rows.notes[-1]
