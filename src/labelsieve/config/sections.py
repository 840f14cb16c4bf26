"""The section of config.yaml that belongs to a method: its keys are the fields of the method's `Config`, declared there."""

import re
from dataclasses import asdict, replace
from typing import Any, get_type_hints

from labelsieve.config.presets import rate_of
from labelsieve.config.schema import Config
from labelsieve.config.setting import check
from labelsieve.errors import UsageError, suggest
from labelsieve.methods.registry import method_named


def section_of(config: Config) -> Any:
    """The method's settings, checked; what was not said has its default."""
    method = method_named(config.method)
    hints = get_type_hints(method.Config)
    unknown = [name for name in config.own if name not in hints]
    if unknown:
        key = f"{config.method}.{unknown[0]}"
        known = [f"{config.method}.{name}" for name in hints]
        raise UsageError(f'setting "{key}" is not known{suggest(key, known)}; there are: {", ".join(known)}')
    section = method.Config(**config.own)
    check(section, f"{config.method}.")
    return section


def with_section(config: Config) -> Config:
    """The configuration with all of the method's own settings in it, as a run folder keeps it."""
    return replace(config, own=asdict(section_of(config))) if method_named(config.method).own_section else config


def cell_settings(name: str, named: str | None, source: str, noise: str) -> dict[str, Any]:
    """What the method's authors set for a preset, or for the data set and noise that it would stand for; of rates the nearest."""
    cells, data = method_named(name).cells, source.partition(":")[0]
    cell = data if named is None else named.partition("+")[0]
    if named is None and data in ("cifar10", "cifar100"):
        kind, _, rate = noise.partition(":")
        known = [each for each in cells if each.startswith(f"{data}-")]
        alike = [each for each in known if each.startswith(f"{data}-{kind}")] or known
        cell = min(alike, key=lambda each: abs(int(re.sub(r".*\D", "", each)) - 100 * rate_of(rate)), default=data)
    if cell not in cells:
        return {}
    return {"method": name, **cells[cell].settings, **{f"{name}.{key}": value for key, value in cells[cell].own.items()}}
