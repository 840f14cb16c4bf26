"""labelsieve: train on wrong labels, and get the list of the wrong ones back."""

from labelsieve.version import __version__

__all__ = ["__version__"]
