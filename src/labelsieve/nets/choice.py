"""Which network suits a data set, by rule: picture size, number of samples and kind of device in, a name and the reason out."""

from dataclasses import dataclass

TINY, SMALL, LARGE = 16, 64, 160  # sides in pixels
MANY, VERY_MANY = 20_000, 100_000  # samples


@dataclass(frozen=True)
class Choice:
    name: str
    why: str


def choose_network(size: int, samples: int, cuda: bool) -> Choice:
    """The network that `--network auto` stands for. `size` is a picture's shorter side.

    On a CPU: up to 64 px `small`, from 20,000 samples on `small-wide`; above 64 px `resnet18`.
    On CUDA: under 16 px `small-wide`, under 64 px `preact-resnet18`, from 64 px on `resnet18`, and `resnet50` for pictures
    of 160 px and more when there are at least 100,000 of them.
    """
    if cuda:
        if size < TINY:
            return Choice("small-wide", f"pictures under {TINY} px on a GPU")
        if size < SMALL:
            return Choice("preact-resnet18", f"pictures of {TINY} to {SMALL - 1} px on a GPU")
        if size >= LARGE and samples >= VERY_MANY:
            return Choice("resnet50", f"at least {VERY_MANY:,} pictures of {LARGE} px or more on a GPU")
        return Choice("resnet18", f"pictures of {SMALL} px or more on a GPU")
    if size > SMALL:
        return Choice("resnet18", f"pictures above {SMALL} px")
    if samples >= MANY:
        return Choice("small-wide", f"pictures up to {SMALL} px, at least {MANY:,} of them, on a CPU")
    return Choice("small", f"pictures up to {SMALL} px, under {MANY:,} of them, on a CPU")
