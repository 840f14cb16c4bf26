"""Which methods there are, by name: every class in a file beside this one that derives from `Method` and has a name."""

from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, get_type_hints

from labelsieve import methods
from labelsieve.errors import UsageError, suggest
from labelsieve.methods.contract import Method

METHODS: dict[str, type[Method]] = {}


def method_named(name: str) -> type[Method]:
    """The method, or a `UsageError` that says which there are."""
    if name not in METHODS:
        raise UsageError(
            f'method "{name}" is not known{suggest(name, METHODS)}; there are: {", ".join(METHODS)}; '
            f"one of your own comes through --method-file FILE.py, or labelsieve.register_method in Python"
        )
    return METHODS[name]


def register_method(method: type[Method]) -> None:
    """Make a method of yours known by its `name`. Registered again, a name means the newer one, as in a notebook."""
    name = getattr(method, "name", None)
    if not (isinstance(method, type) and issubclass(method, Method) and isinstance(name, str) and hasattr(method, "Config")):
        raise UsageError(f"{method!r} is no method: derive a class from labelsieve.Method and give it a `name` and a `Config`")
    if name in METHODS and METHODS[name].__module__.startswith(f"{methods.__name__}."):
        raise UsageError(f'a method "{name}" is known already; choose another name')
    METHODS[name] = method


def run_method_file(path: Path) -> str:
    """Run a Python file of yours, as importing it would, and register the one method in it; gives its name.

    Only you call this: no configuration and no run folder can name a file to be run.
    """
    spec = spec_from_file_location(f"labelsieve_method_{path.stem}", path) if path.suffix == ".py" and path.is_file() else None
    if spec is None or spec.loader is None:
        raise UsageError(f"--method-file {path}: no such Python file; give the .py file in which your method is")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = _methods_in(module)
    if len(found) != 1:
        raise UsageError(
            f"{path}: it has {len(found)} methods, classes that derive from Method and have a `name`; leave one in it"
        )
    register_method(found[0])
    return found[0].name


def _methods_in(module: ModuleType) -> list[type[Method]]:
    mine = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    return [each for each in mine if issubclass(each, Method) and "name" in vars(each)]


def own_keys() -> dict[str, Any]:
    """Every key of a method's own section, with its type."""
    having = {name: method for name, method in METHODS.items() if method.own_section}
    return {f"{name}.{key}": hint for name, method in having.items() for key, hint in get_type_hints(method.Config).items()}


def _ours() -> None:
    for info in iter_modules(methods.__path__):
        METHODS.update({each.name: each for each in _methods_in(import_module(f"{methods.__name__}.{info.name}"))})


_ours()
