"""An epoch's line in metrics.jsonl: what the epoch left behind, measured against true labels where they are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from labelsieve.data.noisy_data import Held, NoisyData, Truth
from labelsieve.data.trust import quoted
from labelsieve.engine.plain import PlainEngine, Prediction
from labelsieve.methods.algorithm import Epoch, taken
from labelsieve.methods.learner import Learner
from labelsieve.methods.parts import diagnostics
from labelsieve.methods.recipe import Recipe
from labelsieve.predict.accuracy import accuracies

TERMS = {1: ("cross_entropy",), 3: ("labelled", "unlabelled", "penalty")}


@dataclass(frozen=True)
class Measure:
    """Holds what an epoch is held against. Nothing of it goes back into training."""

    data: NoisyData
    truth: Truth | None
    test: Held | None
    recipe: Recipe
    engine: PlainEngine
    learners: Sequence[Learner]
    val: Held | None = None  # where given, epochs are measured on these, for a choice between them, and not on test pictures
    also: Mapping[str, Held] = field(default_factory=dict)  # further test sets, by name

    def record(self, epoch: Epoch) -> dict[str, Any]:
        line: dict[str, Any] = {"epoch": min(epoch.index + 1, self.recipe.epochs), "phase": epoch.phase}
        line["lr"] = self.recipe.lr_at(min(epoch.index, self.recipe.epochs - 1))
        if epoch.terms:
            names = TERMS[epoch.terms[0].shape[1]]
            line["loss"] = {name: [float(t[:, i].mean()) for t in epoch.terms] for i, name in enumerate(names)}
            line["steps"] = [len(t) for t in epoch.terms]
        if epoch.seen:
            line |= self._cleaning(epoch)
        return line if epoch.phase == "final" else line | self._accuracies()

    def _accuracies(self) -> dict[str, Any]:
        if self.val is not None:
            return {"validation": self.accuracy_on(self.val)}
        line: dict[str, Any] = {} if self.test is None else {"accuracy": self.accuracy_on(self.test)}
        return line | ({"also": {name: self.accuracy_on(held) for name, held in self.also.items()}} if self.also else {})

    def accuracy_on(self, held: Held) -> dict[str, float]:
        """Percent on held pictures: each network, both (sum of logits), and the prototypes where there are any."""
        seen = [self.engine.predict(learner, held.images) for learner in self.learners]
        scores = [prototype_scores(learner, prediction) for learner, prediction in zip(self.learners, seen)]
        return accuracies([prediction.logits for prediction in seen], scores, held.labels)

    def _cleaning(self, epoch: Epoch) -> dict[str, Any]:
        recipe = self.recipe
        by_prototype = epoch.by_prototype and (epoch.phase == "prototypes" or epoch.phase == "final")
        chances = epoch.by_prototype if by_prototype else epoch.by_loss
        threshold = recipe.tau if by_prototype else recipe.mixture_threshold
        divided = [taken(chance, threshold, None, recipe.least_clean) for chance in chances]
        masks = [torch.ones_like(mask) for mask in divided] if epoch.phase == "plain" else divided  # what was trained on
        line: dict[str, Any] = {"clean_share": [float(mask.double().mean()) for mask in masks]}
        if epoch.by_prototype:
            pairs = list(zip(epoch.by_loss, epoch.by_prototype))
            line["divergence"] = [diagnostics.divergence(a, b) for a, b in pairs]
            line["consistency"] = [diagnostics.consistency(a, b, recipe.mixture_threshold, recipe.tau) for a, b in pairs]
        line |= self._against_truth(epoch, masks)
        return line | self._notes(epoch, divided, recipe.least_clean)

    def _against_truth(self, epoch: Epoch, masks: Sequence[Tensor]) -> dict[str, Any]:
        if self.truth is None:
            return {}
        whole = self.truth.labels == self.data.labels
        right = [whole[rows] for rows in epoch.rows] or [whole] * len(masks)
        line: dict[str, Any] = {"wrong_labels": int((~whole).sum())}
        line |= {"auc_loss": [diagnostics.auc(*pair) for pair in zip(epoch.by_loss, right)]}
        if epoch.by_prototype:
            line["auc_prototype"] = [diagnostics.auc(*pair) for pair in zip(epoch.by_prototype, right)]
        measured = [diagnostics.precision_recall(*pair) for pair in zip(masks, right)]
        line["clean_precision"] = [precision for precision, _ in measured]
        line["clean_recall"] = [recall for _, recall in measured]
        return line

    def _notes(self, epoch: Epoch, masks: Sequence[Tensor], least_clean: float) -> dict[str, Any]:
        """What went oddly, by network: a collapsed partition, classes without a mixture, losses that were no numbers."""
        notes, names = [], [quoted(name) for name in self.data.classes]
        for learner, mask, seen in zip(self.learners, masks, epoch.seen):
            teacher, name = learner.teacher, f"network {learner.number + 1}"
            collapsed = diagnostics.collapse(mask, seen.predicted, seen.classes, seen.labels, least_clean, names)
            if collapsed:
                notes.append(f"{name}: the partition collapsed: {collapsed}")
            if teacher.unfitted_ and teacher.per_class:
                few = ", ".join(names[k] for k in teacher.unfitted_[:5])
                more = " ..." if len(teacher.unfitted_) > 5 else ""
                notes.append(f"{name}: no mixture could be fitted to {few}{more}; their labels count as clean")
            elif teacher.unfitted_:
                notes.append(f"{name}: the losses have no spread; all labels count as clean")
            if teacher.excluded_:
                notes.append(f"{name}: {teacher.excluded_} losses were not finite and were left out")
        return {"notes": notes} if notes else {}


@torch.no_grad()
def prototype_scores(learner: Learner, seen: Prediction) -> Tensor | None:
    """The prototypes' class scores, once they have learnt."""
    if learner.judge is None or not learner.judge.state_dict():
        return None
    return learner.judge.classify(seen.features)
