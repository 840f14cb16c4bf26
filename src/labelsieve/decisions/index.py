"""What a log of decisions says, in columns of numbers: what stands on each sample is known as soon as an entry is added.

A reviewer who saw entry r of a sample saw all before it. An entry therefore takes the place of what its reviewer had seen
(seq up to `replaces`) and of the reviewer's own earlier ones. What is left stands; where more than one stands and they come to
different things, that is a conflict, until someone who saw them all decides. The latest one counts meanwhile.

Adding an entry takes the same time however many there are, and a million of them some 300 MB. Entries are numbered from 0, in
the log's order. The rest, such as the time of a decision, is read from its line when somebody asks.
"""

from array import array
from collections.abc import Iterator
from heapq import heappop, heappush

from labelsieve.decisions.decision import ACTIONS, CLEAR, Row

NONE = -1
CODES = {action: code for code, action in enumerate(ACTIONS)}
CLEARS = CODES[CLEAR]


class Words:
    """Texts, each kept once, by number."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self.number: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        number = self.number.setdefault(text, len(self.all))
        if number == len(self.all):
            self.all.append(text)
        return number


class Several:
    """What stands on a sample on which more than one person spoke, oldest first."""

    __slots__ = ("_by_seq", "by_person", "outcomes")

    def __init__(self) -> None:
        self.by_person: dict[int, tuple[int, int]] = {}  # {person: (entry, outcome)}
        self.outcomes: dict[int, int] = {}  # how many come to each
        self._by_seq: list[tuple[int, int, int]] = []  # a heap: a log that was put together by hand may be in no order

    @property
    def entries(self) -> tuple[int, ...]:
        return tuple(entry for entry, _ in self.by_person.values())

    def take(self, entry: int, seq: int, seen: int, person: int, outcome: int | None) -> None:
        """`outcome` is None where the entry only takes back: what others said unseen stands."""
        while self._by_seq and self._by_seq[0][0] <= seen:
            _, old, whose = heappop(self._by_seq)
            if self.by_person.get(whose, (NONE,))[0] == old:
                self._drop(whose)
        if person in self.by_person:
            self._drop(person)
        if outcome is not None:
            self.by_person[person] = entry, outcome
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
            heappush(self._by_seq, (seq, entry, person))

    def _drop(self, person: int) -> None:
        outcome = self.by_person.pop(person)[1]
        self.outcomes[outcome] -= 1
        if not self.outcomes[outcome]:
            del self.outcomes[outcome]


class Index:
    def __init__(self) -> None:
        # By entry.
        self.seqs, self.replaces, self.ends = array("q"), array("q"), array("q")  # `ends`: the byte after its line
        self.samples, self.earlier = array("i"), array("i")  # `earlier`: the entry before it on the same sample
        self.people, self.labels, self.actions = array("i"), array("i"), array("b")
        self.keys: dict[str, int] = {}
        self.last_seq = 0
        # By sample.
        self.ids, self.words = Words(), Words()  # `words` are people and classes
        self.newest = array("i")  # its last entry
        self.over_taken_back: set[int] = set()  # more was taken back here than had been said
        self._alone = array("i")  # the one that stands, where no more than one person spoke
        self._several: dict[int, Several] = {}

    def __len__(self) -> int:
        return len(self.seqs)

    @property
    def end(self) -> int:
        """The byte after the last line."""
        return self.ends[-1] if self.ends else 0

    def begins(self, entry: int) -> int:
        """The byte at which the entry's line begins."""
        return self.ends[entry - 1] if entry else 0

    def add(self, row: Row, end: int) -> None:
        seq, key, name, action, label, who, seen = row
        entry, sample, person, code = len(self.seqs), self.ids(name), self.words(who), CODES[action]
        if sample == len(self.newest):
            self.newest.append(NONE)
            self._alone.append(NONE)
        before = self.newest[sample]
        if code == CLEARS and (before == NONE or self.actions[before] == CLEARS):
            self.over_taken_back.add(sample)
        self.keys.setdefault(key, entry)
        self.last_seq = max(self.last_seq, seq)
        self.seqs.append(seq)
        self.replaces.append(seen)
        self.ends.append(end)
        self.samples.append(sample)
        self.earlier.append(before)
        self.people.append(person)
        self.labels.append(NONE if label is None else self.words(label))
        self.actions.append(code)
        self.newest[sample] = entry
        self._stand(sample, entry)

    def _stand(self, sample: int, entry: int) -> None:
        several, alone = self._several.get(sample), self._alone[sample]
        if several is None:
            if alone == NONE or self.people[alone] == self.people[entry] or self.seqs[alone] <= self.replaces[entry]:
                self._alone[sample] = NONE if self.actions[entry] == CLEARS else entry
                return
            several = self._several[sample] = Several()
            self._take(several, alone)
        self._take(several, entry)

    def _take(self, several: Several, entry: int) -> None:
        outcome = None if self.actions[entry] == CLEARS else self._outcome(entry)
        several.take(entry, self.seqs[entry], self.replaces[entry], self.people[entry], outcome)

    def _outcome(self, entry: int) -> int:
        """As `Decision.outcome`: the class, or what else was decided."""
        label = self.labels[entry]
        return label if label != NONE else NONE - 1 - self.actions[entry]

    def standing(self, sample: int) -> tuple[int, ...]:
        """The entries that stand, oldest first: the last one counts."""
        if sample in self._several:
            return self._several[sample].entries
        return () if self._alone[sample] == NONE else (self._alone[sample],)

    def now(self, sample: int) -> tuple[int, bool]:
        """The entry that counts (or NONE), and whether there is a conflict."""
        several = self._several.get(sample)
        return (self._alone[sample], False) if several is None else _now(several)

    def then(self, sample: int, count: int) -> tuple[int, bool]:
        """The same as it was after the log's first `count` entries."""
        several = Several()
        for entry in reversed([entry for entry in self.history(sample) if entry < count]):
            self._take(several, entry)
        return _now(several)

    def history(self, sample: int) -> Iterator[int]:
        """Every entry on the sample, the newest first."""
        entry = self.newest[sample]
        while entry != NONE:
            yield entry
            entry = self.earlier[entry]

    def action(self, entry: int) -> str:
        return ACTIONS[self.actions[entry]]

    def label(self, entry: int) -> str | None:
        number = self.labels[entry]
        return None if number == NONE else self.words.all[number]

    def who(self, entry: int) -> str:
        return self.words.all[self.people[entry]]


def _now(several: Several) -> tuple[int, bool]:
    if not several.by_person:
        return NONE, False
    return next(reversed(several.by_person.values()))[0], len(several.outcomes) > 1
