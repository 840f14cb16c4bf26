"""Draws figures for a paper with matplotlib; saved SVG and PNG files repeat byte for byte."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelsieve.errors import ToolError
from labelsieve.reproduce.curves import PLAIN, Density, Line
from labelsieve.runs import atomic

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
OTHERS = ("#E69F00", "#999933", "#56B4E9", "#882255")  # of cleaners of somebody's own and of other settings, in turn
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
