"""The version, alone in a file so that `--version` needs nothing else."""

__version__ = "0.1.0"
