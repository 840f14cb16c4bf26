"""Writes a corrected copy of a run's data from decisions, in the form of the source, which is only read."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from labelsieve.config.moved import check_root, check_there, moved_to
from labelsieve.corrected.corrections import Corrections
from labelsieve.corrected.forms import CHANGES, FOLDERS, LINKED, LISTS, Request, train_command, writer_for
from labelsieve.data.doubts import formulas
from labelsieve.data.pictures.options import PictureOptions, picture_options
from labelsieve.data.pictures.recognise import Layout, recognise
from labelsieve.data.sources import OWN
from labelsieve.decisions.decision import LABELLING, Decision
from labelsieve.decisions.incoming import is_dropped
from labelsieve.decisions.log import NAME
from labelsieve.errors import ToolError, UsageError, command
from labelsieve.issues.policy import Change, Correction, changes_of
from labelsieve.issues.rules import DROP, KEEP, RELABEL
from labelsieve.results.card import cautions
from labelsieve.runs.atomic import take_back
from labelsieve.runs.checks import lies_inside
from labelsieve.runs.findings import Findings, read_findings, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rounds import Carried, Round, decisions_in, round_of
from labelsieve.texts import as_csv

HARDLINK = "hardlink"
# Measured (RESULTS.md): where the estimate promised so much, 84 % or more were right and no set ended with fewer right labels.
VOUCHED = 0.6


@dataclass(frozen=True)
class Applied:
    """What was written: the place, how many rows were changed by action, how many are left, and what should be said."""

    out: Path
    changes: Path
    actions: Mapping[str, int]
    left: int
    notes: tuple[str, ...]


def apply_run(
    path: Path,
    out: Path,
    decisions: Mapping[str, Correction],
    put: str = HARDLINK,
    source: str | None = None,
    found: Findings | None = None,
) -> Applied:
    """Write the data set of the run at `path` to `out`, which must not exist, as decided, and `changes.csv` with it.

    `put` says how pictures get into a new folder: hardlink, symlink or copy. `source` says where the data are now. What was
    decided in earlier rounds is always in it. `found` is what the run found, where that has been read already.
    """
    folder = RunFolder.open(path)
    begun, found = folder.read_config(), found or read_findings(folder)
    config = begun if source is None else moved_to(begun, source)
    source = config.data.source
    if source.partition(":")[0] in OWN:  # its form can only be told where it is
        check_there(source)
    check_root(config)
    rounds = round_of(config)
    decisions = _beyond_dropped(decisions, rounds)
    said = from_the_source(changes_of(found.columns, found.classes, decisions), rounds)
    layout = layout_of(source, picture_options(config.pictures))
    write = writer_for(layout, source, out, picture_options(config.pictures))
    if write not in LISTS:
        check_there(source)
    if put != HARDLINK and write not in LINKED:
        raise UsageError(f"{out}: --copy and --symlink are for folders of pictures, which this is not; leave them out")
    changes = out / CHANGES if write in FOLDERS else out.parent / CHANGES
    if write not in FOLDERS:
        take_back(out, changes)
    refuse(out, changes, source, begun.data.source)
    ordered = [*(said[row] for row in np.argsort(found.order, kind="stable").tolist()), *said[len(found.order) :]]
    decided = {*decisions, *(one.decision.id for one in (rounds.carried if rounds is not None else ()))}
    given = {change.id: change.old for change in said} if config.data.noise == "none" else {}
    corrections = Corrections({change.id: change.new for change in said}, given, decided)
    asked = Request(source, layout, picture_options(config.pictures), corrections, put, found, ordered)
    left, notes = write(asked, out, changes_csv(said))
    if config.data.noise != "none":
        notes = (*notes, f"the run made wrong labels on purpose ({config.data.noise}): labels that stay are those it was given")
    if put == "symlink" and write in LINKED:
        command = train_command([str(out)], PictureOptions(outside=True))
        notes = (*notes, f"its links lead out of it, which has to be allowed when it is read: {command}")
    notes = (*notes, *_edited(corrections), *_emptied(found, said), *formulas((one.id for one in said), "id", out.name))
    done = Counter(change.action for change in said if not corrections.seen or change.id in corrections.seen)
    return Applied(out, changes, done, left, notes)


def logged(path: Path, on_conflict: str) -> dict[str, Correction]:
    """{id: decision} of the run's own log, for samples of the run; a decision of an earlier round that was taken back, too.

    Empty where nobody has decided anything.
    """
    folder = RunFolder.open(path)
    now, begun = decisions_in(folder, on_conflict), round_of(folder.read_config())
    before = {} if begun is None else {one.decision.id: one for one in begun.carried}
    told = {name: _plainly(one.decision) for name, one in now.items() if before.get(name) != one}
    back = {name: Correction(RELABEL, one.given, "taken back") for name, one in before.items() if name not in now}
    return told | back


def check_decided(path: Path, decisions: Mapping[str, Correction]) -> None:
    """A `UsageError` where there is nothing to apply, in no round so far."""
    if not decisions and round_of(RunFolder.open(path).read_config()) is None:
        raise UsageError(
            f"{path / NAME}: there are no decisions in it, so there is nothing to apply; check the suspicious labels with "
            f"{command('review', path)}, bring decisions in with {command('decisions', path, '--from', 'FILE')}, or add --auto "
            f"for the corrections that the run itself vouches for"
        )


def _beyond_dropped(decisions: Mapping[str, Correction], begun: Round | None) -> Mapping[str, Correction]:
    """The decisions without those that drop once more what an earlier round did; a `ToolError` where one says otherwise."""
    if begun is None:
        return decisions
    dropped = begun.dropped
    for name, one in decisions.items():
        if name in dropped and one.action != DROP:
            raise ToolError(f"decisions: {is_dropped(name, dropped[name])}")
    return {name: one for name, one in decisions.items() if name not in dropped}


def _plainly(one: Decision) -> Correction:
    """The label is what counts, whichever key was pressed; "unsure" leaves it as it is, for a person has looked."""
    if one.action in LABELLING:
        return Correction(RELABEL, one.label, f"decided by {one.who}: {one.action}")
    return Correction(DROP if one.action == DROP else KEEP, None, f"decided by {one.who}: {one.action}")


def from_the_source(said: list[Change], begun: Round | None) -> list[Change]:
    """In a later round, labels are told as changes of the source's own, and what was dropped before is dropped."""
    if begun is None:
        return said
    given = {one.decision.id: one for one in begun.carried}
    found = [_since_the_source(change, given[change.id]) if change.id in given else change for change in said]
    there = {change.id for change in said}
    gone = [one for one in begun.carried if one.decision.action == DROP and one.decision.id not in there]
    return found + [Change(one.decision.id, one.given, None, DROP, _why(one)) for one in gone]


def _since_the_source(change: Change, one: Carried) -> Change:
    if change.new == one.given:
        return replace(change, old=one.given, action=KEEP)
    if change.action == KEEP:  # nothing new was said
        return replace(change, old=one.given, action=RELABEL, why=_why(one))
    return replace(change, old=one.given)


def _why(one: Carried) -> str:
    return f"decided by {one.decision.who} in round {one.round}: {one.decision.action}"


def layout_of(source: str, options: PictureOptions) -> Layout | None:
    """What lies at the source's path; None where the set is built in and is no file of the user's."""
    name, _, path = source.partition(":")
    if name not in ("pictures", "arrays", "embeddings"):
        return None
    return recognise(Path(path).expanduser(), options)


def refuse(out: Path, changes: Path, *sources: str) -> None:
    """A `UsageError` where anything would be written over, or into a source: the data as they are now, or as the run had them."""
    if os.path.realpath(out) == os.path.realpath(changes):
        raise UsageError(f"{out}: {CHANGES} is what the list of changes is called, which is written beside; choose another --out")
    if os.path.lexists(out):
        raise UsageError(f"{out}: it exists, and nothing is written over; choose another --out")
    if os.path.lexists(changes):
        raise UsageError(
            f"{changes}: it exists, of an earlier `apply`, and nothing is written over; choose an --out in another folder, "
            f"such as {out.parent / out.stem / out.name}"
        )
    for source in sources:
        if lies_inside(out, source):
            path = source.partition(":")[2]
            raise UsageError(f"{out}: it lies inside the source {path}, which stays as it is; choose another --out")


def changes_csv(said: list[Change]) -> str:
    """Rows that change: id, old, new (empty where dropped), action, why."""
    rows = [(v.id, v.old, v.new or "", v.action, v.why) for v in said if v.new != v.old]
    return as_csv(("id", "old", "new", "action", "why"), rows)


def _edited(corrections: Corrections) -> tuple[str, ...]:
    """What is said of labels that were changed in the source after the run had read them."""
    notes = []
    for names, what in (
        (corrections.stayed, "as in the source"),
        (corrections.overruled, "as decided or suggested all the same"),
    ):
        which = "one label is" if len(names) == 1 else f"{len(names):,} labels are"
        notes += [f"the source was changed since the run; {which} {what}, such as that of {min(names)}"] if names else []
    return tuple(notes)


def _emptied(found: Findings, said: list[Change]) -> tuple[str, ...]:
    left = {change.new for change in said}
    gone = [f'"{name}"' for name in found.classes if name not in left]
    return (f"no sample is left of {', '.join(gone[:5])}{' ...' if len(gone) > 5 else ''}",) if gone else ()


def automatic(folder: RunFolder, found: Findings) -> dict[str, Correction]:
    """{id: decision} by what the run found; a `ToolError` where it does not vouch for its suggestions."""
    standing = cautions(found, read_record(folder))
    review = f"Check the labels with {command('review', folder.path)}, then apply what you decided, without --auto"
    if standing:
        raise ToolError(
            f"{folder.path}: --auto is refused while the run has a caution. The first: {standing[0]} {review}, or start a run "
            f"that has none"
        )
    taken = sure_corrections(found)
    right = least_right(found)
    if taken and right < VOUCHED:
        raise ToolError(
            f"{folder.path}: --auto is refused: as few as {100 * right:.0f} % of its {len(taken):,} corrections may be right, "
            f"and it takes {100 * VOUCHED:.0f} % at least. {review}"
        )
    return taken


def least_right(found: Findings) -> float:
    """Of the sure corrections, the share of labels that are wrong at least, by the opinion that finds fewest."""
    columns = zip(found.columns["action"], found.columns["is_label_issue"])
    rows = found.order[[place for place, (action, issue) in enumerate(columns) if issue and action == RELABEL]]
    return float(found.chances.opinions[:, rows].mean(1).min()) if len(rows) else 1.0


def sure_corrections(found: Findings) -> dict[str, Correction]:
    """Issues with the action relabel. Nothing is dropped: what looks like none of the classes may be labelled right."""
    columns = found.columns
    names = ("id", "action", "is_label_issue", "suggested_label", "reason")
    return {
        name: Correction(RELABEL, suggested, f"corrected by the run. {why}")
        for name, action, issue, suggested, why in zip(*(columns[column] for column in names))
        if issue and action == RELABEL
    }
