"""Declares one setting: its default, what it means in one line, and the values it may have.

A section is a frozen dataclass whose fields are made by `setting`. `--set`, `presets --keys`, config.yaml and validation all
read the field, so nothing about a setting is written a second time. This module imports nothing else of a configuration.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from labelsieve.doors import short
from labelsieve.errors import UsageError, suggest

RULE = "setting"  # the key in a field's metadata


@dataclass(frozen=True)
class Rule:
    """What a value has to be beside its type. None and, with `zero_is_open`, 0 leave a setting open and are always allowed."""

    meaning: str
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()
    zero_is_open: bool = False

    def check(self, key: str, value: Any) -> None:
        """A `UsageError` that names `key` where the value is out of range or none of the choices."""
        if value is None or (self.zero_is_open and value == 0):
            return
        if self.choices and not any(_is(value, choice) for choice in self.choices):
            if not isinstance(value, str):
                *some, last = map(str, self.choices)
                raise UsageError(f'setting "{key}" is {short(value)}; it must be {", ".join(some)} or {last}')
            known = [str(choice) for choice in self.choices]
            raise UsageError(f'{key} "{short(value)}" is not known{suggest(value, known)}; there are: {", ".join(known)}')
        if (self.low is not None and not value >= self.low) or (self.high is not None and not value <= self.high):
            shown = f"{value:g}" if isinstance(value, float) else short(value)
            raise UsageError(f'setting "{key}" is {shown}; it must be {self.range_words()}')

    def range_words(self) -> str:
        if self.high is None:
            return f"at least {self.low:g}"
        return f"at most {self.high:g}" if self.low is None else f"between {self.low:g} and {self.high:g}"


def setting(
    default: Any,
    meaning: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] = (),
    zero_is_open: bool = False,
) -> Any:
    """A field of a section: `lr: float = setting(0.02, "learning rate", low=1e-9, high=1e3)`.

    A choice that ends in a capital word after a colon, such as "file:FILE", stands for any text after that colon.
    """
    return field(default=default, metadata={RULE: Rule(meaning, low, high, choices, zero_is_open)})


def rules(section: Any) -> Iterator[tuple[str, Rule]]:
    """Name and rule of each setting of a section (class or instance)."""
    for one in fields(section):
        if RULE in one.metadata:
            yield one.name, one.metadata[RULE]


def check(section: Any, prefix: str = "") -> None:
    """A `UsageError` for the first setting of a section that has a value it cannot have; `prefix` such as "training."."""
    for name, rule in rules(section):
        rule.check(f"{prefix}{name}", getattr(section, name))


def _is(value: Any, choice: Any) -> bool:
    if isinstance(choice, str) and isinstance(value, str):
        word, colon, rest = choice.partition(":")
        if colon and rest.isupper():
            return value.startswith(f"{word}:") and len(value) > len(word) + 1
    return bool(value == choice)
