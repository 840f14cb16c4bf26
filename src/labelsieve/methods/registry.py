"""Which methods there are, by name: every class in a file beside this one that derives from `Method` and has a name."""

from importlib import import_module
from pkgutil import iter_modules

from labelsieve import methods
from labelsieve.errors import UsageError, suggest
from labelsieve.methods.contract import Method

METHODS: dict[str, type[Method]] = {}


def method_named(name: str) -> type[Method]:
    """The method, or a `UsageError` that says which there are."""
    if name not in METHODS:
        raise UsageError(f'method "{name}" is not known{suggest(name, METHODS)}; there are: {", ".join(METHODS)}')
    return METHODS[name]


def register_method(method: type[Method]) -> None:
    """Make a method of yours known by its `name`. Registered again, a name means the newer one, as in a notebook."""
    name = getattr(method, "name", None)
    if not (isinstance(method, type) and issubclass(method, Method) and isinstance(name, str) and hasattr(method, "Config")):
        raise UsageError(f"{method!r} is no method: derive a class from labelsieve.Method and give it a `name` and a `Config`")
    if name in METHODS and METHODS[name].__module__.startswith(f"{methods.__name__}."):
        raise UsageError(f'a method "{name}" is known already; choose another name')
    METHODS[name] = method


def _ours() -> None:
    for info in iter_modules(methods.__path__):
        module = import_module(f"{methods.__name__}.{info.name}")
        for each in vars(module).values():
            if (
                isinstance(each, type)
                and issubclass(each, Method)
                and "name" in vars(each)
                and each.__module__ == module.__name__
            ):
                METHODS[each.name] = each


_ours()
