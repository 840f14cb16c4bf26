"""Turns pictures held in Python (paths, Pillow images, arrays) into a backbone's features."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelsieve.api.labels import BadInput, plain
from labelsieve.api.samples import form_of, stacked
from labelsieve.backbones.backbone import backbone_for, plain_name
from labelsieve.backbones.embedding import Embedder, placed
from labelsieve.backbones.hub import own_weights
from labelsieve.backbones.pictures import ArrayPictures, FilePictures, LoosePictures, Pictures
from labelsieve.data.pictures.cache import default_cache_dir
from labelsieve.data.pictures.decode import SUFFIXES
from labelsieve.data.pictures.origins import Files
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError
from labelsieve.runs.eyes import at_hand
from labelsieve.terminal.console import console

LOAD_PICTURES = (
    "names of files are read by the command `labelsieve train`, from a folder with one for each class or a table of paths and "
    "labels; here, give the pictures themselves, all of one size: "
    'np.stack([np.asarray(Image.open(path).convert("RGB").resize((64, 64))) for path in paths])'
)
MAKE_VECTORS = (
    "names of files are not read here; give the vectors (N, D) that a network makes of the pictures, or let "
    "`labelsieve train` read the files and learn from them"
)
NAMED = 3  # pictures that cannot be read, of which each is named


def check_no_names(samples: Any, name: str, remedy: str) -> None:
    """`BadInput` where samples are paths: one, a row of them, or a table's only column."""
    found, depth = samples, 0
    while not isinstance(found, (str, PathLike)):
        try:
            found, depth = getattr(found, "iloc", found)[0], depth + 1
        except (TypeError, LookupError, ValueError, NotImplementedError):  # nothing in it, or no such thing as a first one
            return
        if depth > 2:
            return
    # Text in a column of a table may as well be a feature that was not encoded, of which scikit-learn tells.
    if depth < 2 or isinstance(found, PathLike) or Path(found).suffix.lower() in SUFFIXES:
        raise BadInput(f"{name} holds text ({str(found)[:80]!r}); {remedy}")


@dataclass(frozen=True)
class Seen:
    """Features (N, D), zeros in rows that cannot be read; these, {row: reason}; and the paths, where pictures came by them."""

    features: NDArray[np.float32]
    unread: dict[int, str]
    paths: list[str] | None

    def words(self) -> str:
        """What is said of those that cannot be read."""
        first = [f"{row if self.paths is None else self.paths[row]} ({why})" for row, why in list(self.unread.items())[:NAMED]]
        more = f" and {len(self.unread) - NAMED:,} more" if len(self.unread) > NAMED else ""
        return f"{len(self.unread):,} of {len(self.features):,} pictures cannot be read: {', '.join(first)}{more}"


def seen_through(
    backbone: str | None,
    weights: str | PathLike[str] | None,
    pictures: Any,
    name: str,
    device: str | torch.device = "cpu",
    offline: bool = False,
) -> Seen:
    """The pictures through timm's network `backbone`; None: one whose weights are on this machine. What is downloaded is printed.

    Features are kept in the user's cache folder, as the command line keeps them.
    """
    try:
        embedder = _embedder(backbone, weights, device, offline)
        held, problems, paths = _held(pictures, name)
        if isinstance(held, FilePictures):
            whole = np.zeros((len(held.origin) + len(problems), embedder.width), np.float32)
            rows = [row for row in range(len(whole)) if row not in problems]
            taken = embedder.of(held)
            whole[rows] = taken.values
            unread = problems | {rows[row]: why for row, why in taken.reasons.items()}
            return Seen(whole, dict(sorted(unread.items())), paths)
        return Seen(embedder.of(held).values, {}, None)
    except BadInput:
        raise
    except ToolError as error:
        raise BadInput(str(error)) from None


def _embedder(backbone: str | None, weights: str | PathLike[str] | None, device: str | torch.device, offline: bool) -> Embedder:
    found = at_hand({"features.backbone": backbone, "features.weights": weights})
    if found is None:
        raise BadInput(
            "no weights of a pretrained network are on this machine; name one, which is downloaded once: "
            'backbone="tf_efficientnet_lite0"'
        )
    name = plain_name(found.name)
    place = own_weights(name).fetched(console.print, offline) if found.weights is None else Path(found.weights).expanduser()
    chosen = choose_device(str(device))
    return Embedder(placed(backbone_for(name, place), chosen), chosen, default_cache_dir())


def _held(pictures: Any, name: str) -> tuple[Pictures, dict[int, str], list[str] | None]:
    """Something to look at; of paths, those that lead to no file {row: reason}, and all of them."""
    if isinstance(pictures, (str, PathLike)):
        raise BadInput(f"{name}={str(pictures)!r} is one path; give a list of the pictures' paths, one for each label")
    rows = list(pictures) if _is_row(pictures) else None
    if rows and all(isinstance(row, (str, PathLike)) for row in rows):
        paths = [str(Path(row).expanduser().absolute()) for row in rows]
        files, problems = Files(Path("/"), paths, outside=True).examined()
        keep = np.array([row for row in range(len(paths)) if row not in problems], np.int64)
        return FilePictures(files.take(keep)), problems, [str(row) for row in rows]
    if rows and all(hasattr(row, "getbands") for row in rows):
        return LoosePictures(rows), {}, None
    samples = np.asarray(stacked(plain(pictures), name))
    if samples.ndim not in (3, 4):
        raise BadInput(
            f"{name} has the shape {samples.shape}; give paths, Pillow's pictures, or arrays (N, H, W), (N, H, W, C) or "
            "(N, C, H, W)"
        )
    return ArrayPictures(form_of(samples).tensor(samples), name), {}, None


def _is_row(pictures: Any) -> bool:
    """A list, or a series or array of objects or text, one for each picture."""
    with suppress(AttributeError):
        return len(pictures.shape) == 1
    return isinstance(pictures, Sequence)
