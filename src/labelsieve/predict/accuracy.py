"""How often networks and prototypes are right, in percent, on samples whose true labels are known."""

from collections.abc import Sequence

from torch import Tensor

from labelsieve.methods.parts import diagnostics

NAMES = ("first", "second")
MANY = 20  # classes from which on the top 5 say something


def accuracies(logits: Sequence[Tensor], scores: Sequence[Tensor | None], labels: Tensor) -> dict[str, float]:
    """Percent right by each network, by both (sum of logits), and the same for their prototypes once they have learnt.

    Of many classes also how often the right one is among the five that both find likeliest.
    """
    result = {name: diagnostics.accuracy(each, labels) for name, each in zip(NAMES, logits)}
    result["both"] = diagnostics.accuracy(logits[0] + logits[1], labels)
    if logits[0].shape[1] >= MANY:
        result["both_top5"] = diagnostics.accuracy(logits[0] + logits[1], labels, top=5)
    learnt = [score for score in scores if score is not None]
    if len(learnt) == len(logits):
        result |= {f"prototypes_{name}": diagnostics.accuracy(each, labels) for name, each in zip(NAMES, learnt)}
        result["prototypes"] = diagnostics.accuracy(learnt[0] + learnt[1], labels)
    return result
