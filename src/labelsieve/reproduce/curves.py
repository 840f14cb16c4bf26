"""What figures show: how cleaners did during training, and losses class by class at the end of the warm-up.

Curves are means over networks and seeds. Runs of one cleaner that differ in more than the seed (DivideMix beside AugDMix, a study
of tau) have lines of their own. Loss densities are of clean and of wrongly labelled samples, their mean over classes with a 95 %
band, as in the paper's first figure, and each class has a Kolmogorov-Smirnov test against the whole set.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import gaussian_kde, ks_2samp

from labelsieve.config.method_settings import divides
from labelsieve.config.schema import dotted_keys, value_at
from labelsieve.methods import MIXTURES
from labelsieve.methods.ce import CrossEntropy
from labelsieve.methods.registry import METHODS
from labelsieve.results.kept import EarlyLosses
from labelsieve.runs.findings import Record, number, rankings

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
KINDS = ("clean", "noisy")
BAND = (2.5, 97.5)  # percentiles over classes
GRID = 200
FEWEST = 5  # samples of a class and kind, below which there is nothing to test or to draw
LEVEL = 0.05


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
        """As the paper writes it; your own cleaner by its name, in which a dollar begins no formula."""
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


@dataclass(frozen=True)
class Tested:
    """One class, one kind, one network: is its loss distribution that of the whole set? `statistic` is the largest gap."""

    network: int
    name: str
    kind: str
    samples: int
    statistic: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Density:
    """Mean density over classes and the band that holds 95 % of them, at `loss` (G,)."""

    kind: str
    loss: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    classes: int


def of_kind(early: EarlyLosses, network: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Losses (M,) and given labels (M,) of one network's clean or noisy samples."""
    assert early.wrong is not None
    chosen = early.wrong[network] == (kind == "noisy")
    return early.loss[network][chosen].astype(np.float64), early.given[network][chosen]


def class_tests(early: EarlyLosses) -> list[Tested]:
    """Every class against all samples of its kind, itself among them, as the paper does. Classes go by the given label."""
    found = []
    for network in range(len(early.loss)):
        for kind in KINDS:
            losses, given = of_kind(early, network, kind)
            for k, name in enumerate(early.classes):
                own = losses[given == k]
                if len(own) >= FEWEST:
                    result = ks_2samp(own, losses)
                    found.append(Tested(network, name, kind, len(own), float(result.statistic), float(result.pvalue)))
    return found


def share_that_differs(tested: Sequence[Tested], kind: str) -> float | None:
    """The share of classes with p < 0.05, over networks and classes together.

    Each is a test by itself, as the paper counts them: where no class differs, 5 % would by chance, and fewer of a few large
    classes, for each is part of what it is held against.
    """
    values = [one.p_value < LEVEL for one in tested if one.kind == kind]
    return sum(values) / len(values) if values else None


def densities(early: EarlyLosses, network: int = 0) -> list[Density]:
    """By kind, of one network; a class with too few samples or no spread is left out."""
    top = float(np.quantile(early.loss[network], 0.995)) or 1.0
    grid = np.linspace(0, top, GRID)
    found = []
    for kind in KINDS:
        losses, given = of_kind(early, network, kind)
        each = [_density(losses[given == k], grid) for k in range(len(early.classes))]
        curves = np.array([one for one in each if one is not None])
        if len(curves):
            low, high = np.percentile(curves, BAND, axis=0)
            found.append(Density(kind, grid, curves.mean(0), low, high, len(curves)))
    return found


def _density(losses: np.ndarray, grid: np.ndarray) -> np.ndarray | None:
    """By Gaussian kernels (Scott's width), mirrored at 0, for no loss is below it."""
    if len(losses) < FEWEST or np.ptp(losses) == 0:
        return None
    kernel = gaussian_kde(losses)
    found: np.ndarray = kernel(grid) + kernel(-grid)
    return found
