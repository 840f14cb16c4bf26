"""Gathers what a run's report shows. Pictures come from the run's data, if they can be opened."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.config.method_settings import divides, method_words
from labelsieve.config.moved import moved_to, to_show
from labelsieve.config.schema import dotted_keys, value_at
from labelsieve.data.npz import read_npz
from labelsieve.data.pictures.presence import Known, only_deleted
from labelsieve.errors import ToolError
from labelsieve.issues.rules import ACTIONS, KINDS, NEAR_COPY, RELABEL, SAMPLE_ISSUES
from labelsieve.report.charts import Curve
from labelsieve.report.page import Odd, Suspect
from labelsieve.report.run import Corner, OddSamples, RunReport
from labelsieve.results.card import cautions
from labelsieve.results.sample_issues import test_name
from labelsieve.run_files import is_there
from labelsieve.runs.environment import in_words
from labelsieve.runs.findings import Findings, Record, read_findings, read_record
from labelsieve.runs.folder import RunFolder, known_files
from labelsieve.runs.rounds import rounds, table_of
from labelsieve.runs.rows import Rows, rows_for

PICTURES = 144  # on a page, about
EACH = (6, 12)  # of a class: at least, at most
ODD = 12  # samples of each kind
ROWS = 100  # of a table of ids, where there are no pictures


def run_report(path: Path, source: str | None = None) -> tuple[RunReport, str]:
    """The report, and a remark (or ""): why there are no pictures. `source` says where the data are now."""
    folder = RunFolder.open(path)
    found, record = read_findings(folder), read_record(folder)
    if source is not None:
        record = replace(record, config=moved_to(record.config, source))
    known = known_files(folder) if source is None else {}  # where the files were
    intact = only_deleted(known)
    rows, remark = _rows(record, known if intact else {})
    place: dict[int, int] = {}
    if rows is not None:
        place, remark = _places(found, rows, intact)
    wrong = _known_wrong(found, rows, place)
    corners_shown = rows is not None and bool(place) and rows.data.images.ndim == 4
    corners = _corners(found, rows, place, wrong) if rows is not None and corners_shown else []
    report = replace(
        _with_training(_findings(found, _title(record), _lead(found, record, remark)), record),
        wrong=wrong,
        corners=corners,
        unshown=0 if not corners else len(np.unique(found.given[found.is_issue])) - len(corners),
        odd=_odd(found, rows if corners_shown else None, place),
        is_odd=found.is_odd,
        given=found.given,
        at=_map(folder, len(found.score)),
        left_out=() if rows is None else [(row.path, row.reason) for row in rows.left_out],
        cautions=cautions(found, record),
        rounds=table_of(rounds(folder)) if record.config.data.decisions is not None else ((), ()),
        next_commands=_next_commands(path),
    )
    return report, remark


def _known_wrong(found: Findings, rows: Rows | None, place: dict[int, int]) -> np.ndarray | None:
    """(N,) bool: which labels are wrong, by the truth in data that have not changed, else by the noise that was made, if any."""
    if rows is None or rows.truth is None or not len(rows.data) == len(place) == len(found.score):
        return found.made_wrong
    if not _labelled_alike(found, rows, place):
        return found.made_wrong
    at = [place[row] for row in range(len(place))]
    return (rows.truth.labels != rows.data.labels).numpy()[at]


def _title(record: Record) -> str:
    source = record.config.data.source
    return f"Label report: {Path(source).name or source}"


def _lead(found: Findings, record: Record, remark: str) -> str:
    config = record.config
    return (
        f"{len(found.score):,} labels of {len(found.classes):,} classes, {method_words(config)}, "
        f"{record.epochs_done} of {record.epochs_planned} epochs. {remark}".strip()
    )


def _findings(found: Findings, title: str, lead: str) -> RunReport:
    """What the lists of labels say."""
    return RunReport(
        title=title,
        lead=lead,
        classes=found.classes,
        share=found.share,
        samples=found.samples,
        listed=found.listed,
        matrix=found.matrix,
        expected=found.expected,
        by=found.by,
        score=found.score,
        loss=found.loss,
        is_issue=found.is_issue,
        actions={name: found.count("action", name) for name in ACTIONS},
        kinds={name: found.count("kind", name) for name in KINDS},
        unlisted=found.unlisted,
        order=found.order,
        suspects=_suspects(found),
        decided=int(found.decided.sum()),
        next_steps=_next_steps(found),
    )


def _with_training(report: RunReport, record: Record) -> RunReport:
    """The same with how the run was trained, and with what."""
    config = record.config
    return replace(
        report,
        accuracy=record.accuracies[-1][1] if record.accuracies else None,
        things=record.things,
        curves=_curves(record),
        warmup=min(config.training.warmup, record.epochs_done) if divides(config) else 0,
        notes=[*record.remarks, *dict.fromkeys(note for line in record.metrics for note in line.get("notes", ()))],
        settings={key: _setting(key, record) for key in (*dotted_keys(), *(f"{config.method}.{name}" for name in config.own))},
        versions=_versions(record),
    )


def _setting(key: str, record: Record) -> str:
    """Its value; where it was left open, what was decided."""
    value, decided = value_at(record.config, key), record.decision.get(key.rpartition(".")[2])
    return str(value) if value is not None or decided is None else f"{decided:g} (by the noise estimated after the warm-up)"


def _rows(record: Record, known: Known) -> tuple[Rows | None, str]:
    """The run's data, if they are still there; else why not. Of the `known` files, deleted ones come out of the cache."""
    error = None
    for files in (known, {}) if known else ({},):
        try:
            return rows_for(to_show(record.config), known=files), ""
        except ToolError as problem:
            error = problem
    return None, f"The data could not be opened, so there are no pictures here ({error})."


def _places(found: Findings, rows: Rows, intact: bool) -> tuple[dict[int, int], str]:
    """{the run's row: its row in the data as they are now}, and what is to be said where they have changed.

    Where rows came, went or have other labels, they may be others by the same names, unless the run's files are `intact`.
    """
    now = {name: row for row, name in enumerate(rows.data.ids)}
    ids = [found.columns["id"][place] for place in np.argsort(found.order)]
    place = {row: now[name] for row, name in enumerate(ids) if name in now}
    lost = len(ids) - len(place)
    same = len(place) == len(now) == len(ids) and _labelled_alike(found, rows, place)
    if not place or not (intact or same):
        return {}, "The data have changed since the run, so there are no pictures here."
    return place, f"{lost:,} of the run's pictures {'is' if lost == 1 else 'are'} gone and not shown here." if lost else ""


def _labelled_alike(found: Findings, rows: Rows, place: dict[int, int]) -> bool:
    labels = [rows.data.classes[code] for code in rows.data.labels.tolist()]
    return all(labels[at] == found.classes[found.given[row]] for row, at in place.items())


def _corners(found: Findings, rows: Rows, place: dict[int, int], wrong: np.ndarray | None) -> list[Corner]:
    """Given classes with issues, those with the largest estimate first, and the most suspicious of each that have pictures."""
    issues = [i for i in found.order.tolist() if found.is_issue[i]]
    by_class: dict[int, list[int]] = {}
    for i in issues:
        by_class.setdefault(int(found.given[i]), []).append(i)
    each = min(max(PICTURES // max(len(by_class), 1), EACH[0]), EACH[1])
    shown = sorted(by_class, key=lambda k: -found.listed_of(k))[: PICTURES // each]
    return [
        Corner(found.classes[k], len(by_class[k]), [_suspect(found, rows, place[i], wrong, i) for i in there[:each]])
        for k in sorted(shown)
        if (there := [i for i in by_class[k] if i in place])
    ]


def _map(folder: RunFolder, count: int) -> np.ndarray | None:
    """(N, 2) places; None where the run has no map that fits."""
    at = read_npz(folder.map, of_run=True).get("at") if is_there(folder.map) else None
    fits = at is not None and at.shape == (count, 2) and at.dtype.kind == "f" and bool(np.isfinite(at).all())
    return np.clip(at, 0, 1) if at is not None and fits else None


def _odd(found: Findings, rows: Rows | None, place: dict[int, int]) -> list[OddSamples]:
    """By kind; pictures where `rows` have them."""
    back = np.argsort(found.order, kind="stable").tolist()
    kinds, copies, ids = (found.columns[name] for name in ("sample_issue", "copy_of", "id"))
    by_kind: dict[str, list[int]] = {kind: [] for kind in SAMPLE_ISSUES}
    for i in np.flatnonzero(found.is_odd).tolist():
        if kinds[back[i]] in by_kind:
            by_kind[kinds[back[i]]].append(i)
    number = {ids[back[i]]: i for i in range(len(back))} if by_kind[NEAR_COPY] else {}
    tests = {} if rows is None or rows.test is None else {test_name(rows.test, k): k for k in range(len(rows.test.labels))}

    def shot(i: int) -> tuple[np.ndarray, tuple[str, str]]:
        assert rows is not None
        return rows.data.images[place[i]].numpy(), (ids[back[i]], found.classes[found.given[i]])

    def shown(i: int) -> Odd:
        pairs, other = [shot(i)], copies[back[i]]
        if number.get(other) in place:
            pairs.append(shot(number[other]))
        elif rows is not None and rows.test is not None and other in tests:
            pairs.append((rows.test.images[tests[other]].numpy(), (other, "test set")))
        return Odd([image for image, _ in pairs], [name for _, name in pairs])

    said = []
    for kind, members in by_kind.items():
        some, told = [], set[str]()
        for i in members:
            if copies[back[i]] not in told:  # of two copies of each other, one pair
                some.append(i)
                told.add(ids[back[i]])
        if some:
            named = [(ids[back[i]], found.classes[found.given[i]]) for i in some[:ROWS]]
            pictures = [] if rows is None else [shown(i) for i in some if i in place][:ODD]
            said.append(OddSamples(kind, len(members), pictures, named))
    return said


def _suspect(found: Findings, rows: Rows, at: int, wrong: np.ndarray | None, i: int) -> Suspect:
    return Suspect(
        rows.data.images[at].numpy(),
        rows.data.ids[at],
        found.classes[found.given[i]],
        found.classes[found.suggested[i]],
        float(found.score[i]),
        None if wrong is None else bool(wrong[i]),
    )


def _suspects(found: Findings) -> list[tuple[str, ...]]:
    names = ("id", "given_label", "suggested_label", "label_score")
    listed = [row for row, issue in enumerate(found.columns["is_label_issue"]) if issue][:ROWS]
    return [tuple(_words(found.columns[name][row]) for name in names) for row in listed]


def _words(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _curves(record: Record) -> list[tuple[str, str, list[Curve]]]:
    epochs = [line for line in record.metrics if line["phase"] != "final"]
    tested = record.accuracies
    accuracy = [Curve("both networks", [epoch for epoch, _ in tested], [value for _, value in tested])] if tested else []
    labelled = _curve(epochs, "labelled", lambda line: _term(line, "cross_entropy") or _term(line, "labelled"))
    unlabelled = _curve(epochs, "unlabelled", lambda line: _term(line, "unlabelled"))
    penalty = _curve(epochs, "prior penalty", lambda line: _term(line, "penalty"))
    losses = [curve for curve in (labelled, unlabelled, penalty) if any(value is not None for value in curve.y)]
    clean = [line for line in epochs if "clean_share" in line]
    shares = [_curve(clean, "taken as right", lambda line: [100 * share for share in line["clean_share"]])] if clean else []
    return [
        (f"Accuracy on test {record.things}", "percent right", accuracy),
        ("Labels taken as right", "percent", shares),
        ("Losses", "mean over an epoch and both networks, the unlabelled one before its weight", losses),
    ]


def _term(line: dict[str, Any], name: str) -> list[float] | None:
    found: list[float] | None = line.get("loss", {}).get(name)
    return found


def _curve(records: list[dict[str, Any]], name: str, value: Any) -> Curve:
    found = [value(line) for line in records]
    return Curve(name, [line["epoch"] for line in records], [None if pair is None else sum(pair) / len(pair) for pair in found])


def _versions(record: Record) -> dict[str, str]:
    facts = record.environment
    packages = facts.get("packages") or {}
    plain = {name: str(facts[name]) for name in ("labelsieve", "python", "platform", "device", "threads") if name in facts}
    commit = in_words(facts)
    told = {} if commit is None else {"commit": commit}
    return plain | told | {name: str(version) for name, version in packages.items() if version}


def _next_steps(found: Findings) -> list[str]:
    issues = int(found.is_issue.sum())
    if not issues:
        return ["No label is listed as an issue. If you expected some, look at the lowest scores in issues.csv."]
    return [
        f"Look through the list from the top. It has {issues:,} issues; the table above says how many wrong labels to expect.",
        f"Decide on the review page, or in a table with the columns id, action and label, and apply: only what people decided "
        f"changes. {found.count('action', RELABEL):,} have the action relabel; --auto accepts those without a person, unless "
        f"there is a caution. The original data stay as they are, and changes.csv says what changed and why.",
        "Train the next round with your decisions: it judges what remains in doubt better, and lists only that.",
    ]


def _next_commands(path: Path) -> list[str]:
    run = shlex.quote(str(path))
    return [
        f"labelsieve review {run}",
        f"labelsieve apply {run} --out CORRECTED",
        f"labelsieve apply {run} --out CORRECTED --decisions DECISIONS.csv",
        f"labelsieve train --decisions {run} --out NEXT",
    ]
