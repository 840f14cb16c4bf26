"""The section of config.yaml that belongs to a method: its keys are the fields of the method's `Config`, declared there."""

from dataclasses import asdict, replace
from typing import Any, get_type_hints

from labelsieve.config.schema import Config
from labelsieve.config.setting import check
from labelsieve.errors import UsageError, suggest
from labelsieve.methods.registry import METHODS, method_named


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


def own_keys() -> dict[str, Any]:
    """Every key of a method's own section, with its type."""
    having = {name: method for name, method in METHODS.items() if method.own_section}
    return {f"{name}.{key}": hint for name, method in having.items() for key, hint in get_type_hints(method.Config).items()}
