"""Short real training on made web sets: draws of batches, a model chosen on validation, two test sets, and exact resumes."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from data.pictures.made_websets import clothing1m, imagenet_folders, webvision
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.errors import ToolError
from labelsieve.predict.model import evaluate_model
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start

from .tiny import contents, to_the_end, whole

pytestmark = pytest.mark.usefixtures("own_cache")

SETTINGS = {
    "network": "small",
    "device": "cpu",
    "pictures.size": 20,
    "views.crop": 16,
    "training.epochs": 4,
    "training.batch": 8,
    "training.warmup_batch": 8,
    "training.epoch_batches": 3,
    "training.lr": 0.02,
    "cleaning.dim": 8,
    "cleaning.prototype_warmup": 0.0,
    "engine.threads": 1,
    "engine.eval_batch": 16,
    "output.checkpoint_seconds": 0,
}


def config_for(source: str, **changes: Any) -> Config:
    return resolve(source, options=SETTINGS | {key.replace("__", "."): value for key, value in changes.items()})


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def test_clothing1m_trains_on_draws_and_keeps_the_best_epoch_on_validation(tmp_path: Path) -> None:
    source = f"clothing1m:{clothing1m(tmp_path / 'data')}"
    run = whole(tmp_path / "run", config_for(source))
    assert run.config.output.model == "best-val" and run.config.cleaner == "cpc-agn"
    *epochs, final = records(tmp_path / "run")
    assert [line["phase"] for line in epochs] == ["warm-up", "prototypes", "prototypes", "prototypes"]
    assert all("validation" in line and "accuracy" not in line for line in epochs), "test pictures are met once"
    assert epochs[0]["steps"] == [3, 3]
    values = [line["validation"]["both"] for line in epochs]
    assert (final["chosen_epoch"], final["chosen_validation"]) == (values.index(max(values)) + 1, max(values))
    assert evaluate_model(tmp_path / "run", None, "cpu")["accuracy"] == pytest.approx(final["accuracy"])
    rows = (tmp_path / "run" / "issues.csv").read_text().splitlines()
    assert len(rows) == 49, "every sample is judged in the end, drawn or not"
    assert f"validation pictures, epoch {final['chosen_epoch']}" in (tmp_path / "run" / "README.md").read_text()


def test_the_kept_model_is_the_chosen_epochs_not_the_last(tmp_path: Path) -> None:
    source = f"clothing1m:{clothing1m(tmp_path / 'data')}"
    run = start(tmp_path / "run", config_for(source, training__epochs=3))
    states = []
    for _ in each_epoch(run):
        states.append({k: v.clone() for k, v in run.parts.method.nets[0].network.state_dict().items()})
    assert run.chosen is not None
    kept = load_file(tmp_path / "run" / "model.safetensors")
    chosen, last = states[run.chosen.epoch - 1], states[-1]
    name = "classifier.weight"
    assert torch.equal(kept[f"0.network.{name}"], chosen[name])
    assert run.chosen.epoch == 3 or not torch.equal(kept[f"0.network.{name}"], last[name])


@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_stopped_run_on_draws_ends_as_one_that_was_not(stop_after: int, tmp_path: Path) -> None:
    source = f"clothing1m:{clothing1m(tmp_path / 'data')}"
    whole(tmp_path / "one", config_for(source))
    run = start(tmp_path / "two", config_for(source))
    for step in each_epoch(run, stop=lambda: run.epoch >= stop_after):
        assert step.epoch <= stop_after
    assert not (tmp_path / "two" / "issues.csv").exists(), "a draw is not every sample"
    to_the_end(tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_webvision_measures_two_test_sets(tmp_path: Path) -> None:
    root = webvision(tmp_path / "data", classes=24, train=96, held=24)
    imagenet_folders(root / "ilsvrc12", folders=24, each=1)
    run = whole(tmp_path / "run", config_for(f"webvision:{root}", training__epochs=2))
    assert run.config.cleaner == "cpc-awr" and not run.parts.method.mixes_strong
    line = records(tmp_path / "run")[0]
    for found in (line["accuracy"], line["also"]["ilsvrc12"]):
        assert 0 <= found["both"] <= found["both_top5"] <= 100
    card = (tmp_path / "run" / "README.md").read_text()
    assert "accuracy on ilsvrc12" in card and "among the first five on test pictures" in card


def test_choosing_needs_validation_pictures(tmp_path: Path) -> None:
    source = f"webvision:{webvision(tmp_path / 'data')}"
    with pytest.raises(ToolError, match=r"no validation pictures .* output\.model=last"):
        start(tmp_path / "run", config_for(source, output__model="best-val"))
    assert not (tmp_path / "run").exists()
    with pytest.raises(ToolError, match=r'"views\.crop" is 16, and pictures are 12x12'):
        start(tmp_path / "run", config_for(source, pictures__size=12))
