"""A run's findings as files that other tools read: cleanlab, FiftyOne, Label Studio, Hugging Face. Plain text and arrays only.

Pictures are links to the user's files where samples are files, PNG files of the pixels where they are not.
"""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO
from xml.sax.saxutils import quoteattr

import numpy as np
from PIL import Image

from labelsieve.config.moved import to_show
from labelsieve.config.schema import Config
from labelsieve.corrected.tree import copy, hardlink, symlink
from labelsieve.data.pictures.decode import PictureError, open_picture, reason
from labelsieve.data.pictures.fetch import open_inside
from labelsieve.data.pictures.websets import WEBSETS
from labelsieve.doors import Refusal
from labelsieve.errors import ToolError
from labelsieve.runs.findings import read_findings
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import rows_for
from labelsieve.version import __version__


class Album:
    """Puts the picture of a sample into a folder, under its row's number; the data are opened only when pixels are needed.

    `ids` and `paths` (N,) are the run's: the data may have lost rows since.
    """

    def __init__(self, config: Config, ids: Sequence[str], paths: Sequence[str]) -> None:
        self.config, self.ids, self.paths = config, ids, paths
        self.root = root_of(config)
        self.has_links = False
        self._known: dict[int, Path | None] = {}

    def put(self, row: int, folder: Path) -> str:
        """The name of the file that was made in `folder`."""
        original, name = self.original(row), self.name(row)
        if original is not None:
            self._link(row, original, folder / name)
            return name
        picture(self.pixels(row)).save(folder / name)
        return name

    def _link(self, row: int, original: Path, place: Path) -> None:
        """A hard link, which stays inside the folder; a symbolic one on another disk; a copy where there are no links."""
        try:
            with self._open(self.paths[row]) as opened:
                self._put(opened, str(original), str(place))
        except (PictureError, Refusal, FileNotFoundError) as error:
            raise ToolError(f"{original}: {reason(error)}; put the picture back, or train anew") from None

    def _put(self, opened: BinaryIO, original: str, place: str) -> None:
        try:
            hardlink(opened, original, place)
        except (ToolError, OSError):
            try:
                symlink(opened, original, place)
                self.has_links = True
            except OSError:
                copy(opened, original, place)

    def _open(self, name: str) -> BinaryIO:
        assert self.root is not None
        return open_inside(self.root, name, self.config.pictures.outside)

    def name(self, row: int) -> str:
        """What the file in the folder is called."""
        original = self.original(row)
        return f"{row:07d}.png" if original is None else f"{row:07d}{original.suffix.lower()}"

    def original(self, row: int) -> Path | None:
        """The user's own file, absolute, or None where there is none."""
        if row not in self._known:
            self._known[row] = self._original(self.paths[row])
        return self._known[row]

    def _original(self, name: str) -> Path | None:
        """issues.csv may come from elsewhere and name any file of the user's: only pictures where the data lie are handed on."""
        if not name or self.root is None:
            return None
        try:
            with self._open(name) as opened:
                is_picture = bool(open_picture(opened).format)  # by its content: a table may name pictures without an ending
        except Exception:  # Pillow's parsers fail on what is no picture in many ways
            return None
        return (self.root / name).absolute() if is_picture else None

    def pixels(self, row: int) -> np.ndarray:
        """Bytes (C, H, W) of a sample, found by its id."""
        images, place = self._opened
        if self.ids[row] not in place:
            raise ToolError(
                f'{self.config.data.source}: "{self.ids[row]}" is no longer there, and every picture of the run is needed; '
                f"put it back, or train anew"
            )
        found: np.ndarray = images[place[self.ids[row]]]
        return found

    @cached_property
    def _opened(self) -> tuple[np.ndarray, dict[str, int]]:
        """The data as they are now, (M, C, H, W), and where each id is."""
        data = rows_for(to_show(self.config)).data
        if data.images.ndim != 4:
            raise ToolError(f"{self.config.data.source}: these are vectors, which have no pictures to show; use --to cleanlab")
        return data.images.numpy(), {name: row for row, name in enumerate(data.ids)}


def root_of(config: Config) -> Path | None:
    """The folder that paths are relative to, for data that are files."""
    name, _, place = config.data.source.partition(":")
    if name not in ("pictures", *WEBSETS) or not place:
        return None
    path = Path(config.pictures.root or place).expanduser()
    return path if path.is_dir() else path.parent


def picture(pixels: np.ndarray) -> Image.Image:
    """Bytes (C, H, W) as a picture: grey for one channel, colour for three; of others, the first."""
    return Image.fromarray(pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0])


@dataclass(frozen=True, eq=False)
class Sheet:
    """Row i is sample i of the run's data. `order` lists the samples, most suspicious first."""

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    given: np.ndarray  # (N,) int64
    suggested: np.ndarray  # (N,) int64
    confidence: np.ndarray  # (N,) of the suggestion
    score: np.ndarray  # (N,) in [0, 1], low = suspicious
    is_issue: np.ndarray  # (N,) bool
    paths: tuple[str, ...]  # as the user wrote them; empty where samples are no files
    order: np.ndarray  # (N,) int64
    own: tuple[str, ...]  # what is wrong with a sample itself, or ""
    copy_of: tuple[str, ...]  # of a near copy: the sample that it copies


def read_sheet(folder: RunFolder) -> Sheet:
    """The findings of a run, or a `ToolError` where its files do not fit each other."""
    found = read_findings(folder)
    back = np.argsort(found.order, kind="stable").tolist()
    listed = found.columns
    return Sheet(
        tuple(listed["id"][i] for i in back),
        tuple(found.classes),
        found.given.astype(np.int64),
        found.suggested,
        np.array(listed["suggested_confidence"])[back],
        found.score,
        found.is_issue,
        tuple(listed["path"][i] for i in back),
        found.order,
        tuple(listed["sample_issue"][i] for i in back),
        tuple(listed["copy_of"][i] for i in back),
    )


def cleanlab_files(found: Sheet, probabilities: Callable[[], np.ndarray], folder: Path) -> None:
    """`labels.npy` (N,) and `pred_probs.npy` (N, K), the two arguments of cleanlab's functions, and `label_issues.csv`.

    The table has the columns of a `Datalab`'s label issues (is_label_issue, label_score, given_label, predicted_label), and
    `label_quality`, as `CleanLearning` calls the score; row i is sample i. `classes.json` names class k. The probabilities
    are the mean softmax of both networks, which have trained on these samples, though not on the labels they doubt.
    """
    np.save(folder / "labels.npy", found.given, allow_pickle=False)
    np.save(folder / "pred_probs.npy", probabilities().astype(np.float64), allow_pickle=False)
    write_json(folder / "classes.json", list(found.classes))
    head = ("id", "is_label_issue", "label_score", "label_quality", "given_label", "predicted_label", "sample_issue", "copy_of")
    rows = []
    for row in range(len(found.ids)):
        fact = facts(found, row)
        score = fact["label_score"]
        said = (fact["given_label"], fact["suggested_label"], fact["sample_issue"], fact["copy_of"])
        rows.append((fact["id"], fact["is_label_issue"], score, score, *said))
    write_csv(folder / "label_issues.csv", head, rows)


def fiftyone_files(found: Sheet, album: Album, folder: Path) -> None:
    """FiftyOne's image classification layout: `data/`, `labels.json` (given), `predictions.json` (suggested).

    Both JSON files are {"classes": [...], "labels": {name of the picture without its ending: {"label", "confidence",
    "attributes"}}}. Load with fiftyone.types.FiftyOneImageClassificationDataset: `Dataset.from_dir(DIR, label_field="given")`,
    then `merge_dir(DIR, labels_path="predictions.json", label_field="suggested")`. The id is an attribute called sample_id, for
    FiftyOne's labels have an id of their own, of a kind that ours is not.
    """
    media = folder / "data"
    media.mkdir()
    given, suggested = {}, {}
    for row in range(len(found.ids)):
        fact, key = facts(found, row), Path(album.put(row, media)).stem
        names = ("label_score", "is_label_issue", "sample_issue", "copy_of")
        more = {"sample_id": fact["id"]} | {name: fact[name] for name in names}
        given[key] = {"label": int(found.given[row]), "attributes": more}
        suggested[key] = {"label": int(found.suggested[row]), "confidence": fact["suggested_confidence"], "attributes": more}
    for name, labels in (("labels.json", given), ("predictions.json", suggested)):
        write_json(folder / name, {"classes": list(found.classes), "labels": labels})


def labelstudio_files(found: Sheet, album: Album, folder: Path) -> None:
    """Label Studio's `tasks.json`, most suspicious first, and `labelling.xml`, the configuration it goes with.

    A task shows the picture and the given label; the suggested one is its prediction (one of the choices); a second control
    is for drop and unsure. Pictures are in `images/`, named as local files: serve DIR as
    LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT. What was annotated comes back with `labelsieve decisions RUN --from FILE`.
    """
    media = folder / "images"
    media.mkdir()
    tasks: list[dict[str, Any]] = []
    for row in found.order.tolist():
        fact = facts(found, row)
        suggested = choice("label", fact["suggested_label"])
        prediction = {"model_version": f"labelsieve {__version__}", "score": fact["suggested_confidence"], "result": [suggested]}
        image = f"/data/local-files/?d=images/{album.put(row, media)}"
        tasks.append({"data": {"image": image} | fact, "predictions": [prediction]})
    write_json(folder / "tasks.json", tasks)
    choices = "".join(f"    <Choice value={quoteattr(name)}/>\n" for name in found.classes)
    (folder / "labelling.xml").write_text(
        '<View>\n  <Image name="image" value="$image"/>\n  <Text name="given" value="given: $given_label"/>\n'
        f'  <Choices name="label" toName="image" choice="single">\n{choices}  </Choices>\n'
        '  <Choices name="action" toName="image" choice="single">\n    <Choice value="drop"/>\n    <Choice value="unsure"/>\n'
        "  </Choices>\n</View>\n",
        encoding="utf-8",
    )


def choice(control: str, value: str) -> dict[str, Any]:
    """What Label Studio calls a result: one of the choices of a control of `labelling.xml`."""
    return {"from_name": control, "to_name": "image", "type": "choices", "value": {"choices": [value]}}


def huggingface_files(found: Sheet, album: Album, folder: Path) -> None:
    """An imagefolder for `datasets.load_dataset("imagefolder", data_dir=DIR)`: `train/metadata.jsonl` and the pictures beside it.

    Fields: `file_name` as the library wants it, `label` (the given one, as the user wrote it), and ours. Not a CSV, of which
    the library would read an id such as 007 as a number, and a class called null as none.
    """
    media = folder / "train"
    media.mkdir()
    with (media / "metadata.jsonl").open("w", encoding="utf-8", newline="") as file:
        for row in range(len(found.ids)):
            fact = facts(found, row)
            named = {"file_name": album.put(row, media), "label": fact.pop("given_label")}
            file.write(json.dumps(named | fact, ensure_ascii=False) + "\n")


def facts(found: Sheet, row: int) -> dict[str, Any]:
    """What every format says of a sample, under the names of issues.csv."""
    return {
        "id": found.ids[row],
        "given_label": found.classes[found.given[row]],
        "suggested_label": found.classes[found.suggested[row]],
        "suggested_confidence": round(float(found.confidence[row]), 6),
        "label_score": round(float(found.score[row]), 6),
        "is_label_issue": bool(found.is_issue[row]),
        "sample_issue": found.own[row],
        "copy_of": found.copy_of[row],
    }


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_csv(path: Path, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
