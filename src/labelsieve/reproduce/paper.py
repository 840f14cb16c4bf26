"""The paper's tables as data: every number that can be run here, with the job that would give ours. Accuracies in percent.

A `Job` is a run without its seed, a `Cell` one number of the paper and where ours comes from. One job may stand behind cells of
several tables; its name is its folder, so a sweep runs it once. From Huang et al., "Class Prototype-based Cleaner for Label Noise
Learning"; table numbers are the paper's order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from labelsieve.config.presets import preset
from labelsieve.errors import UsageError, suggest
from labelsieve.methods.registry import METHODS

DEFAULTS = {"cleaning.prototype_warmup": 0.05, "cleaning.tau": 0.5, "cleaning.alpha": 0.0}


@dataclass(frozen=True)
class Job:
    """`preset` as `labelsieve train --preset` takes it, `options` by dotted key; `source` names the data set."""

    name: str
    source: str
    preset: str
    epochs: int  # in the paper
    options: tuple[tuple[str, Any], ...] = ()
    samples: int = 50_000  # that the paper trains on
    length: int | None = None  # epochs here, where the job is shortened by itself


@dataclass(frozen=True)
class Cell:
    """`paper` in percent with its standard deviation over seeds, None where the paper has none.

    `measure` is where ours stands in a line of metrics.jsonl.
    """

    row: str
    column: str
    job: Job
    paper: float | None
    spread: float | None = None
    measure: str = "accuracy.both"
    reported: bool = False  # taken by the paper from others' work


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    cells: tuple[Cell, ...]
    note: str = ""

    @property
    def jobs(self) -> list[Job]:
        """Each job once, in the order of the cells."""
        return list(dict.fromkeys(cell.job for cell in self.cells))


SOURCES = {"cifar10": 50_000, "cifar100": 50_000, "clothing1m": 1_000_000, "webvision": 65_944}


def job(
    cell: str,
    cleaner: str | None = None,
    *,
    called: str | None = None,
    e: int | None = None,
    tau: float | None = None,
    alpha: float | None = None,
    **options: Any,
) -> Job:
    """A benchmark cell crossed with a cleaner or a study; a number that the cell has anyway gives the cell itself.

    More `options` (by key) make another job, `called` after the cell's name. Prototypes judge at even odds, as published.
    """
    settings = preset(cell)
    studies = {
        f"e{e}": ("cleaning.prototype_warmup", None if e is None else e / 100),
        f"tau{tau}": ("cleaning.tau", tau),
        f"alpha{alpha:g}" if alpha is not None else "alpha": ("cleaning.alpha", alpha),
    }
    other = [word for word, (key, value) in studies.items() if value is not None and value != settings.get(key, DEFAULTS[key])]
    cleaner = cleaner or str(settings["cleaner"])
    named = "+".join([cell, cleaner, *other])
    odds = "" if preset(named).get("cleaning.prototype_prior", 0.5) == 0.5 else "+prior0.5"
    source = cell.partition("-")[0]
    epochs = int(options["epochs"] if "epochs" in options else settings["training.epochs"])
    name = f"{cell}+{called}" if called else named
    return Job(name, source, named + odds, epochs, tuple(options.items()), SOURCES[source])


def words_of(cell: Cell) -> set[str]:
    """What a cell may be called: its job, the parts of its name, its row and its column."""
    parts = {cell.job.name, cell.job.source, *cell.job.name.split("+")}
    return {word.lower() for word in (*parts, cell.row, cell.column, f"{cell.row}/{cell.column}")}


def chosen(table: Table, wanted: Sequence[str]) -> list[Cell]:
    """The cells that match all words of at least one pattern: `gmm-agn`, `cifar100-sym90+cpc*`, `webvision cpc-agn`."""
    patterns = [text.strip().lower() for texts in wanted for text in texts.split(",") if text.strip()]
    if not patterns:
        return list(table.cells)
    found: dict[Cell, None] = {}
    for pattern in patterns:
        matching = [cell for cell in table.cells if _matches(cell, pattern)]
        if not matching:
            known = sorted({word for cell in table.cells for word in words_of(cell) if "/" not in word})
            raise UsageError(f'--cells "{pattern}" matches nothing in {table.name}{suggest(pattern, known)}; {_list(known)}')
        found |= dict.fromkeys(matching)
    return [cell for cell in table.cells if cell in found]


def _matches(cell: Cell, pattern: str) -> bool:
    words = words_of(cell)
    if any(fnmatchcase(word, pattern) for word in words):
        return True
    return all(any(fnmatchcase(word, part) for word in words) for part in pattern.split())


def _list(words: Iterable[str]) -> str:
    return f"there are: {', '.join(words)}"


AWR = "cpc-awr"
CLEANERS = {"GMM_agn": "gmm-agn", "GMM_awr": "gmm-awr", "CPC_agn": "cpc-agn", "CPC_awr": AWR}
SETS = {
    "CIFAR-100 sym 90 %": "cifar100-sym90",
    "WebVision": "webvision",
    "CIFAR-10 asym 40 %": "cifar10-asym40",
    "Clothing1M": "clothing1m",
}
WEB = {
    "WebVision top 1": "accuracy.both",
    "WebVision top 5": "accuracy.both_top5",
    "ILSVRC12 top 1": "also.ilsvrc12.both",
    "ILSVRC12 top 5": "also.ilsvrc12.both_top5",
}
RATES = (20, 50, 80, 90)


def table1() -> Table:
    """Real-world noise. Baselines: DivideMix with ResNet-50 on WebVision, AugDMix on Clothing1M."""
    web = {
        "Baseline": ("gmm-agn", (76.3, 0.36), (90.65, 0.16), (74.42, 0.29), (91.21, 0.12)),
        "CPC": (AWR, (79.63, 0.08), (93.46, 0.10), (75.75, 0.14), (93.49, 0.25)),
    }
    cells = [
        Cell(row, column, job("webvision", cleaner), *numbers, measure=measure)
        for row, (cleaner, *published) in web.items()
        for (column, measure), numbers in zip(WEB.items(), published)
    ]
    cells.append(Cell("Baseline", "Clothing1M", job("clothing1m", "gmm-agn"), 74.73, 0.02))
    cells.append(Cell("CPC", "Clothing1M", job("clothing1m", "cpc-agn"), 75.40, 0.10))
    return Table("table1", "Table 1: real-world noise", tuple(cells))


TABLE2: dict[str, tuple[list[float], list[float], float]] = {
    "DivideMix": ([96.1, 94.6, 93.2, 76.0], [77.3, 74.5, 60.2, 31.5], 93.4),
    "AugDMix (baseline)": ([96.3, 95.6, 93.6, 91.9], [79.5, 77.2, 66.4, 41.2], 94.6),
    "CPC": ([96.50, 95.64, 94.78, 92.55], [80.22, 79.31, 69.56, 54.60], 94.73),
}
SPREADS = ([0.10, 0.01, 0.01, 0.58], [0.21, 0.13, 0.34, 0.24], 0.04)


def table2() -> Table:
    """Synthetic noise on CIFAR-10 and CIFAR-100. DivideMix ran for 300 epochs in its own paper. Other methods come after the
    paper's rows, each as its authors ran it, with what they published."""
    cells = []
    for row, (ten, hundred, asym) in TABLE2.items():
        ours = row == "CPC"
        for i, rate in enumerate(RATES):
            spread = (SPREADS[0][i], SPREADS[1][i]) if ours else (None, None)
            for name, numbers, one in (("10", ten, spread[0]), ("100", hundred, spread[1])):
                run = _table2_job(f"cifar{name}-sym{rate}", row)
                cells.append(Cell(row, f"CIFAR-{name} sym {rate} %", run, numbers[i], one, reported=not ours))
        run = _table2_job("cifar10-asym40", row)
        cells.append(Cell(row, "CIFAR-10 asym 40 %", run, asym, SPREADS[2] if ours else None, reported=not ours))
    note = (
        "CPC, its baseline and DivideMix are as the paper has them; of other methods, the number is what their authors printed."
    )
    return Table("table2", "Table 2: synthetic noise on CIFAR-10 and CIFAR-100", (*cells, *_other_methods()), note)


def _other_methods() -> list[Cell]:
    columns = {f"cifar{n}-sym{rate}": f"CIFAR-{n} sym {rate} %" for rate in RATES for n in (10, 100)}
    columns["cifar10-asym40"] = "CIFAR-10 asym 40 %"
    return [
        Cell(name, column, _own_job(cell, name, method.cells[cell].settings["training.epochs"]), method.cells[cell].published,
             reported=method.cells[cell].published is not None)
        for name, method in METHODS.items()
        for cell, column in columns.items()
        if name != "cpc" and cell in method.cells
    ]  # fmt: skip


def _own_job(cell: str, method: str, epochs: int) -> Job:
    return Job(f"{cell}+{method}", cell.partition("-")[0], cell, epochs, (("method", method),))


def _table2_job(cell: str, row: str) -> Job:
    if row == "DivideMix":
        return job(cell, "gmm-agn", called="dividemix", method="dividemix", epochs=300)
    return job(cell) if row == "CPC" else job(cell, "gmm-agn")


def table3() -> Table:
    """Which cleaner divides."""
    published = {
        "GMM_agn": (41.2, 76.32, 94.6, 74.73),
        "GMM_awr": (45.6, 78.66, 94.18, 74.18),
        "CPC_agn": (48.88, 79.4, 94.73, 75.4),
        "CPC_awr": (54.6, 79.63, 94.29, 74.36),
    }
    cells = [
        Cell(row, column, job(cell, CLEANERS[row]), number)
        for row, numbers in published.items()
        for (column, cell), number in zip(SETS.items(), numbers)
    ]
    return Table("table3", "Table 3: the cleaner and the accuracy", tuple(cells))


HYPER: dict[str, tuple[float, tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = {
    "CIFAR-100 sym 90 %": (41.2, (52.32, 54.60, 53.7), (54.60, 54.33, 54.05), (54.60, 54.48, 54.51)),
    "WebVision": (76.3, (79.63, 79.32, 79.04), (79.63, 79.52, 79.36), (79.16, 79.44, 79.63)),
    "CIFAR-10 asym 40 %": (94.60, (94.73, 94.68, 94.59), (94.73, 94.71, 94.65), (94.73, 94.68, 94.72)),
    "Clothing1M": (74.73, (75.40, 75.04, 74.89), (75.08, 75.15, 75.40), (75.35, 75.28, 75.40)),
}


def hyper() -> Table:
    """One number changed at a time: the prototypes' warm-up e, the threshold tau, the weight alpha."""
    cells = []
    for row, (baseline, by_e, by_tau, by_alpha) in HYPER.items():
        cell = SETS[row]
        cells.append(Cell(row, "baseline", job(cell, "gmm-agn"), baseline))
        cells += [Cell(row, f"e {e} %", job(cell, e=e), number) for e, number in zip((5, 10, 15), by_e)]
        cells += [Cell(row, f"tau {tau}", job(cell, tau=tau), number) for tau, number in zip((0.5, 0.6, 0.7), by_tau)]
        cells += [Cell(row, f"alpha {a:g}", job(cell, alpha=a), number) for a, number in zip((0, 0.5, 1), by_alpha)]
    return Table("hyper", "Table 4: hyper-parameters, one changed at a time", tuple(cells))


def ablation() -> Table:
    """What the mixture gives to the prototypes."""
    published = {
        "Baseline": ("gmm-agn", (41.2, 76.3, 94.6, 74.73)),
        "CPC without GMM": ("contrastive", (42.9, 26.8, 93.92, 74.09)),
        "CPC": (None, (54.6, 79.63, 94.73, 75.4)),
    }
    cells = [
        Cell(row, column, job(cell, cleaner), number)
        for row, (cleaner, numbers) in published.items()
        for (column, cell), number in zip(SETS.items(), numbers)
    ]
    return Table("ablation", "Table 5: CPC without the mixture", tuple(cells))


def prototypes() -> Table:
    """Prototypes as classifier: test pictures go to the class whose prototype scores highest. Only WebVision's is published."""
    cells = [
        Cell("CPC, prototypes", column, job(cell), 78.44 if cell == "webvision" else None, measure="accuracy.prototypes")
        for column, cell in SETS.items()
    ]
    note = "The paper gives 78.44 on WebVision (and 72.23 for MoPro's prototypes there) and no number for the others."
    return Table("prototypes", "The prototypes as classifier", tuple(cells), note)


def small() -> Table:
    """Table 3, shortened, for anyone: Fashion-MNIST, the small network, a CPU. The paper has no such cell."""
    rows = {"plain training (ce)": "ce", **CLEANERS}
    column = "Fashion-MNIST, sym 50 %"
    return Table(
        "small",
        "Table 3, shortened, on Fashion-MNIST",
        tuple(Cell(row, column, _small_job(cleaner), None) for row, cleaner in rows.items()),
        "A short run of a small network on part of Fashion-MNIST, which the paper does not use: it shows the machinery and how "
        "the cleaners compare there, not the paper's numbers.",
    )


def _small_job(cleaner: str) -> Job:
    how = {"method": "ce"} if cleaner == "ce" else {"cleaner": cleaner}
    options = how | {
        "data.noise": "sym:0.5",
        "data.limit": SMALL_SAMPLES,
        "data.test_limit": 2_000,
        "training.warmup": SMALL_WARMUP,
        "training.batch": 32,
        "training.warmup_batch": 32,
        "training.lambda_u": 25.0,  # as DivideMix has it at 50 % noise; and as the paper has it, not the preset for short runs:
        "training.beta": 4.0,
        "training.mixed": True,
        "views.policy": "auto",
        "cleaning.mixture_threshold": 0.5,
        "cleaning.mixture_memory": 1,
    }
    name = f"fashion-mnist-sym50+{cleaner}"
    return Job(name, "fashion-mnist", "fashion-mnist", 20, tuple(options.items()), 60_000, SMALL_EPOCHS)


SMALL_SAMPLES, SMALL_EPOCHS, SMALL_WARMUP = 2_000, 18, 6
TABLES = {table.__name__: table for table in (table1, table2, table3, hyper, ablation, prototypes, small)}
