"""Which epoch becomes the model, by records made by hand."""

from dataclasses import replace
from pathlib import Path

import torch

from labelsieve.data.noisy_data import Held
from labelsieve.results.outcome import model_tensors
from labelsieve.train.run import Chosen, better
from labelsieve.train.run import tested as told_of
from labelsieve.train.start import start
from runs.tiny import tiny_config


def test_the_first_of_the_best_epochs_on_validation_is_kept_as_it_was_then(tmp_path: Path, source: str) -> None:
    method = start(tmp_path / "run", tiny_config(source)).parts.method
    best: Chosen | None = None
    for epoch, accuracy in enumerate((50.0, 60.0, 60.0, 40.0), 1):
        with torch.no_grad():
            for net in method.nets:
                net.network.get_parameter("classifier.bias").fill_(epoch)
        best = better(best, {"epoch": epoch, "validation": {"first": 99.0 - epoch, "both": accuracy}}, method)
    assert best is not None and best.facts() == {"epoch": 2, "accuracy": 60.0}
    assert {float(best.tensors[f"{r}.network.classifier.bias"].unique()) for r in (0, 1)} == {2.0}
    assert better(best, {"epoch": 5}, method) is best
    assert better(None, {"epoch": 5}, method) is None


def test_every_test_set_meets_the_chosen_networks_and_not_the_last_ones(tmp_path: Path, source: str) -> None:
    """Chosen ones that say class 1 whatever they see are right as often as it is there; validation is no test set."""
    run = start(tmp_path / "run", tiny_config(source))
    method, rows, cpu = run.parts.method, run.rows, torch.device("cpu")
    tensors = {name: value.clone() for name, value in model_tensors(method).items()}
    for r in (0, 1):
        tensors[f"{r}.network.classifier.bias"][1] = 1e6
    chosen, pictures = Chosen(3, 70.0, tensors), rows.data.images[:8]
    test, more = (Held(pictures, torch.tensor([1] * right + [0] * (8 - right))) for right in (2, 6))
    rows = replace(rows, test=test, val=test, collection=replace(rows.collection, also={"more": more}))
    record = told_of(chosen, run.config, rows, method, cpu)
    assert "accuracy" not in record and (record["chosen_epoch"], record["chosen_validation"]) == (3, 70.0)
    assert record["also"]["more"]["both"] == 75.0
    apart = told_of(chosen, run.config, replace(rows, val=more), method, cpu)
    assert apart["accuracy"]["both"] == 25.0
    none = replace(rows, test=None, collection=replace(rows.collection, also={}))
    assert told_of(chosen, run.config, none, method, cpu) == {"chosen_epoch": 3, "chosen_validation": 70.0}
