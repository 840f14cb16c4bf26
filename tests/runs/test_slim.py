"""Slim checkpoints: small files that a run goes on from, in full precision."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from data.pictures.made_websets import clothing1m
from labelsieve.method.cleaners import MixtureCleaner, PrototypeCleaner
from labelsieve.method.learner import Learner
from labelsieve.method.recipe import Recipe
from labelsieve.nets import build
from labelsieve.runs import checkpoint
from labelsieve.runs.checkpoint import Checkpoint, pack
from labelsieve.runs.slim import joined, shards, slim
from labelsieve.runs.train import begin, drive

from .test_websets import config_for
from .tiny import tiny_config, to_the_end

MIB = 2**20


def test_two_large_networks_after_a_long_run_fit_the_promise(tmp_path: Path) -> None:
    """Two PreAct-ResNet-18 for 100 classes, five remembered passes over 50,000 samples each: 16 MiB a file, 64 MiB in all."""
    tables = {}
    for number in (0, 1):
        judge = PrototypeCleaner(memory=5)
        judge._start(512, 100, torch.device("cpu"))
        judge.past_ = torch.rand(5, 50_000)
        learner = Learner(
            number, build("preact-resnet18", 3, 100, 0), Recipe(2, 1, 1), (0.5,) * 3, (0.2,) * 3, MixtureCleaner(), judge
        )
        tables[f"learner{number}"] = learner.state_dict() | {"teacher.past": torch.rand(5, 50_000, dtype=torch.float64)}
    metrics = [{"epoch": epoch, "loss": [0.123456789] * 100} for epoch in range(450)]
    checkpoint.save_slim(tmp_path, Checkpoint(450, pack(tables), {"metrics": metrics}))
    sizes = [file.stat().st_size for file in tmp_path.glob("epoch-*/*")]
    assert max(sizes) <= 16 * MIB and sum(sizes) <= 64 * MIB and len(sizes) > 3
    found = checkpoint.load(tmp_path).tensors
    kept = {name: value for name, value in pack(tables).items() if "momentum." not in name}
    assert found.keys() == kept.keys()
    assert all(found[name].shape == value.shape for name, value in kept.items())
    assert all(float((found[name].double() - value.double()).abs().max()) < 0.01 for name, value in kept.items())


def test_matrices_are_halved_where_their_numbers_have_room_and_nothing_else_is() -> None:
    third = torch.full((2, 2), 1 / 3)
    tensors = {"matrix": third, "vector": third[0], "large": torch.tensor([[1 / 3, 1e5]]), "whole": torch.arange(4).view(2, 2)}
    found = slim(tensors | {"a.momentum.0": third, "history.recent": third})
    types = {"matrix": torch.float16, "vector": torch.float32, "large": torch.float32, "whole": torch.int64}
    assert {name: value.dtype for name, value in found.items()} == types
    back = joined(found)
    assert back["matrix"].dtype == torch.float32 and all(
        torch.equal(back[name], tensors[name]) for name in types if name != "matrix"
    )


def test_what_is_larger_than_a_file_is_cut_into_rows_and_whole_again() -> None:
    tensors = {"a": torch.arange(2000.0).view(100, 20), "b": torch.arange(3), "c": torch.tensor(4)}
    groups = list(shards(tensors, limit=1000))
    assert len(groups) > 8 and all(sum(value.nbytes for value in group.values()) <= 1000 for group in groups)
    back = joined({name: value for group in groups for name, value in group.items()})
    assert back.keys() == tensors.keys() and all(torch.equal(back[name], tensors[name]) for name in tensors)


def stopped_with_a_slim_one_alone(path: Path, config: object) -> None:
    stops = iter((False, True))
    for _ in drive(begin(path, config), lambda: next(stops)):  # type: ignore[arg-type]
        pass
    shutil.rmtree(path / "checkpoint")


@pytest.mark.parametrize("cleaner", ["cpc-awr", "contrastive", "gmm-agn"])
def test_every_cleaner_goes_on_from_one(cleaner: str, tmp_path: Path, source: str) -> None:
    config = tiny_config(source, cleaner=cleaner, training__epochs=4, output__slim_checkpoint=True)
    stopped_with_a_slim_one_alone(tmp_path / "run", config)
    assert to_the_end(tmp_path / "run").done


@pytest.mark.usefixtures("own_cache")
def test_a_chosen_model_is_kept_in_full_precision(tmp_path: Path) -> None:
    """The epoch that did best on validation may lie before the stop: then the model is what the slim checkpoint holds of it."""
    source = f"clothing1m:{clothing1m(tmp_path / 'data')}"
    path = tmp_path / "run"
    stopped_with_a_slim_one_alone(path, config_for(source, output__slim_checkpoint=True, training__lr=1e-9))
    run = to_the_end(path)
    assert run.done and run.chosen is not None and run.chosen.epoch <= 2
    assert not any(value.dtype == torch.float16 for value in load_file(path / "model.safetensors").values())
