"""Says when not to trust a result because of the number of samples per class. Needs no torch."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice

from labelsieve.data.pictures.listing import looks_alike
from labelsieve.data.pictures.options import FLAGS
from labelsieve.texts import computed, quoted

FEW_SAMPLES, FEW_OF_CLASS, UNEVEN, MANY_CLASSES = 500, 20, 20, 10
RARE, OFTEN = 3, 20  # a class of at most RARE samples may be another's misspelling that has OFTEN times as many
CLOSE, MOST_NAMED = 0.75, 10
NO_LABEL = ("nan", "n/a", "na", "null", "none")
SIGNS = {sign + number for number in ("1", "0", "1.0", "0.0") for sign in ("-", "", "+")}  # -1 beside these is a class


def doubts(counts: Mapping[str, int]) -> Iterator[str]:
    """What makes the outcome doubtful, and what to do about it; `counts` is {class: training samples}, empty ones do not count.

    Said for fewer than two classes; fewer than 500 samples in all; classes with fewer than 20 samples; a largest class 20
    times the smallest or more; and, where every class is that small, that ranking is all that can be expected. Classes whose
    names are alike, rare ones that look like the misspelt name of another, names that may stand for no label and names that look
    like formulas come last.
    """
    counts = {name: count for name, count in counts.items() if count}
    samples = sum(counts.values())
    if len(counts) < 2:
        yield "fewer than two classes: it cannot be trained on"
    if not counts:
        return
    name, low = min(counts.items(), key=lambda item: item[1])
    if samples < FEW_SAMPLES:
        yield (
            f"{samples} samples are few: check every suggestion by eye, and treat estimates as rough (they were tested on "
            f"{FEW_SAMPLES} and more)"
        )
    if single_samples(counts):
        yield (
            f"{len(counts):,} classes for {samples:,} samples: are these labels? Choose another column where they are numbers "
            f"or names of single samples (of a table, {FLAGS['label_column']})"
        )
    few = sum(count < FEW_OF_CLASS for count in counts.values())
    if few == len(counts) and few >= MANY_CLASSES:
        yield (
            f"all {few} classes have fewer than {FEW_OF_CLASS} samples: expect a ranking that is better than chance, not "
            f"more; merge classes, or use a pretrained network (`train --backbone NAME`)"
        )
    elif few:
        have = "class has" if few == 1 else "classes have"
        yield f"{few} {have} fewer than {FEW_OF_CLASS} samples ({quoted(name)}: {low}): check their labels by eye"
    uneven = max(counts.values()) / low
    if uneven >= UNEVEN:
        yield f"the largest class is {uneven:.0f} times the smallest: check the labels of rare classes by eye"
    for one, other in islice(_alike(counts), MOST_NAMED):
        yield f"the classes {quoted(one)} and {quoted(other)} may be meant as one{_unlike(one, other)}; if so, spell them alike"
    yield from _stand_ins(counts)
    yield from formulas(counts, "class")


def single_samples(counts: Mapping[str, int]) -> bool:
    """Are most classes of one sample alone, so that labels are rather names of samples, and no neighbour can confirm one?"""
    samples = sum(counts.values())
    return samples > OFTEN and sum(map(bool, counts.values())) > samples / 2


def formulas(names: Iterable[str], what: str, file: str = "issues.csv") -> Iterator[str]:
    """Names are written as they are, for they are read back; a spreadsheet computes some of them."""
    found = [name for name in names if computed(name)]
    if found:
        others = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        yield (
            f"the {what} {quoted(found[0])}{others} looks like a formula to a spreadsheet; when you open {file} in one, "
            f"import its columns as text"
        )


def _unlike(one: str, other: str) -> str:
    """What eyes do not see: the same letters, stored in two ways."""
    same = unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)
    return " (they differ only in how Unicode stores letters with accents)" if same else ""


def _stand_ins(counts: Mapping[str, int]) -> Iterator[str]:
    """They may be real classes, so they stay; but what exports empty cells in words makes a class of them."""
    for name, count in counts.items():
        if name.casefold() in NO_LABEL or (name in ("-1", "-1.0") and counts.keys() - SIGNS):
            have = "sample has" if count == 1 else "samples have"
            yield (
                f"{count:,} {have} the label {quoted(name)}, which often means that there is none; if so, remove these rows, or "
                f"empty their labels in the table and add {FLAGS['skip_unlabelled']}"
            )


def _alike(counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    pairs = looks_alike(tuple(counts))
    yield from pairs
    told = {name for pair in pairs for name in pair}
    rare = [name for name, count in counts.items() if count <= RARE and name not in told and len(name) > 2]
    for name in rare:
        others = [other for other, count in counts.items() if other != name and count >= OFTEN * counts[name]]
        yield from ((name, other) for other in get_close_matches(name, others, 1, CLOSE))
