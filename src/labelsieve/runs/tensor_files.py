"""Reads the tensors of a run's safetensors file, which is opened as a plain file of the run."""

from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from labelsieve import run_files


def read_tensors(file: Path, top: Path | None = None) -> dict[str, Tensor]:
    """By name. They are mapped and not copied, from the file that was opened and examined."""
    with run_files.open_file(file, top) as opened:
        again = Path(f"/proc/self/fd/{opened.fileno()}")  # the library opens files by their names only
        return load_file(again if again.exists() else file)
