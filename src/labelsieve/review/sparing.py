"""What the server complains of, said once a minute: a stranger who repeats it must not fill the disk with it."""

import logging
import time

SPAN = 60.0  # seconds
ALIKE = 40  # characters by which two lines are of one kind


class Sparing(logging.Filter):
    """Lets the first line of each kind pass, then one a minute that says how many were like it."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[object, tuple[float, int]] = {}  # of a kind: when it was last said, how many were left out since

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[0] if record.exc_info else None
        kind, now = (str(record.msg)[:ALIKE], error), time.monotonic()
        when, left_out = self._said.get(kind, (now - SPAN, 0))
        if now - when < SPAN:
            self._said[kind] = when, left_out + 1
            return False
        self._said[kind] = now, 0
        if left_out:
            record.msg = f"{record.msg} (and {left_out:,} more like it before)"
        return True
