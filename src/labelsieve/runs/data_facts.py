"""Writes what a run says about your own data: data.json, samples.csv (id, label) and left_out.csv (id, path, reason)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from labelsieve import run_files
from labelsieve.config.schema import Config
from labelsieve.data.doubts import doubts
from labelsieve.data.pictures.presence import known_from
from labelsieve.doors import reading
from labelsieve.run_files import is_there
from labelsieve.runs import atomic
from labelsieve.runs.folder import RunFolder
from labelsieve.texts import as_csv

if TYPE_CHECKING:
    from labelsieve.runs.rows import Rows

NAMED = 3  # ids that an error names


def counts(rows: "Rows") -> dict[str, int]:
    """{class: training samples}."""
    found = np.bincount(rows.data.labels.numpy(), minlength=len(rows.data.classes))
    return dict(zip(rows.data.classes, found.tolist()))


def write_data_facts(folder: RunFolder, config: Config, rows: "Rows") -> None:
    opened = rows.opened
    assert opened is not None
    by_class = counts(rows)
    facts = {
        "source": config.data.source,
        "layout": opened.layout.kind,
        "why": opened.layout.why,
        "samples": len(rows.data),
        "classes": by_class,
        "shape": list(rows.data.images.shape[1:]),
        "measured_on": 0 if rows.test is None else len(rows.test.labels),
        "trusted": 0 if rows.pinned is None else int(rows.pinned.sum()),
        "left_out": len(rows.left_out),
        "passed_over": dict(opened.ignored),
        "notes": list(rows.notes),
        "doubts": list(doubts(by_class)),
        "files": [str(place) for place in rows.memories],
    }
    folder.write_json(folder.data_facts, facts)
    labels = [rows.data.classes[code] for code in rows.data.labels.tolist()]
    atomic.write_text(folder.samples, as_csv(("id", "given_label"), zip(rows.data.ids, labels)))
    if rows.left_out:
        told = [(row.id, row.path, row.reason) for row in rows.left_out]
        atomic.write_text(folder.left_out, as_csv(("id", "path", "reason"), told))


def known_files(folder: RunFolder) -> dict[str, tuple[int, int]]:
    """The picture files that the run began with, {whole path: (size, time)}; empty where it did not write them down."""
    return known_from(Path(place) for place in run_files.facts(folder.data_facts).get("files") or ())


def difference(folder: RunFolder, rows: "Rows") -> str:
    """How these rows differ from those that the run began with, as far as it wrote them down."""
    if not is_there(folder.samples):
        return "labels, noise, trusted ids or picture size differ"
    with reading(folder.samples, "put it back, or delete it"):
        before = {row["id"]: row["given_label"] for row in run_files.rows(folder.samples, ("id", "given_label"))}
    now = {name: rows.data.classes[code] for name, code in zip(rows.data.ids, rows.data.labels.tolist())}
    reasons = {row.id: row.reason for row in rows.left_out}
    gone = [f"{name} ({reasons[name]})" if name in reasons else name for name in before if name not in now]
    new = [name for name in now if name not in before]
    other = [name for name in now if name in before and now[name] != before[name]]
    said = [_some(what, names) for what, names in (("gone", gone), ("new", new), ("labelled otherwise", other)) if names]
    return "; ".join(said) or "its noise, trusted ids or picture size differ"


def _some(what: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} {'is' if len(names) == 1 else 'are'} {what}: {', '.join(names[:NAMED])}{more}"
