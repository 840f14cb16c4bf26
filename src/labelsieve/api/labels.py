"""Labels as people write them go in (any hashables); numbers 0..K-1 and the classes come out, and back."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.errors import UsageError, suggest


class BadInput(UsageError, ValueError):
    """An argument that cannot be used; a `ValueError` too, because that is what scikit-learn's users expect."""


def plain(values: Any) -> Any:
    """What numpy understands stays as it is; torch tensors come to the host, without gradient, and bfloat16 as float32."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()


def numbered(labels: Any, classes: Sequence[Hashable] | None = None) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Numbers (N,) and classes (K,): those given, else all that occur, sorted where they can be, else as they first occur."""
    labels = plain(labels)
    if classes is None and isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biuUS":
        found, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int64), found
    names = _listed(labels)
    missing = next((row for row, name in enumerate(names) if is_missing(name)), None)
    if missing is not None:
        raise BadInput(f"labels: row {missing} has no label ({names[missing]!r}); fill it in or leave the row out")
    kinds = _sorted(dict.fromkeys(_hashable(names))) if classes is None else list(classes)
    place = {name: number for number, name in enumerate(kinds)}
    if len(place) < len(kinds):
        twice = next(name for name in kinds if kinds.count(name) > 1)
        raise BadInput(f"classes: {twice!r} is there {kinds.count(twice)} times; name each class once")
    for row, name in enumerate(names):
        if name not in place:
            near = suggest(str(name), [str(kind) for kind in kinds])
            raise BadInput(f"labels: row {row} has {name!r}, which is not one of the {len(kinds)} classes{near}")
    return np.array([place[name] for name in names], dtype=np.int64), as_array(kinds)


def is_missing(name: Any) -> bool:
    """None, NaN (which differs from itself), or what pandas puts for a gap (which refuses to say)."""
    try:
        return name is None or bool(name != name)
    except (TypeError, ValueError):
        return type(name).__name__ == "NAType"


def check_present(labels: Any) -> None:
    """`BadInput` for a gap among labels that are objects, of which scikit-learn's own check says that they are no classes."""
    kind = getattr(getattr(labels, "dtype", None), "kind", "O")
    if kind != "O" or isinstance(labels, str) or not hasattr(labels, "__len__") or not hasattr(labels, "__iter__"):
        return
    row = next((row for row, name in enumerate(labels) if is_missing(name)), None)
    if row is not None:
        raise BadInput(f"y: row {row} has no label; fill it in or leave the row out")


def _listed(labels: Any) -> list[Hashable]:
    """One label a row, as Python's own values: 3 rather than numpy's int64(3)."""
    shape = getattr(labels, "shape", None)
    if (shape is not None and len(shape) > 1 and not isinstance(labels, np.ndarray)) or not hasattr(labels, "__iter__"):
        what = type(labels).__name__ + (f" of shape {tuple(shape)}" if shape else "")
        raise BadInput(f"labels: this is {what}; one label a row belongs here, (N,)")
    names = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    return [name.item() if isinstance(name, np.generic) else name for name in names]


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
