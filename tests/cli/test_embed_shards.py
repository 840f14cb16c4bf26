"""`embed --shard` on several machines and `--merge` on one: the file that one machine would have written."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from backbones.conftest import TINY
from backbones.photos import folder, photo
from cli.conftest import Shell
from labelsieve.errors import ToolError
from labelsieve.nets.zoo import timm_library

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def timm() -> ModuleType:
    try:
        return timm_library()
    except ToolError as error:
        pytest.skip(f"the extra zoo is not installed: {error}")


def weights_at(path: Path, timm: ModuleType, seed: int) -> Path:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        torch.save(timm.create_model(TINY).state_dict(), path)
    return path


@pytest.fixture(scope="module")
def known(timm: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    path = weights_at(tmp_path_factory.mktemp("weights") / "tiny.pth", timm, 0)
    return "--backbone", TINY, "--weights", str(path), "--size", "32", "--device", "cpu"


def data_at(root: Path) -> Path:
    """Twenty photos of two classes, two of which cannot be read."""
    folder(root / "train")
    for name in ("cat/003.png", "dog/009.png"):
        (root / "train" / name).write_bytes(b"no picture")
    return root / "train"


def same(one: Path, other: Path) -> None:
    mine, theirs = np.load(one), np.load(other)
    assert set(mine.files) == set(theirs.files)
    for name in mine.files:
        assert mine[name].dtype == theirs[name].dtype and np.array_equal(mine[name], theirs[name]), name


@pytest.mark.parametrize("count", [3, 22])
def test_parts_join_to_what_one_machine_writes(
    shell: Shell, known: tuple[str, ...], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there are more parts than pictures, and some parts are empty. Each machine has a cache of its own."""
    root, parts = data_at(tmp_path / "data"), tmp_path / "parts"
    parts.mkdir()
    assert shell("embed", root, *known, "--out", tmp_path / "whole.npz").code == 0
    for number in range(1, count + 1):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache{number}"))
        made = shell("embed", root, *known, "--shard", f"{number}/{count}", "--out", parts / f"{number}.npz")
        assert made.code == 0 and f"part {number} of {count}" in made.out, made.err
    found = shell("embed", root, *known, "--merge", parts, "--out", tmp_path / "merged.npz")
    assert found.code == 0 and "left out: " in found.out and "18 pictures with" in found.out, found.err
    same(tmp_path / "whole.npz", tmp_path / "merged.npz")


def test_arrays_with_a_test_set_join_too(shell: Shell, known: tuple[str, ...], tmp_path: Path) -> None:
    pixels = np.stack([np.asarray(photo(1000 * label + k)) for label in range(2) for k in range(10)])
    np.savez(tmp_path / "a.npz", images=pixels, labels=np.repeat([0, 1], 10), x_test=pixels[:4], y_test=np.array([0, 0, 0, 1]))
    (tmp_path / "parts").mkdir()
    assert shell("embed", tmp_path / "a.npz", *known, "--out", tmp_path / "whole.npz").code == 0
    for number in (1, 2):
        out = tmp_path / "parts" / f"{number}.npz"
        assert shell("embed", tmp_path / "a.npz", *known, "--shard", f"{number}/2", "--out", out).code == 0
    assert shell("embed", tmp_path / "a.npz", *known, "--merge", tmp_path / "parts", "--out", tmp_path / "m.npz").code == 0
    same(tmp_path / "whole.npz", tmp_path / "m.npz")


def test_parts_that_do_not_belong_together_are_refused(
    shell: Shell, known: tuple[str, ...], timm: ModuleType, tmp_path: Path
) -> None:
    root, parts, out = folder(tmp_path / "data"), tmp_path / "parts", ("--out", tmp_path / "m.npz")
    parts.mkdir()

    def merged() -> str:
        found = shell("embed", root, *known, "--merge", parts, *out)
        assert found.code in (1, 2) and not (tmp_path / "m.npz").exists()
        return found.err

    def part(words: str, *more: object, place: Path = root, by: tuple[str, ...] = known, name: str = "") -> None:
        (parts / f"{name or words[0]}.npz").unlink(missing_ok=True)
        made = shell("embed", place, *by, "--shard", words, *more, "--out", parts / f"{name or words[0]}.npz")
        assert made.code == 0, made.err

    assert "there are no parts in it" in merged()
    part("1/3")
    assert "of 3 parts 2 are missing: 2, 3; write them with --shard 2/3" in merged()
    part("2/3")
    part("3/3")
    part("3/3", name="again")
    assert "part 3 is in 3.npz, too" in merged() or "part 3 is in again.npz, too" in merged()
    (parts / "again.npz").unlink()
    part("3/3", "--limit", "12")
    assert "part 3 is of other data" in merged()
    part("3/4", name="3")
    assert "one of 4 parts" in merged() or "one of 3 parts" in merged()
    other = (*known[:2], "--weights", str(weights_at(tmp_path / "other.pth", timm, 1)), *known[4:])
    part("3/3", by=other)
    assert "with other weights" in merged()
    (parts / "3.npz").write_bytes(b"PK nonsense")
    assert "3.npz" in merged()
    np.savez(parts / "3.npz", features=np.zeros((4, 3)), labels=[0, 0, 1, 1])
    assert "it is no part of `labelsieve embed --shard`" in merged()
    for words, said in (("0/3", "numbered from 1 to 3"), ("4/3", "numbered from 1 to 3"), ("x", "such as 1/8")):
        assert said in shell("embed", root, *known, "--shard", words, *out).err
    assert "give one of the two" in shell("embed", root, *known, "--shard", "1/3", "--merge", parts, *out).err
