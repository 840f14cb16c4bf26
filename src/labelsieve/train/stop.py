"""When a run stops before its end: at Ctrl-C, at SIGTERM, or before a time limit would be overrun."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def compile_seconds() -> float:
    """What this process has spent in torch.compile so far."""
    dynamo = sys.modules.get("torch._dynamo.utils")  # torch loads it with the first compilation
    if dynamo is None:
        return 0.0
    return float(dynamo.calculate_time_spent().get("total_wall_time", 0.0))


class Pace:
    """Splits the time that goes by into compilation, which happens once, and the rest, which the next epoch takes again."""

    def __init__(self) -> None:
        self.compiled = compile_seconds()

    def without_compilation(self, seconds: float) -> float:
        """Of `seconds` since it was asked last."""
        before, self.compiled = self.compiled, compile_seconds()
        return max(0.0, seconds - (self.compiled - before))


class Stopper:
    """Says when to stop after the current epoch: one more like the last would overrun the time limit, or a signal came.

    What the last epoch spent on compilation is not spent again, so it does not count.
    """

    def __init__(self, limit: float | None = None, began: float | None = None) -> None:
        """`began` is when the limit's clock started (`time.monotonic`), if before now: opening data may take minutes."""
        self.limit = limit
        self.last = time.monotonic()
        self.began = self.last if began is None else began
        self.signal: int | None = None
        self.pace = Pace()

    def __call__(self) -> bool:
        now = time.monotonic()
        epoch, self.last = self.pace.without_compilation(now - self.last), now
        return self.signal is not None or (self.limit is not None and now - self.began + epoch > self.limit)

    @property
    def exit_code(self) -> int:
        """As shells say it: 130 for Ctrl-C, 143 for SIGTERM. With 0 a script would go on with a run that is not done."""
        return 0 if self.signal is None else 128 + self.signal

    @contextmanager
    def listening(self, say: Callable[[str], None]) -> Iterator[None]:
        """The first Ctrl-C or SIGTERM (schedulers, `kill`) asks for a stop after this epoch, the second stops at once.

        `say` is told of the first.
        """

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def heard(signum: int, frame: FrameType | None) -> None:
            self.signal = signum
            restore()
            again = "press Ctrl-C" if signum == signal.SIGINT else "send the signal"
            say(f"stopping after this epoch; {again} again to stop at once")

        before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            restore()
