"""Are odd samples found, and only these? Some are made odd on purpose, counted, and the rest taken as fine.

`python -m studies.odd_samples FILE.npz --strangers OTHER.npz [--noise 0.2]`: vectors of other things are put among vectors of
classes, under labels as they come. `python -m studies.odd_samples FOLDER`: copies of some pictures are spoilt. Real sets have
odd samples of their own, so precision is a lower bound; `alone` says how many are found where nothing was made odd.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from PIL import Image, ImageEnhance, ImageFilter
from rich.table import Table

from labelsieve.data.npz import read_npz
from labelsieve.data.pictures.decode import SUFFIXES, open_picture
from labelsieve.data.pictures.looks import BLANK, BLURRED, BRIGHT, DARK, DRAFT, LOOK, look, poor
from labelsieve.errors import UsageError
from labelsieve.results.likeness import laid_out, main_axes, unit
from labelsieve.results.sample_issues import off_topic
from labelsieve.terminal.console import as_command, console

SEEDS = 3
NEAREST = 15  # by which trust in a map is measured


def spoilt(generator: np.random.Generator) -> dict[str, tuple[str, Callable[[Image.Image], Image.Image]]]:
    """{how: (kind, what it does)}. Blur is told by its radius, a part of the shorter side."""

    def blur(part: float) -> Callable[[Image.Image], Image.Image]:
        return lambda picture: picture.filter(ImageFilter.GaussianBlur(part * min(picture.size)))

    def blank(picture: Image.Image) -> Image.Image:
        shape = (*picture.size[::-1], 3)
        values = generator.integers(0, 256, 3) + generator.normal(0, 2, shape)
        return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))

    def bright(picture: Image.Image) -> Image.Image:
        return Image.fromarray((255 - 0.15 * (255 - np.asarray(picture, float))).astype(np.uint8))

    return {
        **{f"blurred, {part:.1%}": (BLURRED, blur(part)) for part in (0.015, 0.02, 0.03, 0.05, 0.1)},
        "blank": (BLANK, blank),
        "dark": (DARK, lambda picture: ImageEnhance.Brightness(picture).enhance(0.12)),
        "bright": (BRIGHT, bright),
    }


def of_pictures(folder: Path, count: int) -> Table:
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    looks, pictures = [], []
    chosen = set(np.random.default_rng(0).choice(len(files), min(count, len(files)), replace=False).tolist())
    for row, file in enumerate(files):
        with file.open("rb") as stream:
            picture = open_picture(stream)
            picture.draft(None, DRAFT)
            picture.load()
            looks.append(look(picture))
            if row in chosen:
                stream.seek(0)
                pictures.append(open_picture(stream).convert("RGB"))
    table = Table("made", "of", "found", "others found", title=f"{folder}: {len(files):,} pictures")
    alone = poor(_looks(looks)) != ""
    table.add_row("alone", "", "", f"{int(alone.sum())}")
    for how, (kind, make) in spoilt(np.random.default_rng(1)).items():
        found = poor(_looks([*looks, *(look(make(picture)) for picture in pictures)]))
        hits = int((found[len(looks) :] == kind).sum())
        table.add_row(how, str(len(pictures)), str(hits), str(int((found[: len(looks)] != "").sum())))
    return table


def _looks(found: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(found), np.uint8).reshape(-1, LOOK)


def of_vectors(file: Path, strangers: list[Path], count: int, noise: float) -> Table:
    own = read_npz(file)
    values, labels = torch.from_numpy(own["features"]), np.unique(own["labels"], return_inverse=True)[1]
    table = Table(
        "strangers", "recall", "precision", "found", title=f"{file.name}: {len(labels):,}, {count} strangers, noise {noise}"
    )
    table.add_row("alone", "", "", f"{int(off_topic(values, _noisy(labels, noise, 0)).sum())}")
    for other in strangers:
        theirs, said = torch.from_numpy(read_npz(other)["features"]), []
        for seed in range(SEEDS):
            generator = np.random.default_rng(seed)
            rows = torch.from_numpy(generator.choice(len(theirs), count, replace=False))
            given = np.concatenate((_noisy(labels, noise, seed), generator.integers(0, labels.max() + 1, count)))
            found = off_topic(torch.cat((values, theirs[rows])), given)
            hits = int(found[len(labels) :].sum())
            said.append((hits / count, hits / max(int(found.sum()), 1), int(found.sum())))
        recall, precision, listed = np.mean(said, axis=0)
        table.add_row(other.stem, f"{recall:.2f}", f"{precision:.2f}", f"{listed:.0f}")
    return table


def _noisy(labels: np.ndarray, noise: float, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    other = (labels + generator.integers(1, labels.max() + 1, len(labels))) % (labels.max() + 1)
    return np.where(generator.random(len(labels)) < noise, other, labels)


def trust_of_map(file: Path) -> str:
    """How well neighbours stay neighbours on the map, and on the two main axes alone (1: all do)."""
    from sklearn.manifold import trustworthiness

    values = torch.from_numpy(read_npz(file)["features"])
    whole, axes = unit([values]), main_axes(unit([values]))[:, :2]
    found = [trustworthiness(whole.numpy(), flat, n_neighbors=NEAREST) for flat in (laid_out([values]), axes.numpy())]
    return f"{file.name}: trustworthiness of the map {found[0]:.3f}, of two main axes {found[1]:.3f}"


def main(
    data: Annotated[Path, typer.Argument(help="Vectors with labels (.npz), or a folder of pictures.")],
    strangers: Annotated[list[Path] | None, typer.Option(help="Vectors of other things; repeatable.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many are made odd.")] = 40,
    noise: Annotated[float, typer.Option(min=0, max=0.9, help="Share of labels made wrong, uniformly.")] = 0.0,
) -> None:
    """Make some samples odd and count which are found."""
    if data.is_dir():
        if strangers or noise:
            raise UsageError("--strangers and --noise are for vectors; of a folder, pictures are spoilt")
        console.print(of_pictures(data, count))
        return
    console.print(trust_of_map(data))
    console.print(of_vectors(data, strangers or [], count, noise))


if __name__ == "__main__":
    as_command(main)
