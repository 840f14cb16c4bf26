"""labelsieve: train on wrong labels, and get the list of the wrong ones back.

What is heavy (torch, scikit-learn) is loaded when it is first asked for, so that importing labelsieve stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelsieve.version import __version__

if TYPE_CHECKING:
    from labelsieve.api.classifier import NoisyLabelClassifier
    from labelsieve.api.find import find_label_issues
    from labelsieve.api.labels import IssueTable
    from labelsieve.methods.parts.cleaners import Evidence, MixtureCleaner, PrototypeCleaner, register_cleaner
    from labelsieve.methods.registry import register_method

__all__ = [
    "Evidence",
    "IssueTable",
    "MixtureCleaner",
    "NoisyLabelClassifier",
    "PrototypeCleaner",
    "__version__",
    "find_label_issues",
    "register_cleaner",
    "register_method",
]
HOMES = {
    "Evidence": "labelsieve.methods.parts.cleaners",
    "IssueTable": "labelsieve.api.labels",
    "MixtureCleaner": "labelsieve.methods.parts.cleaners",
    "NoisyLabelClassifier": "labelsieve.api.classifier",
    "PrototypeCleaner": "labelsieve.methods.parts.cleaners",
    "find_label_issues": "labelsieve.api.find",
    "register_cleaner": "labelsieve.methods.parts.cleaners",
    "register_method": "labelsieve.methods.registry",
}


def __getattr__(name: str) -> Any:
    if name == "nets":  # `labelsieve.nets.register`, without an import of its own
        return import_module("labelsieve.nets")
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES, "nets"})
