"""Each label format holds every sample once, in the form its own tool documents; cleanlab reads its files back itself."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.errors import ToolError
from labelsieve.exports.export import export_run
from labelsieve.exports.label_files import Album, Sheet, huggingface_files, labelstudio_files, read_sheet
from labelsieve.runs.folder import RunFolder
from runs.tiny import pictures, tiny_config


def issues(run: Path) -> list[dict[str, str]]:
    return RunFolder.open(run).read_issues()


def suggested(row: dict[str, str]) -> str:
    return row.get("suggested_label") or row["predicted_label"]


def test_cleanlab_takes_the_arrays_and_the_table(run: Path) -> None:
    pytest.importorskip("cleanlab")
    import pandas
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    out = export_run(run, "cleanlab").path
    labels, probs = np.load(out / "labels.npy", allow_pickle=False), np.load(out / "pred_probs.npy", allow_pickle=False)
    assert find_label_issues(labels, probs).shape == (48,)
    assert get_label_quality_scores(labels, probs).shape == (48,)
    table = pandas.read_csv(out / "label_issues.csv", dtype={"id": str, "given_label": str, "predicted_label": str})
    assert table["is_label_issue"].dtype == bool and table["label_score"].between(0, 1).all()
    classes = json.loads((out / "classes.json").read_text())
    assert [classes[k] for k in labels] == table["given_label"].tolist()
    assert [classes[k] for k in probs.argmax(1)] == table["predicted_label"].tolist()
    by_id = {row["id"]: row for row in issues(run)}
    for row in table.itertuples():
        assert suggested(by_id[row.id]) == row.predicted_label
        assert float(by_id[row.id]["label_score"]) == pytest.approx(row.label_quality, abs=1e-6)


def test_cleanlabs_learner_trains_on_the_exported_issues(run: Path) -> None:
    pytest.importorskip("cleanlab")
    import pandas
    from cleanlab.classification import CleanLearning
    from sklearn.linear_model import LogisticRegression

    out = export_run(run, "cleanlab").path
    table = pandas.read_csv(out / "label_issues.csv")[["is_label_issue", "label_quality"]]
    features = pictures()["images"].reshape(48, -1) / 255
    learner = CleanLearning(LogisticRegression()).fit(features, np.load(out / "labels.npy"), label_issues=table)
    assert learner.predict(features).shape == (48,)


def test_fiftyone_finds_a_picture_and_two_labels_for_every_sample(run: Path) -> None:
    out = export_run(run, "fiftyone").path
    given, found = (json.loads((out / name).read_text()) for name in ("labels.json", "predictions.json"))
    names = {path.stem for path in (out / "data").iterdir()}
    assert len(names) == 48 and set(given["labels"]) == set(found["labels"]) == names
    by_id = {row["id"]: row for row in issues(run)}
    for key in names:
        row = by_id[given["labels"][key]["attributes"]["sample_id"]]
        own = {"id", "label", "confidence", "logits", "tags"}  # fields of FiftyOne's Classification, which attributes are set on
        assert not own & {*given["labels"][key]["attributes"], *found["labels"][key]["attributes"]}
        assert set(given["labels"][key]) == {"label", "attributes"}
        assert set(found["labels"][key]) == {"label", "confidence", "attributes"}
        assert given["classes"][given["labels"][key]["label"]] == row["given_label"]
        assert found["classes"][found["labels"][key]["label"]] == suggested(row)
        assert 0 <= found["labels"][key]["confidence"] <= 1
        assert str(found["labels"][key]["attributes"]["is_label_issue"]) == row["is_label_issue"]


def test_pictures_are_written_as_they_are(run: Path) -> None:
    out = export_run(run, "fiftyone").path
    first = np.asarray(Image.open(out / "data" / "0000000.png"))
    assert (first == pictures()["images"][0]).all()


def check_tasks(tasks: list[dict[str, Any]], configuration: str) -> None:
    """Label Studio's documented task: data with a value for each $name, predictions whose names are the configuration's."""
    view = ElementTree.fromstring(configuration)
    image, choices = view.find("Image"), view.find("Choices")
    assert image is not None and choices is not None
    allowed = {choice.attrib["value"] for choice in choices}
    for task in tasks:
        assert set(task) == {"data", "predictions"}
        assert all(tag.attrib["value"].split("$")[1] in task["data"] for tag in (image, *view.iter("Text")))
        (prediction,) = task["predictions"]
        assert 0 <= prediction["score"] <= 1 and prediction["model_version"]
        (result,) = prediction["result"]
        assert result["from_name"] == choices.attrib["name"]
        assert result["to_name"] == choices.attrib["toName"] == image.attrib["name"]
        assert result["type"] == "choices" and set(result["value"]["choices"]) <= allowed


def test_labelstudios_tasks_fit_the_configuration_beside_them(run: Path) -> None:
    out = export_run(run, "labelstudio").path
    tasks = json.loads((out / "tasks.json").read_text())
    check_tasks(tasks, (out / "labelling.xml").read_text())
    assert [task["data"]["id"] for task in tasks] == [row["id"] for row in issues(run)]
    for task in tasks:
        assert (out / task["data"]["image"].partition("?d=")[2]).is_file()


def test_huggingfaces_table_names_files_beside_it(run: Path) -> None:
    out = export_run(run, "huggingface").path
    rows = [json.loads(line) for line in (out / "train" / "metadata.jsonl").read_text(encoding="utf-8").splitlines()]
    assert list(rows[0])[:2] == ["file_name", "label"] and len(rows) == 48
    assert {row["file_name"] for row in rows} == {path.name for path in (out / "train").iterdir()} - {"metadata.jsonl"}
    by_id = {row["id"]: row for row in issues(run)}
    assert all(by_id[row["id"]]["given_label"] == row["label"] for row in rows)


def test_huggingfaces_table_keeps_texts_that_look_like_numbers_or_nothing(tmp_path: Path) -> None:
    """Its library reads metadata with pandas, which guesses the types of a CSV's columns; texts in JSON stay texts."""
    found, album = two_files(tmp_path, ("007", "null"))
    out = tmp_path / "out"
    out.mkdir()
    huggingface_files(replace(found, ids=("00012", "NA")), album, out)
    rows = [json.loads(line) for line in (out / "train" / "metadata.jsonl").read_text().splitlines()]
    assert [(row["id"], row["label"]) for row in rows] == [("00012", "007"), ("NA", "null")]
    assert [row["sample_issue"] for row in rows] == ["blurred", ""]
    listing = list_pictures(recognise(out, PictureOptions()), PictureOptions())
    assert list(listing.classes) == ["007", "null"] and list(listing.ids) == ["00012", "NA"]


def test_a_picture_that_is_gone_is_never_another_ones(run: Path, tmp_path: Path) -> None:
    """Rows shift when one is taken out of the data."""
    arrays = pictures() | {"ids": np.array([f"{row:05d}" for row in range(48)])}
    by_row = {name: values[1:] if name in ("images", "labels", "ids") else values for name, values in arrays.items()}
    np.savez(tmp_path / "fewer.npz", **by_row)
    config = tiny_config(f"arrays:{tmp_path / 'fewer.npz'}", data__noise="none")
    sheet = read_sheet(RunFolder.open(run))
    album = Album(config, sheet.ids, sheet.paths)
    assert (album.pixels(5)[0] == arrays["images"][5]).all()
    with pytest.raises(ToolError, match='"00000" is no longer there'):
        album.put(0, tmp_path)


def two_files(tmp_path: Path, classes: tuple[str, ...]) -> tuple[Sheet, Album]:
    """Two samples that are files of the user's, with awkward class names."""
    root = tmp_path / "mine"
    root.mkdir()
    for name in ("a b.PNG", "c.png"):
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(root / name)
    found = Sheet(
        ("x", "y"), classes, np.array([0, 1]), np.array([1, 1]), np.array([0.9, 0.8]), np.array([0.1, 0.9]),
        np.array([True, False]), ("a b.PNG", "c.png"), np.array([0, 1]), ("blurred", ""), ("", ""),
    )  # fmt: skip
    return found, Album(tiny_config(f"pictures:{root}"), found.ids, found.paths)


def test_samples_that_are_files_are_linked_and_stay_untouched(tmp_path: Path) -> None:
    found, album = two_files(tmp_path, ("cat", "dog"))
    out = tmp_path / "out"
    out.mkdir()
    huggingface_files(found, album, out)
    link = out / "train" / "0000000.png"
    assert not link.is_symlink() and link.samefile(tmp_path / "mine" / "a b.PNG")  # so that a reader need not leave the folder


def test_awkward_class_names_are_escaped(tmp_path: Path) -> None:
    found, album = two_files(tmp_path, ('<b>"cat" & co', "dog, small\n"))
    out = tmp_path / "out"
    out.mkdir()
    labelstudio_files(found, album, out)
    view = ElementTree.fromstring((out / "labelling.xml").read_text())
    assert [choice.attrib["value"] for choice in view.iter("Choice")] == ['<b>"cat" & co', "dog, small\n", "drop", "unsure"]
    check_tasks(json.loads((out / "tasks.json").read_text()), (out / "labelling.xml").read_text())


def test_a_list_that_lost_rows_is_noticed(run: Path) -> None:
    lines = (run / "issues.csv").read_text().splitlines(keepends=True)
    (run / "issues.csv").write_text("".join(lines[:-1]))
    with pytest.raises(ToolError, match="47 rows for 48 samples"):
        read_sheet(RunFolder.open(run))
