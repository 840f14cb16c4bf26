"""What `reproduce figures` does: finds runs in the folders it is given, draws what they keep, says where and what is missing."""

from collections.abc import Sequence
from pathlib import Path

from labelsieve.reproduce.figure_files import draw_all, folders_in, groups_of
from labelsieve.terminal.console import console


def draw(paths: Sequence[Path], out: Path | None) -> None:
    """Figures go to `out`, by default into figures/ of the first folder."""
    place = out or paths[0] / "figures"
    for group in groups_of(folders_in(paths)):
        drawn = draw_all(group, place)
        for line in drawn.found:
            console.print(line)
        for line in drawn.missing:
            console.print(f"not drawn: {line}", style="yellow")
        for file in drawn.files:
            console.print(f"written: {file}")
    console.print("The paper, CIFAR-100 with 90 % symmetric noise: clean 54 %, noisy 53 %.")
