"""A run's decisions for other tools, and theirs for the run: what stands goes out into a file, what is new comes in."""

import json
import os
from pathlib import Path

import numpy as np

from labelsieve.decisions.incoming import Sample, entries
from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.exports.album import Album
from labelsieve.exports.decision_table import decisions_csv, read_table
from labelsieve.exports.decision_tasks import decision_tasks, read_tasks
from labelsieve.runs import atomic
from labelsieve.runs.findings import Findings, read_findings
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rounds import round_of

FORMATS = ("csv", "labelstudio")
READERS = {".csv": read_table, ".json": read_tasks}


def export_decisions(path: Path, to: str, out: Path) -> int:
    """Write what stands in the run's log to `out`, which must not exist; the number of samples with a decision."""
    if to not in FORMATS:
        raise UsageError(f'"{to}" is not a format{suggest(to, FORMATS)}; there are: {", ".join(FORMATS)}')
    if os.path.lexists(out):
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
