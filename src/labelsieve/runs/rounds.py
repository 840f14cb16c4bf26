"""Rounds of review and training: what the next run starts with (round.json in its folder).

A round carries all decisions of the rounds before it: those its parent began with, and those in the parent's own log. The
copy in the run folder is what training and resuming read, so that later decisions in the parent change nothing here.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from labelsieve import run_files
from labelsieve.config.schema import Config
from labelsieve.data.label_files import label_hash
from labelsieve.data.noisy_data import Truth
from labelsieve.decisions.decision import DROP, LABELLING, UNSURE, Decision, from_facts, settled
from labelsieve.decisions.log import NAME, DecisionLog
from labelsieve.doors import reading
from labelsieve.errors import ToolError, UsageError, command, suggest
from labelsieve.issues.estimate import Share
from labelsieve.runs.findings import Findings, Record, read_findings, read_record
from labelsieve.runs.folder import RunFolder

if TYPE_CHECKING:
    from labelsieve.runs.rows import Rows


@dataclass(frozen=True)
class RoundFacts:
    """A line of the table of rounds. `decisions` are those the round's data had in them; counts of wrong labels are of `samples`.

    `wrong`, `low`, `high` are estimated; `known_wrong` is counted, where true labels are known; accuracy is in percent.
    """

    round: int
    run: str
    samples: int
    decisions: int
    wrong: float
    low: float
    high: float
    known_wrong: int | None = None
    accuracy: float | None = None

    @property
    def left(self) -> str:
        """Wrong labels left, in words."""
        if not Share(self.wrong, self.low / max(self.samples, 1), self.high / max(self.samples, 1)).known:
            return "unknown"
        return f"{self.wrong:,.0f} ({self.low:,.0f} to {self.high:,.0f})"


@dataclass(frozen=True)
class Carried:
    """A decision, the round in which it was made, and the label that the sample had before any."""

    decision: Decision
    round: int
    given: str

    @property
    def used(self) -> bool:
        return self.decision.action in (*LABELLING, DROP)


@dataclass(frozen=True)
class Round:
    number: int
    parent: str
    before: tuple[RoundFacts, ...]
    carried: tuple[Carried, ...]

    @property
    def used(self) -> int:
        """Decisions that change or confirm something; "unsure" does neither."""
        return sum(one.used for one in self.carried)

    @property
    def dropped(self) -> dict[str, str]:
        """{id: the run in which it was dropped} of samples that are in no round since."""
        runs = {one.round: one.run for one in self.before}
        return {one.decision.id: runs.get(one.round, self.parent) for one in self.carried if one.decision.action == DROP}

    def text(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def round_of(config: Config) -> Round | None:
    """What a run of this configuration begins with, None in the first round; from a reviewed run or a folder's round.json."""
    if config.data.decisions is None:
        return None
    place = Path(config.data.decisions).expanduser()
    return next_round(place, config.data.on_conflict) if place.is_dir() else read_round(place)


def next_round(parent: Path, on_conflict: str) -> Round:
    """The round after the one in `parent`, with the decisions in its log as they are now."""
    folder = RunFolder.open(parent)
    before = round_of(folder.read_config())
    carried = decisions_in(folder, on_conflict)
    if not carried:
        raise UsageError(
            f"{parent / NAME}: there are no decisions in it; review the run first ({command('review', parent)}), or bring "
            f"decisions in with {command('decisions', parent, '--from', 'FILE')}"
        )
    number = 1 if before is None else before.number
    return Round(number + 1, str(parent.absolute()), tuple(rounds(folder)), tuple(carried.values()))


def decisions_in(folder: RunFolder, on_conflict: str) -> dict[str, Carried]:
    """{id: what was decided on it}, in this run's log and in the rounds before it."""
    before, found = round_of(folder.read_config()), DecisionLog(folder.path).states()
    carried = {one.decision.id: one for one in before.carried} if before is not None else {}
    number = 1 if before is None else before.number
    now = settled(found, on_conflict, str(folder.path / NAME))
    given = {row["id"]: row["given_label"] for row in folder.issue_rows()} if now else {}
    for name, state in found.items():
        if name in now:
            if name not in given and name not in carried:
                raise ToolError(f'{folder.path / NAME}: "{name}" is no sample of this run; the log belongs to another run')
            was = carried[name].given if name in carried else given[name]
            carried[name] = Carried(now[name], number, was)
        elif name in carried and not state.conflict and state.over_taken_back:
            del carried[name]
    return carried


def read_round(path: Path) -> Round:
    """The round that a run folder's round.json tells of."""
    with reading(path, "put back the decisions that the run started with, or start the round again"):
        facts: Any = json.loads(run_files.text(path))
        before = tuple(_line(one) for one in facts["before"])
        told = [(from_facts(one["decision"], str(path)), int(one["round"]), str(one["given"])) for one in facts["carried"]]
        carried = tuple(Carried(*one) for one in told)
        return Round(int(facts["number"]), str(facts["parent"]), before, carried)


def _line(facts: Any) -> RoundFacts:
    """Numbers are made numbers: the file may come from anywhere."""

    def number(name: str, kind: type) -> Any:
        return None if facts[name] is None else kind(facts[name])

    return RoundFacts(
        round=int(facts["round"]),
        run=str(facts["run"]),
        samples=int(facts["samples"]),
        decisions=int(facts["decisions"]),
        wrong=float(facts["wrong"]),
        low=float(facts["low"]),
        high=float(facts["high"]),
        known_wrong=number("known_wrong", int),
        accuracy=number("accuracy", float),
    )


def rounds(folder: RunFolder) -> list[RoundFacts]:
    """Every round up to this run's own, which must have divided its labels."""
    record = read_record(folder)
    return rounds_up_to(folder.path, round_of(record.config), read_findings(folder), record)


def rounds_up_to(path: Path, begun: Round | None, found: Findings, record: Record) -> list[RoundFacts]:
    """The same of a run that is at hand."""
    count, share = len(found.score), found.share
    known = record.final.get("wrong_labels")
    if known is None and found.made_wrong is not None:
        known = int(found.made_wrong.sum())
    own = RoundFacts(
        round=1 if begun is None else begun.number,
        run=str(path.absolute()),
        samples=count,
        decisions=0 if begun is None else begun.used,
        wrong=count * share.share,
        low=count * share.low,
        high=count * share.high,
        known_wrong=known,
        accuracy=record.accuracies[-1][1] if record.accuracies else None,
    )
    return [own] if begun is None else [*begun.before, own]


def table_of(found: Sequence[RoundFacts]) -> tuple[list[str], list[list[str]]]:
    """Header and rows for eyes; what is known in no round has no column."""
    columns = {
        "round": [str(one.round) for one in found],
        "decisions used": [f"{one.decisions:,}" for one in found],
        "samples": [f"{one.samples:,}" for one in found],
        "wrong labels left, by the run": [one.left for one in found],
        "known wrong": ["" if one.known_wrong is None else f"{one.known_wrong:,}" for one in found],
        "accuracy": ["" if one.accuracy is None else f"{one.accuracy:.2f} %" for one in found],
    }
    shown = {name: values for name, values in columns.items() if any(values)}
    return list(shown), [list(row) for row in zip(*shown.values())]


def based_on(base: Config, parent: Path) -> Config:
    """The settings of the reviewed run, for the next one: made noise stays the same noise, whatever seed follows."""
    seed = base.seed if base.data.noise_seed is None and base.data.noise != "none" else base.data.noise_seed
    return replace(base, data=replace(base.data, noise_seed=seed, decisions=str(parent.absolute())))


def decided_rows(rows: "Rows", begun: Round) -> "Rows":
    """The rows of the round; decisions on samples that are no longer in the data are passed over, with a note."""
    row = {name: number for number, name in enumerate(rows.data.ids)}
    here = [one for one in begun.carried if one.decision.id in row]
    gone = [one for one in begun.carried if one.decision.id not in row]
    if not here:
        raise ToolError(
            f"none of the {len(begun.carried)} decisions of {begun.parent} is about a sample of these data (the first is about "
            f'"{gone[0].decision.id}"); name the data that were reviewed'
        )
    labels = relabelled(rows, here, [row[one.decision.id] for one in here], begun.parent)
    pinned = torch.zeros(len(labels), dtype=torch.bool) if rows.pinned is None else rows.pinned.clone()
    stays = torch.ones(len(labels), dtype=torch.bool)
    decided = [""] * len(labels)
    for one in here:
        place, action = row[one.decision.id], one.decision.action
        pinned[place] = action in LABELLING
        stays[place] = action != DROP
        decided[place] = action
    index = torch.nonzero(stays).flatten()
    if not len(index):
        raise ToolError(f"{begun.parent}: every sample was dropped there; nothing is left to train on")
    said = _words(begun, here, gone)
    return _chosen(replace(rows, data=rows.data.relabelled(labels), pinned=pinned, notes=(*rows.notes, *said)), decided, index)


def relabelled(rows: "Rows", here: Sequence[Carried], places: Sequence[int], parent: str) -> Tensor:
    """The labels (N,) with what people said in them."""
    classes = rows.data.classes
    number = {name: k for k, name in enumerate(classes)}
    labels = rows.data.labels.clone()
    for one, place in zip(here, places):
        label = one.decision.label
        if label is None:
            continue
        if label not in number:
            raise ToolError(
                f'{parent}: "{one.decision.id}" was decided to be "{label}", which is not one of {len(classes)} classes'
                f"{suggest(label, classes)}; name the data that were reviewed"
            )
        labels[place] = number[label]
    return labels


def _chosen(rows: "Rows", decided: Sequence[str], index: Tensor) -> "Rows":
    """The rows at `index` (M,), with all that belongs to them."""
    found, noise = rows.collection, rows.noise
    truth = None if found.truth is None else Truth(found.truth.labels[index])
    paths = None if found.paths is None else tuple(found.paths[i] for i in index.tolist())
    original, labels = found.train.labels[index], rows.data.labels[index]
    if noise is not None:  # what is still wrong of what was made wrong
        noise = replace(noise, labels=labels, flipped=labels != original, sha256=label_hash(labels))
    assert rows.pinned is not None
    return replace(
        rows,
        data=rows.data.rows(index),
        truth=None if rows.truth is None else Truth(rows.truth.labels[index]),
        collection=replace(found, train=found.train.rows(index), truth=truth, paths=paths),
        noise=noise,
        pinned=rows.pinned[index],
        decided=tuple(decided[i] for i in index.tolist()),
    )


def _words(begun: Round, here: Sequence[Carried], gone: Sequence[Carried]) -> list[str]:
    count = {action: sum(one.decision.action == action for one in here) for action in (*LABELLING, DROP, UNSURE)}
    changed = sum(one.decision.label not in (None, one.given) for one in here)
    pinned = _counted(sum(count[action] for action in LABELLING), "label is", "labels are")
    words = [
        f"round {begun.number}, on {_counted(begun.used, 'decision', 'decisions')}: {pinned} pinned as right ({changed:,} of "
        f"them corrected), {_counted(count[DROP], 'sample is', 'samples are')} left out"
    ]
    if count[UNSURE]:
        words[0] += f"; {_counted(count[UNSURE], 'more, unsure, stays', 'more, unsure, stay')} in doubt"
    lost = [one.decision.id for one in gone if one.decision.action != DROP]
    if lost:
        told = _counted(len(lost), "decision is about a sample that is", "decisions are about samples that are")
        words.append(f"{told} not trained on here, such as {lost[0]}")
    return words


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
