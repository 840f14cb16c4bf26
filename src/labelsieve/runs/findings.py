"""What a run found, per sample and as estimates, from memory or read back from its folder."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labelsieve import run_files
from labelsieve.config.method_settings import epochs_of
from labelsieve.config.schema import Config
from labelsieve.data.label_files import load as load_noise
from labelsieve.data.npz import read_npz
from labelsieve.decisions.decision import LABELLING
from labelsieve.doors import Damage, reading
from labelsieve.errors import ToolError, command
from labelsieve.issues.estimate import NOTHING_KNOWN, Chances, Share, Yield, expected_yield, spread
from labelsieve.issues.rules import REVIEW, SAMPLE_ISSUES
from labelsieve.issues.table import Columns, read_issues
from labelsieve.run_files import REMEDY, is_there
from labelsieve.runs.folder import RunFolder

TAIL = 10  # epochs: what the literature averages


@dataclass(frozen=True)
class Tail:
    """The mean over so many epochs: ten, or as many as a short run has."""

    mean: float
    epochs: int


def fewer(epochs: int) -> str:
    """What to write behind a mean of fewer epochs than ten."""
    return "" if epochs >= TAIL else f" (of {epochs})"


def number(line: Mapping[str, Any], measure: str) -> float | None:
    """The measure, such as accuracy.both or clean_share, of one line; of the networks' own the mean. None: it lacks one."""
    found: Any = line
    for name in measure.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    each = found if isinstance(found, list) else [found]
    return None if not each or None in each else float(sum(each) / len(each))


def measured(lines: Iterable[Mapping[str, Any]], measure: str) -> list[float]:
    """The measure, line by line where it is there."""
    return [found for found in (number(line, measure) for line in lines) if found is not None]


def rankings(line: Mapping[str, Any]) -> dict[str, list[float]]:
    """How well each opinion of a line ranks wrong labels (AUC), network by network; the opinion that counts comes last."""
    found = {key: [one for one in values or () if one is not None] for key, values in line.items() if key.startswith("auc_")}
    return {key: values for key, values in found.items() if values}


def opinion(key: str) -> str:
    """Whose ranking that is, in words."""
    name = key.removeprefix("auc_")
    return {"loss": "mixture", "prototype": "prototypes"}.get(name, name)


def tail(lines: Sequence[Mapping[str, Any]], measure: str = "accuracy.both") -> Tail | None:
    """Of the last ten epochs. The warm-up is another training and is left out, unless there is nothing else."""
    later = measured([line for line in lines if line.get("phase") != "warm-up"], measure)
    last = (later or measured(lines, measure))[-TAIL:]
    return Tail(sum(last) / len(last), len(last)) if last else None


@dataclass(frozen=True, eq=False)
class Findings:
    """Arrays are by sample index, as in scores.npz; `columns` are those of issues.csv, most suspicious first."""

    columns: Columns
    classes: list[str]
    order: np.ndarray  # (N,) samples, most suspicious first
    given: np.ndarray  # (N,) int
    suggested: np.ndarray  # (N,) int
    score: np.ndarray  # (N,)
    is_issue: np.ndarray  # (N,) bool
    loss: np.ndarray  # (N,) mean over all networks
    chances: Chances  # of each label to be wrong
    made_wrong: np.ndarray | None  # (N,) bool: where noise was made on purpose
    decided: np.ndarray  # (N,) bool: settled by people in an earlier round
    share: Share = NOTHING_KNOWN  # of all labels
    by: str = ""  # who estimated that, a key of issues.estimate.HOW; "" in runs from before it was written down

    @cached_property
    def samples(self) -> list[int]:
        """(K,) given each class."""
        counts: list[int] = np.bincount(self.given, minlength=len(self.classes)).tolist()
        return counts

    @cached_property
    def listed(self) -> list[int]:
        """(K,) issues among them."""
        counts: list[int] = np.bincount(self.given[self.is_issue], minlength=len(self.classes)).tolist()
        return counts

    def listed_of(self, k: int) -> float:
        """Which share of a class is listed."""
        return self.listed[k] / max(self.samples[k], 1)

    @cached_property
    def expected(self) -> Yield:
        return expected_yield(self.chances, self.order)

    @cached_property
    def matrix(self) -> np.ndarray:
        """(K, K) counts of issues: given label by suggested label."""
        counts = np.zeros((len(self.classes), len(self.classes)), int)
        np.add.at(counts, (self.given[self.is_issue], self.suggested[self.is_issue]), 1)
        return counts

    @cached_property
    def is_odd(self) -> np.ndarray:
        """(N,) bool: something is wrong with the sample itself, whatever its label."""
        found = np.zeros(len(self.order), bool)
        found[self.order] = [bool(kind) for kind in self.columns["sample_issue"]]
        return found

    @property
    def odd_words(self) -> str:
        """How many samples are odd themselves, by kind, or "" ."""
        counts = Counter(kind for kind in self.columns["sample_issue"] if kind)
        return ", ".join(f"{counts[kind]:,} {kind}" for kind in SAMPLE_ISSUES if counts[kind])

    def count(self, column: str, value: Any) -> int:
        return self.columns[column].count(value)

    @cached_property
    def issue_actions(self) -> Counter[str]:
        """How many of the issues are to be relabelled, reviewed, dropped."""
        return Counter(action for action, issue in zip(self.columns["action"], self.columns["is_label_issue"]) if issue)

    @property
    def unlisted(self) -> int:
        """Labels to review that are no issues: score and networks contradict each other there."""
        return self.count("action", REVIEW) - self.issue_actions[REVIEW]


@dataclass(frozen=True)
class Record:
    """What a run wrote about itself."""

    config: Config
    environment: dict[str, Any]
    metrics: list[dict[str, Any]]
    seconds: float
    remarks: tuple[str, ...]  # on the data
    left_out: int = 0  # listed samples that were not used; left_out.csv says why

    @property
    def things(self) -> str:
        """What samples are called."""
        return things_of(self.config.data.source)

    @property
    def epochs_done(self) -> int:
        return max((record["epoch"] for record in self.metrics), default=0)

    @property
    def decision(self) -> dict[str, Any]:
        """What was left open and decided after the warm-up, by name; empty where nothing was."""
        return next((record["decision"] for record in reversed(self.metrics) if "decision" in record), {})

    @property
    def epochs_planned(self) -> int:
        """As configured, or as decided after the warm-up."""
        return epochs_of(self.config, self.decision.get("epochs"))

    @property
    def final(self) -> dict[str, Any]:
        """The latest record that has a division in it."""
        return next((record for record in reversed(self.metrics) if "clean_share" in record), {})

    @property
    def accuracies(self) -> list[tuple[int, float]]:
        """(epoch, percent right on test pictures by both networks), where it was measured."""
        return [(record["epoch"], record["accuracy"]["both"]) for record in self.metrics if "accuracy" in record]


def things_of(source: str) -> str:
    """What the samples of a source are called."""
    return "vectors" if source.partition(":")[0] == "embeddings" else "pictures"


def read_findings(folder: RunFolder) -> Findings:
    """Read back issues.csv and scores.npz, joined by id."""
    for file in (folder.issues, folder.scores):
        if not is_there(file):
            raise ToolError(
                f"{file}: missing; the run has not divided its labels yet, or was killed before it could write them down: "
                f"go on with {command('resume', folder.path)}"
            )
    columns, scores = read_issues(folder.issues), read_npz(folder.scores, of_run=True)
    made = load_noise(folder.noise, of_run=True).flipped.numpy() if is_there(folder.noise) else None
    with reading(folder.scores, REMEDY):
        try:
            return findings(columns, scores, made)
        except KeyError as error:
            raise ToolError(
                f"{folder.issues}: it does not fit {folder.scores.name} ({error} is not in both); "
                f"put back the file that was changed, or repeat the run"
            ) from None


def findings(columns: Columns, scores: Mapping[str, np.ndarray], made_wrong: np.ndarray | None) -> Findings:
    """The columns of issues.csv joined by id with the arrays of scores.npz; a `KeyError` where one lacks what the other has."""
    classes, ids = scores["classes"].tolist(), scores["ids"].tolist()
    place = {name: row for row, name in enumerate(ids)}
    number = {name: k for k, name in enumerate(classes)}
    order = np.array([place[name] for name in columns["id"]], int)
    if len(order) != len(ids):
        raise KeyError(f"{len(order)} rows for {len(ids)} samples")
    back = np.argsort(order, kind="stable")
    suggested = np.array([number[name] for name in columns["suggested_label"]], int)[back]
    losses, given, predicted = scores["loss"], scores["given"], scores["suggested"]
    if not given.shape == losses.shape[1:] == predicted.shape[1:] == (len(ids),):
        raise Damage("arrays of different lengths")
    if not len(losses) or not ((given >= 0) & (given < len(classes))).all():
        raise Damage("given labels that are no class, or no losses")
    score = np.array(columns["label_score"])[back]
    is_issue = np.array(columns["is_label_issue"], bool)[back]
    share, by = NOTHING_KNOWN, ""
    if "estimate" in scores and "estimated_by" in scores:
        share, by = _share(scores["estimate"]), str(scores["estimated_by"])
    wrong = spread(score, suggested != given, order, share)
    loss = losses.mean(0)
    decided = np.array([action in LABELLING for action in columns["decided"]], bool)[back]
    return Findings(columns, classes, order, given, suggested, score, is_issue, loss, wrong, made_wrong, decided, share, by)


def _share(values: np.ndarray) -> Share:
    if values.shape != (3,) or values.dtype.kind != "f" or not ((values >= 0) & (values <= 1)).all():
        raise Damage("the estimate is not three shares")
    return Share(*values.tolist())


def read_record(folder: RunFolder) -> Record:
    environment, data = (run_files.facts(path, "put it back, or delete it") for path in (folder.environment, folder.data_facts))
    seconds = sum(line["seconds"] for line in run_files.records(folder.timings))
    remarks = tuple(data.get("notes") or ())  # its doubts are cautions
    return Record(
        folder.read_config(),
        environment,
        run_files.records(folder.metrics),
        seconds,
        remarks,
        int(data.get("left_out") or 0),
    )
