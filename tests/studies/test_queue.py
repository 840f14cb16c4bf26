"""The queue of runs: the next cell is trained on its noise, stopped in time and resumed; its row says how far it is."""

from pathlib import Path

import numpy as np
import pytest

from labelsieve.config.presets import PRESETS
from labelsieve.data import label_files
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.registry import METHODS
from runs.tiny import arrays_file, pictures
from studies.queue import QUEUE, cells, state_of, take

TINY = "--epochs 3 --device cpu --set training.warmup=1 --set training.batch=8 --set engine.threads=1 --set lambda_u=0"


def made(place: Path, settings: str = TINY) -> tuple[Path, dict[str, str]]:
    """A queue of two cells, the first of them done, with data and noise."""
    images = pictures(48)
    labels = (np.asarray(images["labels"]) + 1) % 3
    (place / "noise").mkdir()
    np.savez(place / "noise" / "tiny.npz", sym20=np.asarray(images["labels"]), sym50=labels)
    queue = place / "queue.md"
    head = "# Runs\n\n| cell | data | noise | settings | minutes | state | commit |\n|---|---|---|---|---|---|---|\n"
    queue.write_text(
        f"{head}| one | tiny | sym20 | {settings} | 1 | done | abc |\n| two | tiny | sym50 | {settings} | 1 | waiting | |\n"
    )
    return queue, {"tiny": arrays_file(place / "tiny-data.npz", **images)}


def test_the_next_cell_is_trained_to_its_end_in_as_many_goes_as_it_takes(tmp_path: Path) -> None:
    queue, data = made(tmp_path)
    before = queue.read_text().splitlines()
    for _ in range(5):
        found = take(queue, data, tmp_path / "noise", tmp_path / "keep", 0.02, None)
        assert found.name == "two" and found.commit and found == cells(queue.read_text())[1]
        if found.state == "done":
            break
    assert found.state == "done" == state_of(tmp_path / "keep" / "two")
    labels = label_files.load(tmp_path / "keep" / "two" / "noise.npz").labels
    assert labels.tolist() == np.load(tmp_path / "noise" / "tiny.npz")["sym50"].tolist()
    assert queue.read_text().splitlines()[:-1] == before[:-1]
    with pytest.raises(UsageError, match="no cell is waiting"):
        take(queue, data, tmp_path / "noise", tmp_path / "keep", 1, None)


def test_what_cannot_be_taken_is_told(tmp_path: Path) -> None:
    queue, data = made(tmp_path, "--epochs nought")
    kept = queue.read_bytes()
    with pytest.raises(UsageError, match="two needs tiny; name it: --data tiny=PATH"):
        take(queue, {}, tmp_path / "noise", tmp_path / "keep", 1, None)
    with pytest.raises(UsageError, match="no cell called three is waiting"):
        take(queue, data, tmp_path / "noise", tmp_path / "keep", 1, "three")
    with pytest.raises(ToolError, match="two ended with exit code 2; the queue stays as it was"):
        take(queue, data, tmp_path / "noise", tmp_path / "keep", 1, None)
    assert queue.read_bytes() == kept
    queue.write_text(queue.read_text().replace("waiting", "at 7"))
    with pytest.raises(UsageError, match="two is at 7, and .*two is not there; copy its config.yaml"):
        take(queue, data, tmp_path / "noise", tmp_path / "keep", 1, None)


def test_every_cell_of_the_queue_is_a_preset_with_its_noise() -> None:
    found = cells(QUEUE.read_text(encoding="utf-8"))
    assert len(found) >= 10 and len({cell.name for cell in found}) == len(found)
    for cell in found:
        words = cell.settings.split()
        preset = words[words.index("--preset") + 1].partition("+")[0]
        assert preset in PRESETS and preset == f"{cell.data}-{cell.noise}"
        assert "--method" not in words or words[words.index("--method") + 1] in METHODS
        assert cell.state in ("waiting", "done") or cell.state.startswith("at ")
