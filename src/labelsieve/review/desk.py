"""The table of a run and the log of its decisions, side by side: what holds for each row now, and which rows to show.

Other processes may write to the same log; `catch_up` takes in what they wrote. Every method may be called from any thread.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from labelsieve.decisions.decision import Decision
from labelsieve.decisions.index import NONE, Index
from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.issues.rules import FINE, KINDS
from labelsieve.review.evidence import inside
from labelsieve.review.table import OWN_KINDS, ReviewTable, folded
from labelsieve.review.wrong_left import Left, grouped, wrong_left

OPEN, CONFLICT, DECIDED, ANY = "open", "conflict", "decided", "any"
# The code of a state is its place here; the rest of the names are groups of them.
STATES = (OPEN, "accept", "keep", "relabel", "drop", "unsure")
CHOICES = (*STATES, CONFLICT, DECIDED, ANY)
ODD = "odd"  # samples with any issue of their own


@dataclass(frozen=True)
class Filter:
    """Empty texts do not filter. `everything` shows rows that are not listed as issues, too.

    `own` lists samples that are odd themselves in place of label issues, of one kind or any; `area` is a piece of the map.
    """

    given: str = ""
    suggested: str = ""
    state: str = OPEN
    text: str = ""
    everything: bool = False
    own: str = ""
    area: str = ""


def chosen(table: ReviewTable, asked: Filter, state: np.ndarray, conflict: np.ndarray) -> np.ndarray:
    """(M,) rows: `state` (N,) are codes of STATES, `conflict` (N,) bool."""
    keep = _listed(table, asked)
    for name, codes in ((asked.given, table.given), (asked.suggested, table.suggested)):
        if name:
            keep &= codes == _class(table, name)
    if asked.state == CONFLICT:
        keep &= conflict
    elif asked.state == DECIDED:
        keep &= state > 0
    elif asked.state != ANY:
        keep &= state == _state(asked.state)
    if asked.text.strip():
        keep &= _matching(table, asked.text.strip())
    if asked.area:
        keep &= inside(np.zeros((len(table), 2), np.float32) - 1 if table.at is None else table.at, asked.area)
    return np.flatnonzero(keep).astype(np.int32)


def _listed(table: ReviewTable, asked: Filter) -> np.ndarray:
    if asked.own == ODD:
        return table.own > 0
    if asked.own:
        if asked.own not in OWN_KINDS:
            name = asked.own[:80]
            raise UsageError(
                f'"{name}" is no kind of sample issue{suggest(name, OWN_KINDS)}; use one of {", ".join(OWN_KINDS[1:])}'
            )
        return table.own == OWN_KINDS.index(asked.own)
    return np.ones(len(table), bool) if asked.everything else table.is_issue.copy()


def _class(table: ReviewTable, name: str) -> int:
    if name not in table.classes:
        raise UsageError(f'"{name[:80]}" is not one of {len(table.classes)} classes{suggest(name[:80], table.classes)}')
    return table.classes.index(name)


def _state(name: str) -> int:
    if name not in STATES:
        raise UsageError(f'"{name[:80]}" is no state{suggest(name[:80], CHOICES)}; use one of {", ".join(CHOICES)}')
    return STATES.index(name)


def _matching(table: ReviewTable, text: str) -> np.ndarray:
    """(N,) bool: the text is in the id, the path or the name of one of both classes."""
    named = np.array([folded(text) in folded(name) for name in table.classes])
    found = table.ids.containing(text) | table.paths.containing(text)
    return np.asarray(found | named[table.given] | named[table.suggested])


KEY = "after-"
VIEW_KEY = re.compile(rf"{KEY}[0-9]{{1,15}}")
VIEWS = 64  # lists that are remembered; others are cut again as they were
WRONG = ("accept", "relabel", "drop")  # answers that may say the given label was wrong


@dataclass(frozen=True)
class ShownList:
    """A list as it was when it was asked for: deciding does not move what is on the screen.

    `key` says after how many decisions that was, so that the log can make the list again, also of a server started anew.
    """

    key: str
    rows: np.ndarray


@dataclass(frozen=True)
class Standing:
    """What stands on a sample: (action, label, who) of the decision that counts, or None where all was taken back.

    `seq` is of the latest entry. `conflict` are the entries that disagree, by their numbers.
    """

    current: tuple[str, str | None, str] | None
    seq: int
    conflict: tuple[int, ...]


class Desk:
    def __init__(self, table: ReviewTable, log: DecisionLog) -> None:
        self.table, self.log = table, log
        self._guard = log.guard
        self._views: OrderedDict[tuple[int, Filter], ShownList] = OrderedDict()
        # As the run itself counts: where it says that networks err more often than labels do, contradicting is no reason.
        doubted = (table.given != table.suggested) & (table.kind != KINDS.index(FINE))
        # Nor do answers on samples that are listed for what they are themselves say anything of the labels of others.
        apart = table.settled | (~table.is_issue & (table.own > 0))
        self._groups = grouped((1 - table.score.astype(np.float64)) * doubted, table.is_issue, apart)
        self._start(log.index)

    def _start(self, index: Index) -> None:
        count = len(self.table)
        self._index = index
        self._left: tuple[Index, int, Left] | None = None
        self._row: list[int] = []  # of each sample in the log; -1: the run has it no more
        self.events = 0  # decisions that were taken in
        self.state = np.zeros(count, np.int8)  # codes of STATES
        self.wrong = np.zeros(count, bool)  # decided, and another label than the given one came out
        self.conflict = np.zeros(count, bool)

    def catch_up(self) -> int:
        """Take in what the log has more; how many decisions there are now."""
        self.log.catch_up()
        with self._guard:
            index = self.log.index
            if index is not self._index:  # somebody put another log in its place
                self._start(index)
                self._views.clear()
            self._row += [self.table.row_of.get(name, -1) for name in index.ids.all[len(self._row) :]]
            for sample in dict.fromkeys(index.samples[self.events :]):
                self._take(sample)
            self.events = len(index)
            return self.events

    def mark(self, count: int) -> str:
        """What tells the log of the first `count` decisions from others; "" where there are not so many, or none."""
        found = self.read([count - 1]) if 0 < count <= self.events else []
        return hashlib.sha256(found[0].line()).hexdigest()[:16] if found else ""

    def read(self, entries: Sequence[int]) -> list[Decision]:
        """Entries from the disk; none where they are not there any more, which the next look at the log notices."""
        try:
            return self.log.read(entries)
        except (ToolError, IndexError):
            return []

    def append(self, entries: list[Decision]) -> list[Decision]:
        """The entries as they stand in the log, on the disk."""
        written = self.log.append(entries)
        self.catch_up()
        return written

    def standing(self, name: str) -> Standing | None:
        """What stands on a sample; None where nobody ever decided on it."""
        with self._guard:
            index = self._index
            sample = index.ids.number.get(name)
            if sample is None:
                return None
            entry, conflict = index.now(sample)
            current = None if entry == NONE else (index.action(entry), index.label(entry), index.who(entry))
            return Standing(current, index.seqs[index.newest[sample]], index.standing(sample) if conflict else ())

    def past(self, name: str, at_most: int) -> list[Decision]:
        """The latest entries on a sample, oldest first."""
        with self._guard:
            sample = self._index.ids.number.get(name)
            found = [] if sample is None else list(islice(self._index.history(sample), at_most))
        return self.read(found[::-1])

    def _take(self, sample: int) -> None:
        row = self._row[sample]
        if row < 0:  # the log may speak of samples that are no longer in the run
            return
        index = self._index
        entry, self.conflict[row] = index.now(sample)
        self.state[row] = _code(index, entry)
        given = self.table.classes[self.table.given[row]]
        self.wrong[row] = entry != NONE and index.action(entry) in WRONG and index.label(entry) != given

    def view(self, asked: Filter, key: str = "") -> ShownList:
        """The list of that key, or a new one."""
        with self._guard:
            latest = self.events
            number = int(key.removeprefix(KEY)) if VIEW_KEY.fullmatch(key) else latest
            known = min(number, latest), asked
            if known not in self._views:
                self._views[known] = ShownList(f"{KEY}{known[0]}", chosen(self.table, asked, *self._standing_after(known[0])))
                while len(self._views) > VIEWS:
                    self._views.popitem(last=False)
            self._views.move_to_end(known)
            return self._views[known]

    def _standing_after(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """`state` and `conflict` (N,) as they were after the first `count` decisions."""
        if count == self.events:
            return self.state, self.conflict
        state, conflict = self.state.copy(), self.conflict.copy()
        for sample in set(self._index.samples[count : self.events]):
            row = self._row[sample]
            if row >= 0:
                entry, conflict[row] = self._index.then(sample, count)
                state[row] = _code(self._index, entry)
        return state, conflict

    def next_open(self, view: ShownList, after_place: int) -> int:
        """The first place in the list after `after_place` that nobody has decided, going round once; -1 where there is none."""
        with self._guard:
            places = np.flatnonzero(self.state[view.rows] == 0)
        later = places[places > after_place]
        return int(later[0]) if len(later) else int(places[0]) if len(places) else -1

    def changes(self, since: int) -> Sequence[str]:
        """Ids that were decided on after the first `since` decisions, each once."""
        with self._guard:
            samples = dict.fromkeys(self._index.samples[max(since, 0) : self.events])
            return [self._index.ids.all[sample] for sample in samples]

    def counts(self) -> dict[str, int]:
        """How many rows are in each state, over the issues and whatever else was decided."""
        with self._guard:
            shown = self.table.is_issue | (self.state > 0)
            numbers = np.bincount(self.state[shown], minlength=len(STATES))
            found = dict(zip(STATES, numbers.tolist())) | {"conflict": int(self.conflict.sum())}
        return found | {"issues": int(self.table.is_issue.sum()), "rows": len(self.table), "listed": int(shown.sum())}

    def suggestions(self) -> tuple[int, int]:
        """How many suggestions of another label people have decided on, and how many of these they took."""
        with self._guard:
            answered = (self.state > 0) & (self.state != STATES.index("unsure")) & (self.table.suggested != self.table.given)
            return int(answered.sum()), int((self.state == STATES.index("accept"))[answered].sum())

    def answers(self) -> int:
        """Labels on which people have decided, the unsure ones aside."""
        with self._guard:
            return int(((self.state > 0) & (self.state != STATES.index("unsure"))).sum())

    def left(self) -> Left:
        """Wrong labels left, by the answers so far; computed anew when there are more answers."""
        with self._guard:
            index, known, state, wrong = self._index, self.events, self.state.copy(), self.wrong.copy()
            if self._left is not None and self._left[:2] == (index, known):
                return self._left[2]
        unsure = (state == STATES.index("unsure")) | ((state == STATES.index("drop")) & (self.table.own > 0))
        found = wrong_left(self._groups, (state > 0) & ~unsure, wrong, np.random.default_rng(0), unsure)
        with self._guard:
            if index is self._index:  # else they were of another log
                self._left = (index, known, found)
        return found


def _code(index: Index, entry: int) -> int:
    return 0 if entry == NONE else STATES.index(index.action(entry))
