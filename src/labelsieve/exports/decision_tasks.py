"""Decisions as Label Studio's tasks: what stands goes out as annotations, and annotations come back from its JSON export."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from labelsieve.decisions.decision import LABELLING, Decision
from labelsieve.decisions.incoming import Incoming, Sample
from labelsieve.decisions.state import State
from labelsieve.doors import read_json, reading
from labelsieve.errors import ToolError
from labelsieve.exports.label_files import choice

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
