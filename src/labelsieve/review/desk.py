"""The table of a run and the log of its decisions, side by side: decisions go in, what holds for each row now comes out.

Other processes may write to the same log; `catch_up` takes in what they wrote. Every method may be called from any thread.
"""

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelsieve.decisions.decision import Decision
from labelsieve.decisions.log import DecisionLog
from labelsieve.decisions.state import State, after
from labelsieve.issues.rules import FINE, KINDS
from labelsieve.review.filters import STATES, Filter, chosen
from labelsieve.review.table import IssueTable
from labelsieve.review.wrong_left import Left, grouped, wrong_left

KEY = "after-"
VIEW_KEY = re.compile(rf"{KEY}[0-9]{{1,15}}")
VIEWS = 64  # lists that are remembered; others are cut again as they were
WRONG = ("accept", "relabel", "drop")  # answers that may say the given label was wrong


@dataclass(frozen=True)
class View:
    """A list as it was when it was asked for: deciding does not move what is on the screen.

    `key` says after how many decisions that was, so that the log can make the list again, also of a server started anew.
    """

    key: str
    rows: np.ndarray


class Desk:
    def __init__(self, table: IssueTable, log: DecisionLog) -> None:
        self.table, self.log = table, log
        self._guard = threading.RLock()
        self._views: OrderedDict[tuple[int, Filter], View] = OrderedDict()
        # As the run itself counts: where it says that networks err more often than labels do, contradicting is no reason.
        doubted = (table.given != table.suggested) & (table.kind != KINDS.index(FINE))
        self._groups = grouped((1 - table.score.astype(np.float64)) * doubted, table.is_issue, table.settled)
        self._start()

    def _start(self) -> None:
        count = len(self.table)
        self._offset = 0
        self._left: tuple[int, Left] | None = None
        self.events: list[Decision] = []
        self.states: dict[str, State] = {}
        self.state = np.zeros(count, np.int8)  # codes of STATES
        self.wrong = np.zeros(count, bool)  # decided, and another label than the given one came out
        self.conflict = np.zeros(count, bool)

    def catch_up(self) -> int:
        """Take in what the log has more; how many decisions there are now."""
        with self._guard:
            new, offset = self.log.since(self._offset)
            replaced = offset < self._offset or (new and self.events and new[0].seq <= self.events[-1].seq)
            if replaced:  # somebody put another log in its place
                self._start()
                self._views.clear()
                new, offset = self.log.since(0)
            self._offset = offset
            for entry in new:
                self._take(entry)
            return len(self.events)

    def mark(self, count: int) -> str:
        """What tells the log of the first `count` decisions from others; "" where there are not so many, or none."""
        with self._guard:
            return hashlib.sha256(self.events[count - 1].line()).hexdigest()[:16] if 0 < count <= len(self.events) else ""

    def append(self, entries: list[Decision]) -> list[Decision]:
        """The entries as they stand in the log, on the disk."""
        written = self.log.append(entries)
        self.catch_up()
        return written

    def _take(self, entry: Decision) -> None:
        self.events.append(entry)
        state = self.states[entry.id] = after(self.states.get(entry.id), entry)
        row = self.table.row_of.get(entry.id)
        if row is None:  # the log may speak of samples that are no longer in the run
            return
        now = state.current
        self.state[row] = _code(state)
        self.conflict[row] = state.conflict
        given = self.table.classes[self.table.given[row]]
        self.wrong[row] = now is not None and now.action in WRONG and now.label != given

    def view(self, asked: Filter, key: str = "") -> View:
        """The list of that key, or a new one."""
        with self._guard:
            latest = len(self.events)
            number = int(key.removeprefix(KEY)) if VIEW_KEY.fullmatch(key) else latest
            known = min(number, latest), asked
            if known not in self._views:
                self._views[known] = View(f"{KEY}{known[0]}", chosen(self.table, asked, *self._standing_after(known[0])))
                while len(self._views) > VIEWS:
                    self._views.popitem(last=False)
            self._views.move_to_end(known)
            return self._views[known]

    def _standing_after(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """`state` and `conflict` (N,) as they were after the first `count` decisions."""
        if count == len(self.events):
            return self.state, self.conflict
        state, conflict = self.state.copy(), self.conflict.copy()
        past: dict[str, State] = {}
        later = {entry.id for entry in self.events[count:]}
        for entry in self.events[:count]:
            if entry.id in later:
                past[entry.id] = after(past.get(entry.id), entry)
        for name in later & self.table.row_of.keys():
            row, was = self.table.row_of[name], past.get(name)
            state[row], conflict[row] = _code(was), was is not None and was.conflict
        return state, conflict

    def next_open(self, view: View, after_place: int) -> int:
        """The first place in the list after `after_place` that nobody has decided, going round once; -1 where there is none."""
        with self._guard:
            places = np.flatnonzero(self.state[view.rows] == 0)
        later = places[places > after_place]
        return int(later[0]) if len(later) else int(places[0]) if len(places) else -1

    def changes(self, since: int) -> Sequence[str]:
        """Ids that were decided on after the first `since` decisions, each once."""
        with self._guard:
            return list(dict.fromkeys(entry.id for entry in self.events[max(since, 0) :]))

    def counts(self) -> dict[str, int]:
        """How many rows are in each state, over the issues and whatever else was decided."""
        with self._guard:
            shown = self.table.is_issue | (self.state > 0)
            numbers = np.bincount(self.state[shown], minlength=len(STATES))
            found = dict(zip(STATES, numbers.tolist())) | {"conflict": int(self.conflict.sum())}
        return found | {"issues": int(self.table.is_issue.sum()), "rows": len(self.table), "listed": int(shown.sum())}

    def left(self) -> Left:
        """Wrong labels left, by the answers so far; computed anew when there are more answers."""
        with self._guard:
            events, known, state, wrong = self.events, len(self.events), self.state.copy(), self.wrong.copy()
            if self._left is not None and self._left[0] == known:
                return self._left[1]
        unsure = state == STATES.index("unsure")
        found = wrong_left(self._groups, (state > 0) & ~unsure, wrong, np.random.default_rng(0), unsure)
        with self._guard:
            if events is self.events:  # else they were of another log
                self._left = (known, found)
        return found


def _code(state: State | None) -> int:
    return 0 if state is None or state.current is None else STATES.index(state.current.action)
