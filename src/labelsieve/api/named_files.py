"""Notices names of files where samples should be, and says what to do."""

from os import PathLike
from pathlib import Path
from typing import Any

from labelsieve.api.labels import BadInput
from labelsieve.data.pictures.decode import SUFFIXES

LOAD_PICTURES = (
    "names of files are read by the command `labelsieve train`, from a folder with one for each class or a table of paths and "
    "labels; here, give the pictures themselves, all of one size: "
    'np.stack([np.asarray(Image.open(path).convert("RGB").resize((64, 64))) for path in paths])'
)
MAKE_VECTORS = (
    "names of files are not read here; give the vectors (N, D) that a network makes of the pictures, or let "
    "`labelsieve train` read the files and learn from them"
)


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
