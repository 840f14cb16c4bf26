"""Pickles of plain data: bytes go in, dicts, lists, text, numbers and NumPy arrays come out.

A pickle is a program. This reader runs none but the few steps that rebuild an array; any other name that a
file asks for is refused with a `ToolError` before anything is imported or called.
"""

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from labelsieve.errors import ToolError


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    """What `_codecs.encode` does in such files: protocols 0 to 2 write bytes as latin1."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the codec {encoding!r}")
    return text.encode("latin1")


# Asked of an array itself, because NumPy 2 moved these functions and warns at their old place.
_RECONSTRUCT: Callable[..., Any] = np.empty(0).__reduce__()[0]  # type: ignore[assignment]
_FROM_BUFFER: Callable[..., Any] = np.empty(0).__reduce_ex__(5)[0]  # type: ignore[assignment]

ALLOWED: dict[tuple[str, str], Any] = {
    ("_codecs", "encode"): _latin1,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy.core.numeric", "_frombuffer"): _FROM_BUFFER,
    ("numpy._core.numeric", "_frombuffer"): _FROM_BUFFER,
}


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that looks names up in `ALLOWED` only. Python 2 text stays bytes."""

    def __init__(self, content: bytes, place: str) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")
        self._place = place

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise ToolError(
                f'{self._place}: the pickle asks for "{module}.{name}", which a data file never needs; '
                f"nothing was run. Delete the file and fetch it from its official source"
            )
        return ALLOWED[module, name]


def read_plain(content: bytes, place: str) -> dict[str, Any]:
    """The dict pickled in `content`, its keys as text; `place` names the file in errors."""
    try:
        found = _PlainUnpickler(content, place).load()
    except ToolError:
        raise
    except (
        Exception
    ) as error:  # a damaged pickle can fail with nearly any exception, and all mean the same here
        raise ToolError(
            f"{place}: not a whole pickle file ({type(error).__name__}: {error}); unpack or fetch it again"
        ) from error
    if not isinstance(found, dict):
        raise ToolError(
            f"{place}: it holds a {type(found).__name__} where a dict was expected; is it the right file?"
        )
    return {_text(key): value for key, value in found.items()}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def texts(values: object, place: str) -> tuple[str, ...]:
    """A pickled list of names, which may be bytes (Python 2) or text."""
    if not isinstance(values, list) or not all(isinstance(value, bytes | str) for value in values):
        raise ToolError(f"{place}: a list of names was expected; unpack or fetch the file again")
    return tuple(_text(value) for value in values)
