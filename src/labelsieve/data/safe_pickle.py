"""Reads pickles of plain data: dicts, lists, text, numbers and NumPy arrays, as CIFAR's files hold them.

A pickle is a program, so none is run. The opcodes that say plain data are followed one by one, within bounds; the few names that
rebuild an array are answered by stand-ins of our own, and any other name or opcode is refused. NumPy's own functions stay out of
reach: a crafted array state can corrupt memory inside them.
"""

import io
import pickletools
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.doors import Damage, reading
from labelsieve.errors import ToolError

REMEDY = "delete it, and fetch it from its official source"
STEPS = 3_000_000  # CIFAR-100's training file has 0.3 million
DEPTH = 8  # an array's shape, in its state, in a dict: 3
KEY = 200  # characters; long keys take long to compare
ORDERS = {"<": "<", ">": ">", "=": "=", "|": "="}


class _Kind:
    """Stands in for `numpy.dtype`: whole numbers and floats only."""

    def __init__(self, code: object, *_: object) -> None:
        if not isinstance(code, str | bytes) or not re.fullmatch(r"[uif][1248]", _text(code)):
            raise Damage(f"an array of {_named(code)}")
        self.dtype = np.dtype(_text(code))

    def take(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(ORDERS[_text(state[1])])  # type: ignore[arg-type]


class _Array:
    """Stands in for `numpy.ndarray`: made empty, then filled by its state."""

    value: NDArray[Any]

    def take(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, raw = state
        self.value = _rebuilt(raw, kind, shape, "F" if by_columns is True else "C")


def _empty_array(*_: object) -> _Array:
    """Stands in for NumPy's `_reconstruct`, protocols 0 to 4."""
    return _Array()


def _filled_array(raw: object, kind: object, shape: object, order: object, *_: object) -> _Array:
    """Stands in for NumPy's `_frombuffer`, protocol 5."""
    made = _Array()
    made.value = _rebuilt(raw, kind, shape, order)
    return made


def _rebuilt(raw: object, kind: object, shape: object, order: Any) -> NDArray[Any]:
    """The array lies in the bytes of the pickle: nothing is copied, however many arrays name the same bytes."""
    if order not in ("C", "F") or not isinstance(raw, bytes) or not isinstance(kind, _Kind) or not isinstance(shape, tuple):
        raise Damage("an array in an unusual form")
    if not all(type(size) is int and size >= 0 for size in shape):
        raise Damage("an array of no shape")
    return np.frombuffer(raw, kind.dtype).reshape(shape, order=order)


def _latin1(text: object, encoding: object) -> bytes:
    """Stands in for `_codecs.encode`: protocols 0 to 2 write bytes as latin1 text."""
    if encoding != "latin1" or not isinstance(text, str):
        raise Damage(f"the codec {_named(encoding)}")
    return text.encode("latin1")


# NumPy 2 moved two of them; files name the old or the new place.
STAND_INS: dict[str, Callable[..., Any]] = {
    "_codecs.encode": _latin1,
    "numpy.ndarray": _Array,
    "numpy.dtype": _Kind,
    "numpy.core.multiarray._reconstruct": _empty_array,
    "numpy._core.multiarray._reconstruct": _empty_array,
    "numpy.core.numeric._frombuffer": _filled_array,
    "numpy._core.numeric._frombuffer": _filled_array,
}

PLAIN = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT")
TEXTS = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
OLD_TEXTS = ("STRING", "BINSTRING", "SHORT_BINSTRING")  # Python 2's str, which may be either: it stays bytes
BYTES = ("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8")
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
MARK = object()


class _Reading:
    """Follows the pickles that lie one after the other in `content`.

    A value that holds others is used once, so what comes out is no larger than the file. Lists that are doubled sixty times by
    naming themselves twice would never end for whoever goes through them.
    """

    def __init__(self, content: bytes) -> None:
        self._stream = io.BytesIO(content)
        self._steps = STEPS
        self._encodable = len(content)

    def next(self) -> object:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._depths: dict[int, int] = {}  # by identity, of what holds other values
        for opcode, argument, _ in pickletools.genops(self._stream):
            self._steps -= 1
            if self._steps < 0:
                raise Damage(f"more than {STEPS:,} steps")
            if opcode.name == "STOP":
                break
            self._step(opcode.name, argument)
        (found,) = self._stack
        return found

    def _step(self, opcode: str, argument: Any) -> None:
        if opcode in NUMBERS or opcode in TEXTS:
            self._stack.append(argument)
        elif opcode in OLD_TEXTS:
            self._stack.append(argument.encode("latin1"))
        elif opcode in BYTES:
            self._stack.append(bytes(argument))
        elif opcode in PLAIN:
            self._stack.append(PLAIN[opcode])
        elif opcode in TUPLES:
            self._push(tuple(self._popped(TUPLES[opcode])))
        else:
            self._rarer_step(opcode, argument)

    def _rarer_step(self, opcode: str, argument: Any) -> None:
        match opcode:
            case "PROTO" | "FRAME":
                pass
            case "MARK":
                self._stack.append(MARK)
            case "TUPLE":
                self._push(tuple(self._after_mark()))
            case "EMPTY_LIST" | "LIST":
                self._push(self._after_mark() if opcode == "LIST" else [])
            case "APPEND" | "APPENDS":
                self._extend(self._after_mark() if opcode == "APPENDS" else self._popped(1))
            case "EMPTY_DICT" | "DICT":
                parts = self._after_mark() if opcode == "DICT" else []
                self._push({})
                self._update(parts)
            case "SETITEM" | "SETITEMS":
                self._update(self._after_mark() if opcode == "SETITEMS" else self._popped(2))
            case "PUT" | "BINPUT" | "LONG_BINPUT" | "MEMOIZE":
                self._remember(len(self._memo) if opcode == "MEMOIZE" else argument)
            case "GET" | "BINGET" | "LONG_BINGET":
                self._recall(argument)
            case "GLOBAL" | "STACK_GLOBAL":
                self._stack.append(_stand_in(*(argument.split(" ") if opcode == "GLOBAL" else self._popped(2))))
            case "REDUCE":
                self._call(*self._popped(2))
            case "BUILD":
                (state,) = self._popped(1)
                self._top(_Kind, _Array).take(state)
            case _:
                raise Damage(f"the opcode {opcode}, which no data file needs")

    def _popped(self, count: int) -> list[Any]:
        if count > len(self._stack):
            raise Damage("values are missing")
        start = len(self._stack) - count
        parts = self._stack[start:]
        del self._stack[start:]
        return parts

    def _after_mark(self) -> list[Any]:
        """The values that lie after the last mark; they go, and so does the mark."""
        count = next((count for count, value in enumerate(reversed(self._stack)) if value is MARK), None)
        if count is None:
            raise Damage("a mark is missing")
        return self._popped(count + 1)[1:]

    def _top(self, *kinds: type) -> Any:
        if not self._stack or type(self._stack[-1]) not in kinds:
            raise Damage("a value in an unusual place")
        return self._stack[-1]

    def _push(self, holder: Any) -> None:
        self._stack.append(holder)
        self._depths[id(holder)] = 1  # it may lie where another one was
        self._deepen(holder, () if isinstance(holder, dict) else holder)

    def _deepen(self, holder: Any, parts: Iterable[Any]) -> None:
        below = max((self._depths[id(part)] for part in parts if isinstance(part, list | dict | tuple)), default=0)
        self._depths[id(holder)] = max(self._depths[id(holder)], below + 1)
        if below >= DEPTH:
            raise Damage(f"nested more than {DEPTH} deep")

    def _extend(self, parts: list[Any]) -> None:
        holder = self._top(list)
        holder.extend(parts)
        self._deepen(holder, parts)

    def _update(self, parts: list[Any]) -> None:
        """Keys are short text: numbers can be chosen so that a dict of them takes for ever, and long text to compare."""
        holder = self._top(dict)
        for key, value in zip(parts[::2], parts[1::2], strict=True):
            if not isinstance(key, str | bytes) or len(key) > KEY:
                raise Damage("a key that is no short text")
            holder[key] = value
        self._deepen(holder, parts[1::2])

    def _remember(self, place: int) -> None:
        if not (self._stack and 0 <= place <= STEPS):
            raise Damage("nothing to remember")
        self._memo[place] = self._stack[-1]

    def _recall(self, place: int) -> None:
        found = self._memo[place]
        if isinstance(found, list | dict | tuple):
            raise Damage(f"a {type(found).__name__} that is used twice, which no data file needs")
        self._stack.append(found)

    def _call(self, stand_in: object, arguments: object) -> None:
        if not isinstance(arguments, tuple) or not any(stand_in is one for one in STAND_INS.values()):
            raise Damage("a call in an unusual form")
        made = stand_in(*arguments)  # type: ignore[operator]
        self._encodable -= len(made) if isinstance(made, bytes) else 0
        if self._encodable < 0:
            raise Damage("the same text is encoded again and again")
        self._stack.append(made)


def _stand_in(module: object, name: object) -> Callable[..., Any]:
    asked = f"{_named(module)}.{_named(name)}"
    if asked not in STAND_INS:
        raise Damage(f'the pickle asks for "{asked}", which a data file never needs; nothing was run')
    return STAND_INS[asked]


def read_plain(content: bytes, place: str, skip: int = 0) -> dict[str, Any]:
    """The dict pickled in `content`, after `skip` other pickles, its keys as text; `place` names the file in errors."""
    with reading(place, REMEDY):
        pickles = _Reading(content)
        for _ in range(skip):
            pickles.next()
        found = pickles.next()
        if not isinstance(found, dict):
            raise ToolError(f"{place}: it holds a {type(found).__name__} where a dict was expected; is it the right file?")
        return {_text(key): _unwrapped(value) for key, value in found.items()}


def _unwrapped(value: object) -> object:
    if isinstance(value, _Array) and not hasattr(value, "value"):
        raise Damage("an array without its content")
    return value.value if isinstance(value, _Array) else value


def texts(values: object, place: str) -> tuple[str, ...]:
    """A pickled list of names, which may be bytes (Python 2) or text."""
    if not isinstance(values, list) or not all(isinstance(value, bytes | str) for value in values):
        raise ToolError(f"{place}: a list of names was expected; {REMEDY}")
    return tuple(_text(value) for value in values)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _named(value: object) -> str:
    """How a value is called in an error: nothing that a file may have made long or deep is written out."""
    return _text(value[:KEY]) if isinstance(value, str | bytes) else f"a {type(value).__name__}"
