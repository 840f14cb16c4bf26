"""Values that nobody expects: a list of our own, and what hypothesis thinks of, both by a seed."""

import random
from copy import deepcopy
from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

DEEP = 100_000
MARK = "sekret-4f1d9c"  # stands in the files outside; must not be handed on
NASTY: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    1e308,
    -1e308,
    1e-320,
    0.5,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    " ",
    "\0",
    "a" * 300,
    "x" * 200_000,
    "\x1b[2J\x1b[31m",
    "\u202egnp.exe",
    "\u200b",
    "\ud800",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(1)",
    "<script>alert(1)</script>",
    "../../outside/secret.txt",
    "_OUTSIDE_/secret.png",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/environ",
    "file:///etc/passwd",
    "con",
    ".",
    "..",
    "-",
    "--help",
    "nan",
    "1e999",
    "0x10",
    "١٢",
    "None",
    "[bold]x[/bold]",
    "%s%n",
    "{0}",
    "a\nb",
    "a\r\nb",
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"a": {"b": {"c": 1}}},
    ["x"],
    [1, "x"],
    [[1, 2], [3]],
    list(range(1000)),
)


@cache
def thought_of(start: int, count: int = 3000) -> tuple[Any, ...]:
    """JSON values that hypothesis makes."""
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    found: list[Any] = []

    @seed(start)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.recursive(plain, lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(), below, max_size=4)))
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return tuple(found)


def value(rng: random.Random) -> Any:
    """One of its own: whoever plants it may change it further, and the next case must not see that."""
    return deepcopy(rng.choice(NASTY) if rng.random() < 0.7 else rng.choice(thought_of(0)))


def words(rng: random.Random) -> str:
    """A text, of any kind."""
    found = value(rng)
    return found if isinstance(found, str) else str(found)[:500]
