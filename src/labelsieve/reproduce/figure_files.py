"""Writes the figures of run folders, grouped by data and noise, as SVG and PNG, with their numbers as CSV."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labelsieve.config.method_settings import divides
from labelsieve.config.schema import DataConfig
from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce import drawings
from labelsieve.reproduce.curves import (
    KINDS,
    Line,
    Tested,
    agreement_lines,
    auc_lines,
    class_tests,
    densities,
    share_that_differs,
    training_panels,
)
from labelsieve.results.early import read_early_losses
from labelsieve.runs import atomic
from labelsieve.runs.findings import Record, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.texts import as_csv

PAPER = {"cifar10": 450, "cifar100": 450, "clothing1m": 80, "webvision": 100, "fashion-mnist": 20}  # epochs (the last: ours)


@dataclass(frozen=True)
class Group:
    """Runs on the same data with the same noise."""

    name: str
    folders: list[RunFolder]
    records: list[Record]

    @property
    def words(self) -> str:
        """What was run, and whether it was short."""
        config = self.records[0].config
        epochs = sorted({record.epochs_done for record in self.records})
        seeds = len({record.config.seed for record in self.records})
        parts = [self.name, f"{' to '.join(map(str, dict.fromkeys((epochs[0], epochs[-1]))))} epochs"]
        if config.data.limit is not None:
            parts.append(f"{config.data.limit:,} pictures")
        parts.append(f"{seeds} seed{'s' if seeds > 1 else ''}")
        full = PAPER.get(config.data.source.partition(":")[0])
        short = config.data.limit is not None or (full is not None and epochs[0] < full)
        return ", ".join(parts) + (" (SHORT RUN)" if short else "")


@dataclass
class Drawn:
    """Files that were written, findings in words, and why a figure could not be drawn."""

    files: list[Path] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def folders_in(paths: Sequence[Path]) -> list[RunFolder]:
    """Run folders themselves, and those inside sweep folders that have trained."""
    found: list[RunFolder] = []
    for path in paths:
        if (path / "sweep.json").is_file():
            inside = sorted(place.parent for place in path.glob("runs/*/seed*/metrics.jsonl"))
            if not inside:
                raise ToolError(f"{path}: no run of this sweep has trained yet; start one with `labelsieve reproduce TABLE`")
            found += [RunFolder.open(place) for place in inside]
        else:
            found.append(RunFolder.open(path))
    return found


def groups_of(folders: Sequence[RunFolder]) -> list[Group]:
    """Files of one name in two folders are two data sets, and then named with their folders."""
    records = [(folder, record) for folder in folders if (record := read_record(folder)).metrics]
    places: dict[str, set[str]] = {}
    for _, record in records:
        places.setdefault(_name(record.config.data), set()).add(_own_place(record.config.data))
    groups: dict[str, Group] = {}
    for folder, record in records:
        name = _name(record.config.data)
        if len(places[name]) > 1:
            name = _name(record.config.data, whole=True)
        group = groups.setdefault(name, Group(name, [], []))
        group.folders.append(folder)
        group.records.append(record)
    if not groups:
        raise UsageError("none of these runs has trained an epoch yet; there is nothing to draw")
    return list(groups.values())


def _own_place(data: DataConfig) -> str:
    """Where somebody's own data lie; "" of a named set, which is the same wherever it lies."""
    source, _, place = data.source.partition(":")
    return "" if source in PAPER or source == "digits" else str(Path(place).absolute())


def _name(data: DataConfig, whole: bool = False) -> str:
    """`cifar100-sym90` of a named set, `arrays-stripes-sym30` of a file (or its `whole` path); fit for the name of a file."""
    source = data.source.partition(":")[0]
    kind, _, rate = data.noise.partition(":")
    share = f"{100 * float(rate):g}" if rate.replace(".", "", 1).isdigit() else Path(rate).stem
    place = Path(_own_place(data))
    own = (*place.parent.parts[1:], place.stem) if whole else (place.stem,)
    name = "-".join(word for word in (source, *own, f"{kind}{share}" if kind != "none" else "") if word)
    return "".join(sign if sign.isalnum() or sign in "-._" else "-" for sign in name)


def draw_all(group: Group, out: Path) -> Drawn:
    drawn = Drawn()
    out.mkdir(parents=True, exist_ok=True)
    draw_losses(group, out, drawn)
    warmup = max((r.config.training.warmup for r in group.records if divides(r.config)), default=0)
    draw_lines(group, out, drawn, f"{group.name}-auc", [("AUC, clean against wrong labels", auc_lines(group.records))], warmup)
    panels = [
        ("KL divergence of both cleaners", agreement_lines(group.records, "divergence")),
        ("labels judged alike, share", agreement_lines(group.records, "consistency")),
    ]
    draw_lines(group, out, drawn, f"{group.name}-agreement", panels, warmup)
    draw_lines(group, out, drawn, f"{group.name}-training", training_panels(group.records), warmup)
    return drawn


def draw_losses(group: Group, out: Path, drawn: Drawn) -> None:
    """Of the first run that keeps its losses: siblings that share a warm-up have the same ones."""
    kept = [(f, r) for f, r in zip(group.folders, group.records) if f.early_losses.is_file() and divides(r.config)]
    if not kept:
        drawn.missing.append(f"{group.name}: no run has finished its warm-up and kept its losses (early_losses.npz)")
        return
    by_seed = {record.config.seed: folder for folder, record in reversed(kept)}
    all_tests: dict[int, list[Tested]] = {}
    first = min(by_seed)
    for seed, folder in sorted(by_seed.items()):
        early = read_early_losses(folder)
        if early.wrong is None or early.wrong.all() or not early.wrong.any():
            drawn.missing.append(f"{folder.path}: nothing is known of which labels are wrong, or all are alike; no loss figure")
            return
        all_tests[seed] = class_tests(early)
        if seed == first:
            shapes = densities(early)
    together = [one for tested in all_tests.values() for one in tested]
    shares = {kind: share_that_differs(together, kind) for kind in KINDS}
    stem = out / f"{group.name}-losses"
    drawn.files += drawings.save(drawings.losses_figure(shapes, shares, group.words), stem)
    rows = [
        (one.kind, *(f"{value:.6g}" for value in values))
        for one in shapes
        for values in zip(one.loss, one.mean, one.low, one.high)
    ]
    _write(drawn, out / f"{group.name}-losses.csv", ("kind", "loss", "mean_density", "low", "high"), rows)
    lines = [
        (str(seed), str(one.network + 1), one.name, one.kind, str(one.samples), f"{one.statistic:.6g}", f"{one.p_value:.6g}")
        for seed, tested in all_tests.items()
        for one in tested
    ]
    header = ("seed", "network", "class", "kind", "samples", "statistic", "p_value")
    _write(drawn, out / f"{group.name}-ks.csv", header, lines)
    said = ", ".join(f"{kind} {100 * share:.0f} %" for kind, share in shares.items() if share is not None)
    drawn.found.append(
        f"{group.words}: classes whose losses differ from the whole set's (p < 0.05, at most 5 % by chance): {said}"
    )


def draw_lines(
    group: Group, out: Path, drawn: Drawn, name: str, panels: Sequence[tuple[str, Sequence[Line]]], warmup: int
) -> None:
    panels = [(label, lines) for label, lines in panels if lines]
    if not panels:
        drawn.missing.append(f"{name}: the runs have not divided their labels, or have nothing to measure it against")
        return
    drawn.files += drawings.save(drawings.lines_figure(panels, warmup, group.words), out / name)
    rows = [
        (
            *(label, line.cleaner, "mixture" if line.teacher else "cleaner", str(epoch)),
            *(f"{value:.6g}" for value in values),
            *(str(line.seeds), line.settings),
        )
        for label, lines in panels
        for line in lines
        for epoch, *values in zip(line.epochs, line.mean, line.low, line.high)
    ]
    header = ("measure", "cleaner", "what", "epoch", "mean_over_seeds", "lowest_seed", "highest_seed", "seeds", "other_settings")
    _write(drawn, out / f"{name}.csv", header, rows)


def _write(drawn: Drawn, place: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    atomic.write_text(place, as_csv(header, rows))
    drawn.files.append(place)
