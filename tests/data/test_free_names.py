"""Names of pictures that would land on one another in a new folder: as if each began at the first variant, without doing so."""

import os

from labelsieve.corrected.tree import LONGEST, _free


class Looked(set[str]):
    """Counts how often it is asked."""

    count = 0

    def __contains__(self, path: object) -> bool:
        self.count += 1
        return super().__contains__(path)


def first_free(path: str, origin: str, taken: set[str]) -> str:
    """By the words of the rule: from the first variant on, each time."""
    folder, stem, suffix = path.partition("/")[0], path.partition("/")[2].rpartition(".")[0], path.rpartition(".")[2]
    names = [path.partition("/")[2], f"{stem}-from-{origin}.{suffix}"]
    for number in range(2, len(taken) + 3):
        names += [f"{stem}-from-{origin}-{number}.{suffix}", f"{number}.{suffix}"]
    fitting = [f"{folder}/{name}" for name in names if len(os.fsencode(name)) <= LONGEST]
    return next(name for name in fitting if name not in taken)


def test_pictures_of_one_name_are_numbered_through_and_asked_for_a_few_times_each() -> None:
    long = "x" * (LONGEST - 4)
    wanted = [(f"cat/{name}.png", origin) for _ in range(60) for name in ("image", "2", long) for origin in ("scan", "raw")]
    taken, plain, tried = Looked(), set[str](), dict[tuple[str, str], int]()
    for path, origin in wanted:
        free = _free(path, origin, taken, tried)
        assert free == first_free(path, origin, plain)
        taken.add(free)
        plain.add(free)
    assert len(taken) == len(wanted) and taken.count < 8 * len(wanted)
