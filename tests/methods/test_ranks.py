"""Several processes train what one would: the same batches, weights and verdicts, for every method."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from at_work import tiny, trained
from torch import Tensor, nn

from labelsieve.engine.dist import ALONE, Ranks, normalise_together
from labelsieve.errors import UsageError
from labelsieve.methods.registry import METHODS

EVERY = sorted(METHODS)
HERE = Path(__file__).parent
PATHS = [HERE, HERE.parent / "engine", HERE.parents[1] / "src"]
ALIKE = 1e-4


def at_work(folder: Path, count: int, names: list[str], batchnorm: str = "whole") -> dict[str, list[dict[str, Tensor]]]:
    """What each of `count` ranks made of each method."""
    known = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, PATHS)), "OMP_NUM_THREADS": "1", "BATCHNORM": batchnorm}
    command = [sys.executable, "-W", "ignore", str(HERE / "at_work.py"), str(folder), *names]
    ranks = [subprocess.Popen(command, env=known | {"RANK": str(r), "WORLD_SIZE": str(count)}) for r in range(count)]
    try:
        assert [rank.wait() for rank in ranks] == [0] * count
    finally:
        for rank in ranks:
            rank.kill()
    return {name: [torch.load(folder / f"{name}.{r}.pt", weights_only=True) for r in range(count)] for name in names}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Tensor]]]:
    return at_work(tmp_path_factory.mktemp("two"), 2, EVERY)


def far(one: Tensor, other: Tensor) -> float:
    if not one.is_floating_point():
        return float((one != other).sum())
    return float((one - other).norm() / one.norm().clamp_min(1e-6))


def check_same(name: str, ranks: list[dict[str, Tensor]]) -> None:
    """All ranks have the very same; one process has it within rounding, after every epoch."""
    alone = trained(tiny(name))
    assert int(alone["steps"]) >= 20 and all(found.keys() == alone.keys() for found in ranks)
    assert all(torch.equal(found[key], value) for found in ranks[1:] for key, value in ranks[0].items())
    weights = [key for key in alone if ".momentum." not in key]  # of a bias before BatchNorm that is rounding alone
    assert {key: far(alone[key], ranks[0][key]) for key in weights if far(alone[key], ranks[0][key]) > ALIKE} == {}
    assert torch.allclose(ranks[0]["chance"], alone["chance"], atol=ALIKE)
    assert torch.allclose(ranks[0]["shares"], alone["shares"], atol=ALIKE)


@pytest.mark.parametrize("name", EVERY)
def test_two_ranks_come_to_what_one_does(name: str, two: dict[str, list[dict[str, Tensor]]]) -> None:
    check_same(name, two[name])


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 4])
def test_so_do_more_also_where_batches_have_no_equal_parts(count: int, tmp_path: Path) -> None:
    for name, ranks in at_work(tmp_path, count, EVERY).items():
        check_same(name, ranks)


@pytest.mark.slow
def test_by_rank_each_normalises_its_own_part_and_all_remember_the_same(tmp_path: Path) -> None:
    first, second = at_work(tmp_path, 2, ["ce"], "rank")["ce"]
    alone = trained(tiny("ce"))
    assert all(torch.equal(first[key], value) for key, value in second.items())
    key = (
        "4.0.network.convs.0.weight" if "4.0.network.convs.0.weight" in alone else next(k for k in alone if k.endswith("weight"))
    )
    assert 1e-4 < far(alone[key], first[key]) < 1


def test_one_alone_is_left_as_it_is() -> None:
    run = tiny("ce")
    see, layers = run.nets[0].see, [type(layer) for layer in run.nets[0].network.modules()]
    run.engine.join(ALONE, run.method)
    assert run.nets[0].see is see and run.nets[0].optimiser.gathers is None
    assert [type(layer) for layer in run.nets[0].network.modules()] == layers


@pytest.mark.parametrize(("rows", "count"), [(8, 2), (7, 3), (2, 4), (0, 2), (5, 5)])
def test_parts_cover_all_rows_and_differ_by_one_at_most(rows: int, count: int) -> None:
    parts = [range(rows)[Ranks(rank, count).part(rows)] for rank in range(count)]
    assert [row for part in parts for row in part] == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_batchnorm_of_its_own_is_named() -> None:
    class Odd(nn.BatchNorm2d):
        pass

    with pytest.raises(UsageError, match=r"Odd.*--batchnorm rank"):
        normalise_together(nn.Sequential(Odd(3)), Ranks(0, 2))
