"""How long the rest of a phase takes: its own last epoch counts, and the time that compilation took does not."""

import sys


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
