"""What the page is told about rows of a review: plain dictionaries, ready for JSON."""

from typing import Any

import numpy as np

from labelsieve.decisions.decision import Decision
from labelsieve.issues.rules import ACTIONS, KINDS, SAMPLE_ISSUES
from labelsieve.review.desk import CHOICES, STATES
from labelsieve.review.opening import Review
from labelsieve.review.table import OWN_KINDS
from labelsieve.review.wrong_left import COVER, ENOUGH, NEXT, ONE_IN

LIKELIEST = 9  # classes that have a key of their own
OPINIONS, PAST = 100, 20  # the latest that are told of a sample: those that disagree, and all
PAIRS = 300  # given -> suggested, the most frequent ones, that are offered as filters


def start(review: Review, who: str) -> dict[str, Any]:
    """What a page needs before its first row."""
    table = review.table
    return {
        "run": review.name,
        "folder": str(review.folder.resolve()),
        "classes": list(table.classes),
        "given": np.bincount(table.given[table.is_issue], minlength=len(table.classes)).tolist(),
        "pairs": review.pairs[:PAIRS].tolist(),
        "states": list(CHOICES),
        "own": own_kinds(review),
        "map": table.at is not None,
        "who": who,
        "pictures": review.pictures.exist,
        "shown": shown(review),
    }


def own_kinds(review: Review) -> list[tuple[str, int, str]]:
    """(kind, how many, what it means) of what is wrong with samples themselves, where there are any."""
    counts = np.bincount(review.table.own, minlength=len(OWN_KINDS)).tolist()
    return [(kind, count, SAMPLE_ISSUES[kind]) for kind, count in zip(OWN_KINDS[1:], counts[1:]) if count]


def shown(review: Review) -> dict[str, Any]:
    """Whether pictures can be asked for yet, or why they never can."""
    return {"ready": review.pictures.ready, "remark": review.pictures.remark}


def progress(review: Review) -> dict[str, Any]:
    left = review.desk.left()
    return {
        "counts": review.desk.counts(),
        "suggestions": review.desk.suggestions(),
        "answers": review.desk.answers(),
        "enough": ENOUGH,
        "left": {
            "expected": left.expected,
            "low": left.low,
            "high": left.high,
            "cover": COVER,
            "next": NEXT,
            "next_share": left.next_share,
            "next_high": left.next_high,
            "stop": left.stop,
            "one_in": ONE_IN,
        },
    }


def row(review: Review, at: int) -> dict[str, Any]:
    """A row as the grid shows it."""
    table = review.table
    name = table.ids[at]
    return {
        "id": name,
        "given": int(table.given[at]),
        "suggested": int(table.suggested[at]),
        "score": round(float(table.score[at]), 4),
        "confidence": round(float(table.confidence[at]), 4),
        "kind": KINDS[table.kind[at]],
        "own": OWN_KINDS[table.own[at]],
        "advice": ACTIONS[table.action[at]],
        "likeliest": likeliest(review, at),
        **standing(review, name),
    }


def likeliest(review: Review, at: int) -> list[tuple[int, float | None]]:
    """(class, share) for the keys 1 to 9: by the networks, then by what is often suggested instead of this label."""
    table = review.table
    found: dict[int, float | None] = {int(table.suggested[at]): round(float(table.confidence[at]), 4)}
    found |= {k: round(share, 4) for k, share in review.evidence.likeliest(at)}
    for k in (int(table.given[at]), *review.usual(int(table.given[at])), *range(LIKELIEST)):
        if len(found) >= LIKELIEST or len(found) >= len(table.classes):
            break
        if k < len(table.classes):
            found.setdefault(k, None)
    return list(found.items())[:LIKELIEST]


def standing(review: Review, name: str) -> dict[str, Any]:
    """What was decided on a sample, as it stands."""
    found = review.desk.standing(name)
    if found is None:
        return {"state": STATES[0], "label": None, "who": None, "seq": None, "conflict": False}
    action, label, who = found.current or (STATES[0], None, None)
    return {
        "state": action,
        "label": label,
        "who": who,
        "seq": found.seq,
        "conflict": bool(found.conflict),
        "standing": [_opinion(entry) for entry in review.desk.read(found.conflict[-OPINIONS:])],
    }


def detail(review: Review, at: int) -> dict[str, Any]:
    """A row with all that is known of it."""
    table = review.table
    given, suggested, alike = review.evidence.neighbours(at)
    return row(review, at) | {
        "reason": table.reasons[at],
        "path": table.paths[at],
        "history": [(epoch, round(value, 4)) for epoch, value in review.evidence.moved(at)],
        "near_given": [_near(review, other) for other in given],
        "near_suggested": [_near(review, other) for other in suggested],
        "alike": [_near(review, other) for other in alike],
        "copy": _copy(review, at),
        "decisions": [_opinion(entry) for entry in review.desk.past(table.ids[at], PAST)],
    }


def _copy(review: Review, at: int) -> dict[str, Any] | None:
    """The sample that shows the same picture: a row of its own, or one of the test set, which has no label here."""
    name = review.table.copies.get(at)
    if name is None:
        return None
    other = review.table.row_of.get(name)
    return {"id": name} if other is None else row(review, other)


def _near(review: Review, at: int) -> dict[str, Any]:
    table = review.table
    return {
        "id": table.ids[at],
        "label": int(table.given[at]),
        "score": round(float(table.score[at]), 4),
        "issue": bool(table.is_issue[at]),
    }


def _opinion(entry: Decision) -> dict[str, Any]:
    return {"seq": entry.seq, "action": entry.action, "label": entry.label, "who": entry.who, "when": entry.when}
