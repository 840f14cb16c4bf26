"""Labels as people write them go in (any hashables); numbers 0..K-1 and the classes come out, and back."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.errors import UsageError, suggest


class BadInput(UsageError, ValueError):
    """An argument that cannot be used; a `ValueError` too, because that is what scikit-learn's users expect."""


def plain(values: Any) -> Any:
    """Torch tensors and anything else that numpy understands as it is; torch ones on the host and without gradient."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def numbered(labels: Any, classes: Sequence[Hashable] | None = None) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Numbers (N,) and classes (K,): those given, else all that occur, sorted where they can be, else as they first occur."""
    labels = plain(labels)
    if classes is None and isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biuUS":
        found, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int64), found
    names: list[Hashable] = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    missing = next((row for row, name in enumerate(names) if name is None or name != name), None)
    if missing is not None:
        raise BadInput(f"labels: row {missing} has no label ({names[missing]!r}); fill it in or leave the row out")
    kinds = _sorted(dict.fromkeys(_hashable(names))) if classes is None else list(classes)
    place = {name: number for number, name in enumerate(kinds)}
    for row, name in enumerate(names):
        if name not in place:
            near = suggest(str(name), [str(kind) for kind in kinds])
            raise BadInput(f"labels: row {row} has {name!r}, which is not one of the {len(kinds)} classes{near}")
    return np.array([place[name] for name in names], dtype=np.int64), as_array(kinds)


def as_array(names: Sequence[Hashable]) -> NDArray[Any]:
    """One axis, whatever the names are: tuples stay tuples, mixed types stay what they are."""
    if names and len({type(name) for name in names}) == 1 and isinstance(names[0], (str, bool, int)):
        return np.array(names)
    result = np.empty(len(names), dtype=object)
    result[:] = names
    return result


def _hashable(names: Iterable[Any]) -> list[Hashable]:
    names = list(names)
    try:
        hash(tuple(names))
    except TypeError:
        row = next(row for row, name in enumerate(names) if not isinstance(name, Hashable))
        raise BadInput(f"labels: row {row} is a {type(names[row]).__name__}; one label a row belongs here, (N,)") from None
    return names


def _sorted(names: Iterable[Any]) -> list[Any]:
    names = list(names)
    try:
        return sorted(names)
    except TypeError:  # of different types: in the order in which they first occur
        return names
