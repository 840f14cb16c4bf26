"""Pickles of plain data: bytes go in, dicts, lists, text, numbers and NumPy arrays come out.

A pickle is a program. This reader answers the few names that rebuild an array with stand-ins of its own, and
refuses any other name with a `ToolError` before anything is imported or called. NumPy's own functions stay
out of reach too: a crafted array state can corrupt memory inside them.
"""

import io
import pickle
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.errors import ToolError


class _Kind:
    """Stands in for `numpy.dtype`: whole numbers and floats only."""

    def __init__(self, code: str | bytes, *_: object) -> None:
        if not re.fullmatch(r"[uif][1248]", _text(code)):
            raise pickle.UnpicklingError(f"an array of {_text(code)!r}")
        self.dtype = np.dtype(_text(code))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = _text(state[1])
        self.dtype = self.dtype.newbyteorder("=" if order == "|" else order)  # type: ignore[arg-type]


class _Array:
    """Stands in for `numpy.ndarray`: made empty, then filled by its state."""

    value: NDArray[Any]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, raw = state
        self.value = _rebuilt(raw, kind, shape, "F" if by_columns else "C")


def _empty_array(*_: object) -> _Array:
    """Stands in for NumPy's `_reconstruct`, protocols 0 to 4."""
    return _Array()


def _filled_array(raw: bytes, kind: _Kind, shape: tuple[int, ...], order: str, *_: object) -> _Array:
    """Stands in for NumPy's `_frombuffer`, protocol 5."""
    made = _Array()
    made.value = _rebuilt(raw, kind, shape, order)
    return made


def _rebuilt(raw: bytes, kind: _Kind, shape: tuple[int, ...], order: Any) -> NDArray[Any]:
    if order not in ("C", "F") or not isinstance(raw, bytes | bytearray):
        raise pickle.UnpicklingError("an array in an unusual form")
    return np.frombuffer(bytes(raw), kind.dtype).reshape(shape, order=order)


def _latin1(text: str, encoding: str) -> bytes:
    """Stands in for `_codecs.encode`: protocols 0 to 2 write bytes as latin1 text."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the codec {encoding!r}")
    return text.encode("latin1")


# NumPy 2 moved two of them; files name the old or the new place.
STAND_INS: dict[str, Any] = {
    "_codecs.encode": _latin1,
    "numpy.ndarray": _Array,
    "numpy.dtype": _Kind,
    "numpy.core.multiarray._reconstruct": _empty_array,
    "numpy._core.multiarray._reconstruct": _empty_array,
    "numpy.core.numeric._frombuffer": _filled_array,
    "numpy._core.numeric._frombuffer": _filled_array,
}


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that knows the stand-ins only. Python 2 text stays bytes."""

    def __init__(self, stream: io.BytesIO, place: str) -> None:
        super().__init__(stream, encoding="bytes")
        self._place = place

    def find_class(self, module: str, name: str) -> Any:
        asked = f"{module}.{name}"
        if asked not in STAND_INS:
            raise ToolError(
                f'{self._place}: the pickle asks for "{asked}", which a data file never needs; '
                f"nothing was run. Delete the file and fetch it from its official source"
            )
        return STAND_INS[asked]


def read_plain(content: bytes, place: str, skip: int = 0) -> dict[str, Any]:
    """The dict pickled in `content`, after `skip` other pickles, its keys as text; `place` names the file in errors."""
    stream = io.BytesIO(content)
    try:
        for _ in range(skip):
            _PlainUnpickler(stream, place).load()
        found = _PlainUnpickler(stream, place).load()
    except ToolError:
        raise
    except Exception as error:  # a damaged pickle can fail with nearly any exception, and all mean the same here
        raise ToolError(
            f"{place}: not a whole pickle of plain data ({type(error).__name__}: {error}); unpack or fetch it again"
        ) from error
    if not isinstance(found, dict):
        raise ToolError(f"{place}: it holds a {type(found).__name__} where a dict was expected; is it the right file?")
    return {_text(key): _unwrapped(value, place) for key, value in found.items()}


def _unwrapped(value: object, place: str) -> object:
    if not isinstance(value, _Array):
        return value
    if not hasattr(value, "value"):
        raise ToolError(f"{place}: it has an array without its content; unpack or fetch it again")
    return value.value


def texts(values: object, place: str) -> tuple[str, ...]:
    """A pickled list of names, which may be bytes (Python 2) or text."""
    if not isinstance(values, list) or not all(isinstance(value, bytes | str) for value in values):
        raise ToolError(f"{place}: a list of names was expected; unpack or fetch the file again")
    return tuple(_text(value) for value in values)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
