"""How often networks and prototypes are right, in percent, on samples whose true labels are known."""

from collections.abc import Sequence

from torch import Tensor

from labelsieve.methods.parts.diagnostics import NAMES, accuracy, summed

MANY = 20  # classes from which on the top 5 say something


def accuracies(logits: Sequence[Tensor], scores: Sequence[Tensor | None], labels: Tensor) -> dict[str, float]:
    """Percent right by each network, by all together (`both`: the sum of logits), and the same for prototypes that have learnt.

    Of many classes also how often the right one is among the five that are found likeliest.
    """
    result = {name: accuracy(each, labels) for name, each in zip(NAMES, logits)}
    result["both"] = accuracy(summed(logits), labels)
    if logits[0].shape[1] >= MANY:
        result["both_top5"] = accuracy(summed(logits), labels, top=5)
    learnt = [score for score in scores if score is not None]
    if len(learnt) == len(logits):
        result |= {f"prototypes_{name}": accuracy(each, labels) for name, each in zip(NAMES, learnt)}
        result["prototypes"] = accuracy(summed(learnt), labels)
    return result
