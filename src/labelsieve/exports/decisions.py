"""A run's decisions for other tools, and theirs for the run: what stands goes out into a file, what is new comes in."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.decisions.decision import LABELLING, Decision, State
from labelsieve.decisions.incoming import Incoming, Sample, entries, read_rows
from labelsieve.decisions.log import DecisionLog
from labelsieve.doors import read_json, reading
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.exports.label_files import Album, choice
from labelsieve.runs import atomic
from labelsieve.runs.findings import Findings, read_findings
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rounds import round_of
from labelsieve.texts import as_csv, inert

LARGEST = 2**30  # bytes
TEXTS = ("action", "who", "when", "key")  # of a decision that went out; its label may be null
ACTION = "action"  # the control of labelling.xml for drop and unsure; its other one chooses a class


def decision_tasks(
    found: Mapping[str, State], samples: Mapping[str, Sample], image: Callable[[str], str]
) -> list[dict[str, Any]]:
    """A task for each sample with a decision, an annotation for each that stands; `image` gives a sample's address.

    `data.decisions` keeps who decided what and when, which Label Studio hands back untouched.
    """
    return [
        {
            "data": {
                "image": image(name),
                "id": name,
                "given_label": samples[name].given,
                "suggested_label": samples[name].suggested,
                "label_score": samples[name].score,
                "decisions": [_record(one) for one in state.standing],
            },
            "annotations": [{"result": [_result(one)]} for one in state.standing],
        }
        for name, state in found.items()
        if state.standing and name in samples
    ]


def _record(one: Decision) -> dict[str, Any]:
    return {"action": one.action, "label": one.label, "who": one.who, "when": one.when, "key": one.key}


def _result(one: Decision) -> dict[str, Any]:
    return choice("label", str(one.label)) if one.action in LABELLING else choice(ACTION, one.action)


def read_tasks(path: Path, who: str, when: str) -> list[Incoming]:
    """The annotations in Label Studio's export named JSON. Skipped and empty ones decide nothing and are passed over."""
    with reading(path, "export from Label Studio as JSON"):
        tasks: Any = read_json(path, LARGEST, follow=True)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) and isinstance(task.get("data"), dict) for task in tasks):
        raise ToolError(f'{path}: not a list of tasks with "data"; export from Label Studio as JSON (not JSON-MIN)')
    return [row for number, task in enumerate(tasks, 1) for row in _rows(task, f"task {number}", who, when)]


def _rows(task: dict[str, Any], place: str, who: str, when: str) -> list[Incoming]:
    data, annotations = task["data"], task.get("annotations")
    found = []
    for annotation in annotations if isinstance(annotations, list) else ():
        chosen = _chosen(annotation) if isinstance(annotation, dict) and not annotation.get("was_cancelled") else None
        if chosen is None:
            continue
        action, label = chosen
        told = _recorded(data, action, label) or _annotated(annotation, action, who, when)
        found.append(Incoming(place, str(data.get("id") or data.get("image") or ""), told["action"], label, *_origin(told)))
    return found


def _origin(told: dict[str, Any]) -> tuple[str, str, str]:
    return str(told["who"]), str(told["when"]), str(told["key"])


def _chosen(annotation: dict[str, Any]) -> tuple[str, str | None] | None:
    """(action, label): an action of our second control, or else the first class that was chosen in any other."""
    label = None
    results = annotation.get("result")
    for result in results if isinstance(results, list) else ():
        value = result.get("value") if isinstance(result, dict) else None
        choices = value.get("choices") if isinstance(value, dict) else None
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], str):
            continue
        if result.get("from_name") == ACTION:
            return choices[0].strip().lower(), None
        label = label or choices[0]
    return None if label is None else ("", label)


def _recorded(data: dict[str, Any], action: str, label: str | None) -> dict[str, Any] | None:
    """Who said the same before it went out, if anybody did."""
    records = data.get("decisions")
    for record in records if isinstance(records, list) else ():
        whole = isinstance(record, dict) and all(isinstance(record.get(key), str) for key in TEXTS)
        if whole and record.get("label") == label and (label is not None or record["action"] == action):
            return dict(record)
    return None


def _annotated(annotation: dict[str, Any], action: str, who: str, when: str) -> dict[str, Any]:
    person, number = annotation.get("completed_by"), annotation.get("id")
    if isinstance(person, dict):
        person = person.get("email") or person.get("id")
    when = str(annotation.get("updated_at") or annotation.get("created_at") or when)
    key = "" if number is None else f"labelstudio-{number}-{when}"
    return {"action": action, "who": who if person is None else f"labelstudio:{person}", "when": when, "key": key}


COLUMNS = ("id", "action", "label", "given_label", "suggested_label", "label_score", "who", "when", "conflict", "key")


def decisions_csv(found: Mapping[str, State], samples: Mapping[str, Sample]) -> str:
    """A row for each decision that stands: one per sample, more where reviewers disagree (`conflict` is True there).

    Logs of older versions may be signed with a formula.
    """
    rows = []
    for name, state in found.items():
        sample = samples.get(name, Sample("", "", float("nan")))
        for one in state.standing:
            score = "" if one.score is None else f"{one.score:.6f}"
            first = (one.id, one.action, one.label or "", sample.given, sample.suggested, score)
            rows.append((*first, inert(one.who), inert(one.when), str(state.conflict), inert(one.key)))
    return as_csv(COLUMNS, rows)


def read_table(path: Path, who: str, when: str) -> list[Incoming]:
    """The rows of a CSV with the columns id and action, and if they are there label, who, when and key.

    `who` and `when` are taken where the row has none. A cell may be empty; rows that decide nothing are passed over.
    """
    found = []
    for number, row in enumerate(read_rows(path), 1):
        action, label = row["action"].strip().lower(), row.get("label") or None
        if action or label:
            said = {"who": row.get("who") or who, "when": row.get("when") or when, "key": row.get("key") or ""}
            found.append(Incoming(f"row {number}", row["id"] or "", action, label, **said))
    return found


FORMATS = ("csv", "labelstudio")
READERS = {".csv": read_table, ".json": read_tasks}


def export_decisions(path: Path, to: str, out: Path) -> int:
    """Write what stands in the run's log to `out`, which must not exist; the number of samples with a decision."""
    if to not in FORMATS:
        raise UsageError(f'"{to}" is not a format{suggest(to, FORMATS)}; there are: {", ".join(FORMATS)}')
    if os.path.lexists(out):
        atomic.clear_up(out)
        raise UsageError(f"{out}: it exists, and nothing is overwritten; choose another --out")
    folder = RunFolder.open(path)
    found, log = read_findings(folder), DecisionLog(path).states()
    samples = samples_of(found)
    if to == "csv":
        text = decisions_csv(log, samples)
    else:
        text = json.dumps(decision_tasks(log, samples, _Addresses(folder, found)), indent=1) + "\n"
    with atomic.disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_new_text(out, text)
    return sum(bool(state.standing) for state in log.values())


def import_decisions(path: Path, file: Path, who: str, when: str) -> tuple[int, int]:
    """Bring the decisions in `file` into the run's log, all or none; (how many were new, how many rows there were).

    `who` and `when` stand for what the file does not say.
    """
    read = READERS.get(file.suffix.lower())
    if read is None:
        raise UsageError(f"{file}: decisions come from a .csv file or from Label Studio's .json; name one")
    rows = read(file, who, when)
    if not rows:
        raise ToolError(f"{file}: there are no decisions in it")
    folder, log = RunFolder.open(path), DecisionLog(path)
    found, begun = read_findings(folder), round_of(folder.read_config())
    carried = frozenset() if begun is None else frozenset(one.decision.id for one in begun.carried)
    dropped = {} if begun is None else begun.dropped
    known, now = log.known(row.key for row in rows), log.states(dict.fromkeys(row.id for row in rows))
    new = entries(rows, samples_of(found), found.classes, known, now, str(file), carried, dropped)
    log.append(new)
    return len(new), len(rows)


def samples_of(found: Findings) -> dict[str, Sample]:
    columns = found.columns
    told = zip(columns["id"], columns["given_label"], columns["suggested_label"], columns["label_score"])
    return {name: Sample(given, suggested, score) for name, given, suggested, score in told}


class _Addresses:
    """A sample's picture as `export --to labelstudio` names it, so that the same served folder shows it."""

    def __init__(self, folder: RunFolder, found: Findings) -> None:
        back = np.argsort(found.order, kind="stable").tolist()
        ids, paths = ([found.columns[name][row] for row in back] for name in ("id", "path"))
        self.album = Album(folder.read_config(), ids, paths)
        self.row = dict(zip(found.columns["id"], found.order.tolist()))

    def __call__(self, name: str) -> str:
        return f"/data/local-files/?d=images/{self.album.name(self.row[name])}"
