"""Slim checkpoints: small files that a run goes on from, in full precision."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from data.pictures.made_websets import clothing1m
from labelsieve.config.resolve import refuse_run
from labelsieve.data.pictures.folders import is_run
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.net import Net, scale
from labelsieve.methods.parts.cleaners import PrototypeCleaner
from labelsieve.nets import build
from labelsieve.runs import checkpoint
from labelsieve.runs.checkpoint import Checkpoint, joined, pack, shards, slim
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start

from .test_websets import config_for
from .tiny import tiny_config, to_the_end

MIB = 2**20


def test_two_large_networks_after_a_long_run_fit_the_promise(tmp_path: Path) -> None:
    """Two PreAct-ResNet-18 for 100 classes, five remembered passes over 50,000 samples each: 16 MiB a file, 64 MiB in all."""
    tables: dict[str, dict[str, torch.Tensor]] = {"method": {}}
    for number in (0, 1):
        judge = PrototypeCleaner(memory=5)
        judge._start(512, 100, torch.device("cpu"))
        judge.past_ = torch.rand(5, 50_000)
        net = Net(number, build("preact-resnet18", 3, 100, 0), *(scale(each, 3, "cpu") for each in ((0.5,) * 3, (0.2,) * 3)))
        past = {f"teacher{number}.past": torch.rand(5, 50_000, dtype=torch.float64)}
        tables[f"learner{number}"] = net.state_dict()
        tables["method"] |= past | {f"judge{number}.{name}": value for name, value in judge.state_dict().items()}
    metrics = [{"epoch": epoch, "phase": "prototypes", "loss": {"mixed": [0.123456789] * 100}} for epoch in range(1, 451)]
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
    for _ in each_epoch(start(path, config), lambda: next(stops)):  # type: ignore[arg-type]
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


def test_a_run_goes_on_from_settings_and_a_slim_checkpoint_alone(tmp_path: Path, source: str) -> None:
    """Which is all that must cross a narrow link: the epochs that were trained there are not trained again."""
    config = tiny_config(source, training__epochs=4, output__slim_checkpoint=True)
    stopped_with_a_slim_one_alone(tmp_path / "there", config)
    here = tmp_path / "here"
    shutil.copytree(tmp_path / "there" / "slim", here / "slim")
    shutil.copy(tmp_path / "there" / "config.yaml", here)
    with pytest.raises(UsageError, match="this is a run folder, not data"):
        refuse_run(str(here))
    assert is_run(here)
    run = resume(here)
    assert run.epoch == 2 and len(run.metrics) == 2
    assert to_the_end(here).done


def test_a_run_killed_before_its_first_full_checkpoint_goes_on_from_the_slim_one(tmp_path: Path, source: str) -> None:
    """Writing the full one makes its folder first."""
    path = tmp_path / "run"
    stopped_with_a_slim_one_alone(path, tiny_config(source, training__epochs=4, output__slim_checkpoint=True))
    for folder in ("checkpoint", "slim"):
        (path / folder / ".epoch-000003.draft").mkdir(parents=True)
    assert resume(path).epoch == 2
    assert not list(path.glob("*/.*.draft")), "drafts of killed processes are cleared away"


def test_a_slim_checkpoint_that_is_newer_than_the_full_one_is_gone_on_from(tmp_path: Path, source: str) -> None:
    """Begun here, gone on with elsewhere, copied back over the same run: what was trained there is not trained again."""
    here, there = tmp_path / "here", tmp_path / "there"
    config = tiny_config(source, training__epochs=4, output__slim_checkpoint=True)
    for _ in each_epoch(start(here, config), lambda: True):
        pass
    assert resume(here).epoch == 1
    stopped_with_a_slim_one_alone(there, config)
    shutil.rmtree(here / "slim")
    shutil.copytree(there / "slim", here / "slim")
    run = resume(here)
    assert run.epoch == 2 and [line["epoch"] for line in run.metrics] == [1, 2]
    assert to_the_end(here).done and resume(here).done


def test_a_full_checkpoint_is_taken_where_there_is_one(tmp_path: Path, source: str) -> None:
    path = tmp_path / "run"
    stops = iter((False, True))
    for _ in each_epoch(start(path, tiny_config(source, training__epochs=4, output__slim_checkpoint=True)), lambda: next(stops)):
        pass
    for file in path.glob("slim/*/part-*"):
        file.write_bytes(b"")
    assert resume(path).epoch == 2


def test_a_part_that_was_not_copied_is_named(tmp_path: Path) -> None:
    """Whatever was in it: prototypes that are not there would begin anew without a word."""
    tables = {"learner0": {"network.weight": torch.rand(4, 2), "judge.prototypes": torch.rand(3, 2)}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "shards", lambda tensors: shards(tensors, limit=16))
        checkpoint.save_slim(tmp_path, Checkpoint(3, pack(tables), {}))
    assert checkpoint.load(tmp_path).tensors.keys() == pack(tables).keys()
    *_, last = sorted(tmp_path.glob("epoch-*/part-*"))
    last.unlink()
    with pytest.raises(ToolError, match=rf"{last.name} is missing, so the checkpoint was half copied or half deleted"):
        checkpoint.load(tmp_path)


def test_what_ruins_the_first_epoch_from_one_is_told(tmp_path: Path, source: str) -> None:
    """And not that there is no full checkpoint."""
    path = tmp_path / "run"
    stopped_with_a_slim_one_alone(path, tiny_config(source, training__epochs=4, output__slim_checkpoint=True))
    run = resume(path)
    with torch.no_grad():
        next(run.parts.method.nets[0].network.parameters()).fill_(torch.nan)
    with pytest.raises(ToolError, match=r"network 1 is not finite at epoch 3.*The checkpoint of epoch 2 is kept"):
        for _ in each_epoch(run):
            pass


@pytest.mark.parametrize("owner", ["network", "judge.own"])
def test_what_users_call_momentum_is_kept(owner: str) -> None:
    """A network of one's own may have a momentum encoder."""
    kept = {f"learner0.{owner}.momentum.0": torch.ones(2), f"learner0.{owner}.momentum.fc.weight": torch.ones(2)}
    ours = {f"learner0.{mine}.momentum.12": torch.ones(2) for mine in ("optimiser", "judge")}
    ours["method.judge1.momentum.0"] = torch.ones(2)
    assert slim(kept | ours).keys() == kept.keys()
