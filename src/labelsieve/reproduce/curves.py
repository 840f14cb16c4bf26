"""How cleaners did during training: curves per cleaner from runs' metrics, means over networks and seeds.

Runs of one cleaner that differ in more than the seed (DivideMix beside AugDMix, a study of tau) have lines of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelsieve.config.lengths import divides
from labelsieve.config.schema import dotted_keys, value_at
from labelsieve.methods.ce import CrossEntropy
from labelsieve.methods.parts.names import MIXTURES
from labelsieve.methods.registry import METHODS
from labelsieve.results.tail import number, rankings
from labelsieve.runs.findings import Record

PLAIN = "plain training"  # in the place of a cleaner's name: nothing is divided
LABELS = {
    "gmm-agn": r"GMM$_{agn}$",
    "gmm-awr": r"GMM$_{awr}$",
    "cpc-agn": r"CPC$_{agn}$",
    "cpc-awr": r"CPC$_{awr}$",
    "contrastive": "CPC without GMM",
}
# What may differ between seeds of one experiment: the draw, where things lie, what computes, what is kept. Noise is the group's.
OF_A_RUN = {"version", "seed", "device", "pretrained", "data.source", "data.noise", "data.noise_seed", "data.test_limit"}
OF_A_RUN |= {"pictures.root", "pictures.cache_dir", "pictures.workers", "engine.threads", "engine.eval_batch", "engine.pictures"}
OF_A_RUN |= {"engine.compile", "engine.capture", "engine.deterministic", "output.checkpoint_seconds", "output.slim_checkpoint"}
OF_A_RUN |= {"output.history_mib"}


@dataclass(frozen=True)
class Variant:
    """Runs that differ in nothing but the seed; `settings` says in what they differ from most others of their cleaner.

    A method without one stands in the cleaner's place.
    """

    cleaner: str
    settings: str
    records: list[Record]

    @property
    def label(self) -> str:
        """As the paper writes it; a cleaner of somebody's own by its name, in which a dollar begins no formula."""
        name = LABELS.get(self.cleaner, self.cleaner.replace("$", r"\$"))
        return ", ".join(word for word in (name, self.settings.replace("$", r"\$")) if word)


@dataclass(frozen=True, eq=False)
class Line:
    """A measure over epochs: mean (E,) over seeds, and the lowest and highest seed."""

    cleaner: str
    label: str
    epochs: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int
    teacher: bool = False  # the mixture inside a run that prototypes divide
    settings: str = ""  # of its variant


def auc_lines(records: Sequence[Record]) -> list[Line]:
    """The AUC of each cleaner in its own runs. Without a run of its own, a mixture is shown where it teaches prototypes."""
    found = variants(records)
    lines = _ranking(found)
    return lines if any(line.cleaner in MIXTURES for line in lines) else lines + _teachers(found)


def training_panels(records: Sequence[Record]) -> list[tuple[str, list[Line]]]:
    """What a training is judged by, epoch by epoch: accuracy, ranking beside the teacher's, the division's two errors."""
    found = variants(records)
    return [
        ("test accuracy, both networks (%)", _lines([*_plain(records), *found], "accuracy.both")),
        ("AUC, clean against wrong labels", _ranking(found) + _teachers(found)),
        ("taken as clean: share that is right", _lines(found, "clean_precision")),
        ("right labels: share taken as clean", _lines(found, "clean_recall")),
    ]


def agreement_lines(records: Sequence[Record], key: str) -> list[Line]:
    """`divergence` or `consistency` between mixture and prototypes (appendix A.4), for each cleaner with prototypes."""
    return _lines(variants(records), key)


def variants(records: Sequence[Record]) -> list[Variant]:
    """By cleaner, in the paper's order, then as they come; other methods by their names after these."""
    kinds: dict[str, list[Record]] = {}
    for record in records:
        kinds.setdefault(kind(record), []).append(record)
    order = [name for name in LABELS if name in kinds]
    order += sorted(kinds.keys() - {*order, PLAIN}, key=lambda name: (name in METHODS, name))
    return [one for name in order for one in _variants(kinds[name], name)]


def kind(record: Record) -> str:
    """What the run is drawn as: its cleaner, or its method where that has none."""
    if divides(record.config):
        return record.config.cleaner
    return PLAIN if record.config.method == CrossEntropy.name else record.config.method


def _plain(records: Sequence[Record]) -> list[Variant]:
    return _variants([record for record in records if kind(record) == PLAIN], PLAIN)


def _variants(records: Sequence[Record], cleaner: str) -> list[Variant]:
    shared = [key for key in dotted_keys() if key not in OF_A_RUN]
    own = sorted({key for record in records for key in record.config.own})
    keys = [*shared, *own]
    alike: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        values = [value_at(record.config, key) for key in shared] + [record.config.own.get(key) for key in own]
        alike.setdefault(tuple(map(str, values)), []).append(record)
    usual = [max(values, key=values.count) for values in map(list, zip(*alike))]  # of equally common ones the first
    found = []
    for facts, seeds in alike.items():
        other = [f"{key.rpartition('.')[2]} {value}" for key, value, most in zip(keys, facts, usual) if value != most]
        found.append(Variant(cleaner, ", ".join(other), seeds))
    return found


def _ranking(found: Sequence[Variant]) -> list[Line]:
    """By what divides: a mixture's chances, or the prototypes'; of other methods by the opinion that counts."""
    return [line for one in found for line in _line(one, _deciding(one), one.label)]


def _deciding(one: Variant) -> str:
    if one.cleaner not in METHODS:
        return "auc_loss" if one.cleaner in MIXTURES else "auc_prototype"
    known = (rankings(line) for record in one.records for line in record.metrics)
    return next((list(found)[-1] for found in known if found), "")


def _teachers(found: Sequence[Variant]) -> list[Line]:
    taught = [one for one in found if one.cleaner not in (*MIXTURES, *METHODS)]
    return [line for one in taught for line in _line(one, "auc_loss", f"its mixture ({one.label})", teacher=True)]


def _lines(found: Sequence[Variant], key: str) -> list[Line]:
    return [line for one in found for line in _line(one, key, one.label)]


def _line(variant: Variant, key: str, label: str, teacher: bool = False) -> list[Line]:
    """One line or none; seeds of different length are shown as far as all of them go."""
    tables = [table for table in (_by_epoch(record, key) for record in variant.records) if table]
    if not tables:
        return []
    epochs = sorted(set.intersection(*(set(table) for table in tables)))
    if not epochs:
        return []
    values = np.array([[table[epoch] for epoch in epochs] for table in tables])
    mean, low, high = values.mean(0), values.min(0), values.max(0)
    return [Line(variant.cleaner, label, np.array(epochs), mean, low, high, len(tables), teacher, variant.settings)]


def _by_epoch(record: Record, key: str) -> dict[int, float]:
    lines = {line["epoch"]: line for line in record.metrics if line["phase"] != "final"}
    return {epoch: found for epoch, line in lines.items() if (found := number(line, key)) is not None}
