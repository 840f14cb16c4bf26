"""A run without a folder: a configuration and rows go in, the trained parts and the last division come out."""

from dataclasses import dataclass, replace

from labelsieve.errors import ToolError
from labelsieve.method.algorithm import Diverged, Epoch, learn
from labelsieve.runs.assemble import Parts, Rows, parts_for
from labelsieve.runs.config import Config
from labelsieve.runs.decide import Decision, decide, decided, left_open, seen_after_warm_up
from labelsieve.runs.history import ScoreHistory
from labelsieve.runs.label_score import remember_division


@dataclass(frozen=True)
class Trained:
    parts: Parts
    epoch: Epoch  # the final one: it only divides
    decision: Decision | None  # what was left open, and followed from the noise
    history: ScoreHistory


def train_in_memory(config: Config, rows: Rows) -> Trained:
    """The same training as a run's, from its start to its end, with the same draws."""
    parts, decision = parts_for(config, rows), None
    history = ScoreHistory(len(rows.data), config.output.history_mib)
    start = 0
    try:
        if left_open(config) and config.method != "ce":
            start = parts.recipe.warmup
            for _ in learn(parts.learners, parts.recipe, parts.engine, parts.prior, 0, parts.pinned, stop=start):
                pass
            decision = decide(config, seen_after_warm_up(parts.learners, parts.recipe, parts.engine))
            parts = replace(parts, recipe=decided(config, decision))
            for learner in parts.learners:
                learner.teacher.memory = decision.mixture_memory
        for last in learn(parts.learners, parts.recipe, parts.engine, parts.prior, start, parts.pinned):
            remember_division(history, last, parts.learners)
    except Diverged as error:
        raise ToolError(f"{error}; try a lower learning rate, such as lr={config.training.lr / 4:g}") from None
    return Trained(parts, last, decision, history)
