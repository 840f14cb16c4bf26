"""README.md of a run: the figures are those of its files, names stay text, and what was not measured is not claimed."""

import json
import re
from pathlib import Path

import numpy as np

from labelsieve.issues.estimate import in_words
from labelsieve.results.card import card, cautions, plain
from labelsieve.runs.findings import read_findings, read_record
from labelsieve.runs.folder import RunFolder
from runs.tiny import arrays_file, tiny_config, whole


def test_its_figures_are_those_of_the_run(finished: Path) -> None:
    text = (finished / "README.md").read_text()
    folder = RunFolder(finished)
    found, record = read_findings(folder), read_record(folder)
    assert text == card(found, record, cautions(found, record))
    accuracy = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()][1]["accuracy"]["both"]
    assert f"{accuracy:.2f} %" in text and "48" in text
    facts = json.loads((finished / "estimate.json").read_text())
    share = found.share
    if share.known:
        assert facts["estimate"] == {"share": share.share, "low": share.low, "high": share.high, "by": found.by}
        assert " (".join(in_words(share)) in text
    else:
        assert facts["estimate"] is None and "| wrong labels, estimated | cannot be known here |" in text
    assert found.made_wrong is not None and f"sym:0.3: {100 * found.made_wrong.mean():.1f} %" in text
    counts = [int(number) for number in re.findall(r"(?:keep|relabel|review|drop) (\d+)", text)]
    assert sum(counts) == 48


def test_what_was_not_measured_is_not_claimed(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 255, (48, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "bare.npz", images=images, labels=np.arange(48) % 3)
    whole(tmp_path / "run", tiny_config(f"arrays:{tmp_path / 'bare.npz'}", data__noise="none"))
    text = (tmp_path / "run" / "README.md").read_text()
    assert "Nothing could be measured" in text and "accuracy on test pictures" not in text and "made on purpose" not in text


def test_names_stay_text(tmp_path: Path) -> None:
    classes = np.array(["<script>alert(1)</script>", "a | b\n| c", "*[link](x)*"])
    whole(tmp_path / "run", tiny_config(arrays_file(tmp_path / "odd.npz", classes=classes)))
    text = (tmp_path / "run" / "README.md").read_text()
    assert "<script>" not in text and "&lt;script&gt;" in text and "a \\| b \\| c" in text
    assert plain("`*_[]") == "\\`\\*\\_\\[\\]"
