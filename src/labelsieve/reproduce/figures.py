"""The figures of run folders, grouped by data and noise, drawn with matplotlib as SVG and PNG, with their numbers as CSV.

Saved files repeat byte for byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelsieve.config.method_settings import divides
from labelsieve.config.schema import DataConfig
from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce.curves import (
    KINDS,
    PLAIN,
    Density,
    Line,
    Tested,
    agreement_lines,
    auc_lines,
    class_tests,
    densities,
    share_that_differs,
    training_panels,
)
from labelsieve.results.kept import read_early_losses
from labelsieve.runs import atomic
from labelsieve.runs.findings import Record, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.texts import as_csv

Looks = dict[tuple[str, str], tuple[str, Any]]  # (cleaner, settings) -> colour and dashes
BLUE, VERMILION, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#555555"
LOOKS = {
    PLAIN: ("#000000", "-"),
    "gmm-agn": (GREY, (0, (4, 1.5))),
    "gmm-awr": (GREEN, (0, (1, 1))),
    "cpc-agn": (BLUE, "-"),
    "cpc-awr": (VERMILION, "-"),
    "contrastive": (PURPLE, (0, (5, 1, 1, 1))),
}
OTHERS = ("#E69F00", "#999933", "#56B4E9", "#882255")  # of your own cleaners and of other settings, in turn
OTHER_DASHES = ((0, (3, 1, 1, 1, 1, 1)), (0, (6, 2)), "-")  # the next ones when all colours are used
LEGEND = 6  # lines whose legend has room among them
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "figure.dpi": 100,
    "savefig.dpi": 300,
    "svg.hashsalt": "labelsieve",
}
WIDTH = 6.75  # inches: two columns


def _pyplot() -> Any:
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        raise ToolError('figures need matplotlib, which is not installed; run: pip install "labelsieve[figures]"') from None
    plt.rcParams.update(STYLE)
    return plt


def save(figure: Any, stem: Path) -> list[Path]:
    """`stem`.svg and `stem`.png; nothing in them tells when they were made."""
    places = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    facts: dict[str, dict[str, Any]] = {"svg": {"Date": None, "Creator": "labelsieve"}, "png": {"Software": "labelsieve"}}
    for place in places:
        kind = place.suffix[1:]
        atomic.write_file(
            place,
            lambda draft, kind=kind: figure.savefig(draft, format=kind, metadata=facts[kind]),  # type: ignore[misc]
        )
    _pyplot().close(figure)
    return places


def losses_figure(found: Sequence[Density], shares: dict[str, float | None], words: str) -> Any:
    """Mean density over classes with its band, clean beside noisy, and how many classes differ from the whole set."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(WIDTH * 0.62, 2.7), layout="constrained")
    for one, colour in zip(found, (BLUE, VERMILION)):
        share = shares.get(one.kind)
        differ = "" if share is None else f" ({100 * share:.0f} % of classes differ)"
        axes.plot(one.loss, one.mean, color=colour, label=f"{'clean' if one.kind == 'clean' else 'wrong'} labels{differ}")
        axes.fill_between(one.loss, one.low, one.high, color=colour, alpha=0.2, linewidth=0)
    axes.set(xlabel="cross-entropy at the end of the warm-up", ylabel="density", xlim=(0, found[0].loss[-1]))
    axes.set_ylim(0, 1.2 * max(float(one.high.max()) for one in found))  # room for the legend
    axes.legend(loc="upper right")
    band = "line: mean over classes, one network of the first seed; band: 95 % of them"
    band += "\ndiffer: p < 0.05, Kolmogorov-Smirnov, all networks and seeds (at most 5 % by chance)"
    return _captioned(figure, f"{words}\n{band}")


def lines_figure(panels: Sequence[tuple[str, Sequence[Line]]], warmup: int, words: str) -> Any:
    """A panel for each measure, two in a row; the warm-up is shaded, seeds are shown as a band where there are several."""
    plt = _pyplot()
    rows = (len(panels) + 1) // 2
    width, height = WIDTH if len(panels) > 1 else WIDTH * 0.62, 2.7 * rows
    figure, grid = plt.subplots(rows, min(len(panels), 2), figsize=(width, height), layout="constrained", squeeze=False)
    looks = looks_of([line for _, lines in panels for line in lines])  # of all, so that one name looks alike everywhere
    for axes, (name, lines) in zip(grid.flat, panels):
        _panel(axes, name, lines, looks, warmup)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    if rows > 1 or max(len(lines) for _, lines in panels) > LEGEND:
        named = {name: handle for axes in grid.flat for handle, name in zip(*axes.get_legend_handles_labels())}
        figure.set_size_inches(width + 2, height)
        figure.legend(named.values(), named.keys(), loc="outside right upper")
    else:
        grid[0][-1].legend(loc="best")
    several = any(line.seeds > 1 for _, lines in panels for line in lines)
    return _captioned(figure, f"{words}\nline: mean over seeds; band: lowest to highest seed" if several else words)


def _panel(axes: Any, name: str, lines: Sequence[Line], looks: Looks, warmup: int) -> None:
    last = max(int(line.epochs[-1]) for line in lines)
    for line in lines:
        colour, dashes = looks[line.cleaner, line.settings]
        style = {"color": colour, "linestyle": (0, (2, 2)) if line.teacher else dashes, "label": line.label}
        axes.plot(line.epochs, line.mean, **style, marker="o" if len(line.epochs) < 3 else None, markersize=3)
        if line.seeds > 1:
            axes.fill_between(line.epochs, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="epoch", ylabel=name, xlim=(0, last))
    axes.xaxis.get_major_locator().set_params(integer=True)
    if not warmup:
        return
    axes.axvspan(0, warmup, color="#000000", alpha=0.05, linewidth=0)
    axes.annotate(
        "warm-up", (warmup / 2, 1), xycoords=("data", "axes fraction"), xytext=(0, 2), textcoords="offset points",
        ha="center", va="bottom", fontsize=6.5, color=GREY,
    )  # fmt: skip


def looks_of(lines: Sequence[Line]) -> Looks:
    """Colour and dashes by cleaner and settings; a cleaner of the paper with its usual settings always looks the same."""
    looks: Looks = {(cleaner, ""): look for cleaner, look in LOOKS.items()}
    own = [place for place in dict.fromkeys((line.cleaner, line.settings) for line in lines) if place not in looks]
    for number, place in enumerate(own):
        again, colour = divmod(number, len(OTHERS))
        looks[place] = (OTHERS[colour], OTHER_DASHES[again % len(OTHER_DASHES)])
    return looks


def _captioned(figure: Any, words: str) -> Any:
    """What was run stands small below the drawing, so that a picture that travels alone still says so."""
    figure.supxlabel(words, fontsize=6.2, color=GREY)
    return figure


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
    """Where your own data lie; "" of a named set, which is the same wherever it lies."""
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
    drawn.files += save(losses_figure(shapes, shares, group.words), stem)
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
    drawn.files += save(lines_figure(panels, warmup, group.words), out / name)
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
