"""The files of a run folder, which may be a stranger's: plain files, no links, each up to a size that fits its kind.

`facts` and `records` also hold JSON to a shape, so that readers find numbers where numbers belong.
"""

import csv
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from labelsieve import doors
from labelsieve.doors import Damage, short

REMEDY = "put it back, or repeat the run"
MIB, GIB = 2**20, 2**30
# Bytes: some ten times what a run on a million samples or of a thousand epochs comes to.
SIZES = {
    "config.yaml": MIB,
    "metrics.jsonl": 128 * MIB,
    "timings.jsonl": 16 * MIB,
    "state.json": 128 * MIB,
    "round.json": 4 * GIB,
    "sweep.json": 16 * MIB,
    "report.html": GIB,
}
KINDS = {".json": 16 * MIB, ".csv": 16 * GIB, ".parquet": 16 * GIB, ".npz": 64 * GIB, ".safetensors": 64 * GIB}
OTHER = 64 * MIB
LARGEST, FLOAT = 2**53, 3.5e38  # whole numbers and others beyond these are none that we wrote

NUMBER = "a finite number"
MAYBE = "a finite number or null"
SHARE = "a number from 0 to 1"
MAYBE_SHARE = "a number from 0 to 1, or null"
PERCENT = "a number from 0 to 100"
SECONDS = "a number from 0"
COUNT = "a whole number from 0"
MAYBE_COUNT = "a whole number from 0, or null"
TEXT = "a text"
MAYBE_TEXT = "a text or null"
FLAG = "true or false"
RANGES = {SHARE: (0, 1), PERCENT: (0, 100), SECONDS: (0, LARGEST), COUNT: (0, LARGEST)}
Shape = str | list[Any] | tuple[Any] | Mapping[str, Any] | None  # (shape,): a list that is not empty; None: anything

NOISE: Shape = {"share": SHARE, "low": SHARE, "high": SHARE, "by_class": (SHARE,), "firm_high?": MAYBE_SHARE, "by": TEXT}
DECISION: Shape = {
    "estimate": NOISE,
    "lambda_u": NUMBER,
    "mixture_threshold": NUMBER,
    "mixture_memory": COUNT,
    "least_clean?": NUMBER,
    "epochs?": MAYBE_COUNT,
    "mixed?": FLAG,
}
ACCURACY: Shape = {"both": PERCENT, "*": PERCENT}
METRICS: Shape = {
    "epoch": COUNT,
    "phase": TEXT,
    "loss?": {"*": (NUMBER,)},
    "lr?": NUMBER,
    "steps?": [COUNT],
    "clean_share?": (SHARE,),
    "clean_precision?": [MAYBE_SHARE],
    "clean_recall?": [MAYBE_SHARE],
    "divergence?": [MAYBE],
    "consistency?": [MAYBE],
    "auc_*": [MAYBE_SHARE],
    "wrong_labels?": COUNT,
    "accuracy?": ACCURACY,
    "validation?": ACCURACY,
    "chosen_epoch?": COUNT,
    "chosen_validation?": PERCENT,
    "also?": {"*": ACCURACY},
    "notes?": [TEXT],
    "noise?": NOISE,
    "decision?": DECISION,
}
STATE: Shape = {
    "format": COUNT,
    "epoch": COUNT,
    "fingerprint?": TEXT,
    "metrics?": [METRICS],
    "done?": FLAG,
    "slim?": COUNT,
    "decision?": DECISION,
    "chosen?": {"epoch": COUNT, "accuracy": PERCENT},
    "values?": [NUMBER],
}
BACKBONES_FRAME: Shape = {
    "height": COUNT,
    "width": COUNT,
    "scaled": (COUNT,),
    "mode": TEXT,
    "interpolation": TEXT,
    "fill": (COUNT,),
}
SHAPES: dict[str, Shape] = {
    "metrics.jsonl": METRICS,
    "timings.jsonl": {"epoch": COUNT, "phase": TEXT, "seconds": SECONDS},
    "data.json": {"notes?": [TEXT], "left_out?": COUNT, "files?": [TEXT]},
    "state.json": STATE,
    "sweep.json": {
        "format": COUNT,
        "labelsieve": TEXT,
        "settings": {"epochs?": COUNT, "share": NUMBER, "limit?": COUNT, "sets": [TEXT]},
        "plan?": {},
    },
    "environment.json": {
        **dict.fromkeys(("labelsieve?", "commit?", "python?", "platform?", "device?"), TEXT),
        "commit_differs?": FLAG,
        "threads?": COUNT,
        "packages?": {"*": MAYBE_TEXT},
    },
    "model.json": {
        **dict.fromkeys(("labelsieve?", "cleaner?", "sha256?"), TEXT),
        "network": TEXT,
        "networks": COUNT,
        "shape": (COUNT,),
        "classes": (TEXT,),
        "mean": [NUMBER],
        "std": [NUMBER],
        "cosine": NUMBER,
        "fit?": TEXT,
        "white?": COUNT,
        "crop?": COUNT,
        "backbone?": {"name": TEXT, "sha256": TEXT, "frame": BACKBONES_FRAME, "mean": (NUMBER,), "std": (NUMBER,)},
    },
}

# Arrays of .npz files that readers compute with: kind ("i" of any sign, "f", "b", "U") and number of axes.
ARRAYS: dict[str, dict[str, str]] = {
    "scores.npz": {
        **dict.fromkeys(("ids", "classes"), "U1"),
        "given": "i1",
        **dict.fromkeys(("loss", "confidence", "top_probs"), "f2"),
        **dict.fromkeys(("suggested", "top_classes"), "i2"),
        "estimate": "f1",
        "estimated_by": "U0",
    },
    "predictions.npz": {"label": "i1", "top": "i2", "test_set": "U0"},
    "early_losses.npz": {"loss": "f2", "given": "i2", "classes": "U1", "wrong": "b2"},
    "neighbours.npz": {"of": "i1", "given": "i2", "suggested": "i2"},
    "map.npz": {"at": "f2"},
}


def check_array(name: str, key: str, kind: str, shape: tuple[int, ...]) -> None:
    """A `Damage` where the array of that file is of another kind than those we write."""
    wanted = ARRAYS.get(name, {}).get(key)
    if wanted is not None and (kind.replace("u", "i") != wanted[0] or len(shape) != int(wanted[1])):
        raise Damage(f"it is of kind {kind} and shape {shape}, not of kind {wanted[0]} with {wanted[1]} axes")


def is_there(path: Path) -> bool:
    """Whether anything has this name. Whether that is a file of a run shows when it is opened."""
    return os.path.lexists(path)


def size_for(path: Path) -> int:
    return SIZES.get(path.name) or KINDS.get(path.suffix, OTHER)


def open_file(path: Path, top: Path | None = None) -> BinaryIO:
    """The file, open for reading; below `top`, if that is not its own folder, no folder may be a link either."""
    return doors.open_plain(path, size_for(path), top=top)


def text(path: Path, top: Path | None = None) -> str:
    return doors.read_text(path, size_for(path), top=top)


def lines(path: Path) -> Iterator[str]:
    """The lines of a text one by one, as `csv.reader` wants them."""
    return doors.lines(path, size_for(path))


def rows(path: Path, needed: Sequence[str]) -> Iterator[dict[str, str]]:
    """The rows of a CSV one by one, for a million of them take gigabytes; each has the `needed` columns."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    for number, row in enumerate(csv.DictReader(lines(path)), 1):
        missing = next((name for name in needed if row.get(name) is None), None)
        if missing is not None:
            raise Damage(f'row {number} has no "{missing}"')
        yield row


def facts(path: Path, remedy: str = REMEDY) -> dict[str, Any]:
    """What a JSON file says, by name; nothing where there is none. A `ToolError` where it is damaged."""
    if not is_there(path):
        return {}
    with doors.reading(path, remedy):
        return _checked(json.loads(text(path)), SHAPES.get(path.name))


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON-lines file; none where there is none. A `ToolError` names the damaged line."""
    if not is_there(path):
        return []
    found = []
    with doors.reading(path, REMEDY):
        for number, line in enumerate(text(path).splitlines(), 1):
            with doors.reading(f"{path}, line {number}", REMEDY):
                found.append(_checked(json.loads(line), SHAPES.get(path.name)))
    return found


def _checked(value: Any, shape: Shape) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Damage(f"it holds {short(json.dumps(value))}, not names with values")
    check(value, shape, "it")
    return value


def check(value: Any, shape: Shape, name: str) -> None:
    """A `Damage` where the value is not of this shape.

    A dict has the names of its shape, of which those with a "?" may be missing; "*" is any other, "a_*" any that begins so.
    Readers ask whether a name is there, so one that may be missing and is null, where its shape has no null, is taken out.
    """
    if shape is None:
        return
    if isinstance(shape, (list, tuple)):
        if not isinstance(value, list) or (isinstance(shape, tuple) and not value):
            raise Damage(f"{name} is {short(value)}, not a list{' with something in it' if isinstance(shape, tuple) else ''}")
        for place, one in enumerate(value):
            check(one, shape[0], f"{name}, entry {place + 1},")
    elif isinstance(shape, str):
        if not _is(value, shape):
            raise Damage(f"{name} is {short(value)}, not {shape}")
    else:
        _check_names(value, shape, name)


def _check_names(value: Any, shape: Mapping[str, Any], name: str) -> None:
    if not isinstance(value, dict):
        raise Damage(f"{name} is {short(value)}, not names with values")
    for key, inner in ((key, inner) for key, inner in shape.items() if not key.endswith("*")):
        bare = key.removesuffix("?")
        if bare == key and key not in value:
            raise Damage(f'{name} has no "{key}"')
        if value.get(bare) is not None:
            check(value[bare], inner, f'"{bare}"')
        elif key == bare:
            raise Damage(f'"{key}" is null')
        elif not (isinstance(inner, str) and _is(None, inner)):
            value.pop(bare, None)
    beginnings = sorted((key[:-1] for key in shape if key.endswith("*")), key=len, reverse=True)
    for key in value.keys() - {key.removesuffix("?") for key in shape}:
        beginning = next((each for each in beginnings if key.startswith(each)), None)
        check(value[key], None if beginning is None else shape[f"{beginning}*"], f'"{short(key)}"')


def _is(value: Any, shape: str) -> bool:
    if value is None:
        return shape.endswith("or null")
    if shape in (TEXT, MAYBE_TEXT):
        return isinstance(value, str)
    if isinstance(value, bool) or shape == FLAG:
        return isinstance(value, bool) and shape == FLAG
    shape = shape.removesuffix(", or null")
    if not isinstance(value, int if shape == COUNT else (int, float)):
        return False
    low, high = RANGES.get(shape, (-FLOAT, FLOAT))
    return bool(low <= value <= high)  # which NaN is not
