"""A run that is being trained: what it was told, its objects, how far it is, what each epoch measured, and its folder.

By the rule `best-val` the epoch that does best on the validation samples becomes the model; nothing is chosen on test samples.
"""

import hashlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import MEMORY, Held, NoisyData, Truth
from labelsieve.engine.plain import PlainEngine, Prediction
from labelsieve.errors import ToolError
from labelsieve.methods.contract import Method, Verdict
from labelsieve.methods.epochs import FINAL, Epoch
from labelsieve.methods.parts import diagnostics
from labelsieve.predict.model import Model, accuracies, built, measured
from labelsieve.results.card import data_cautions, write_estimate
from labelsieve.results.kept import write_answers
from labelsieve.results.outcome import Outcome, ScoreHistory, model_facts, model_tensors, write_model
from labelsieve.runs import checkpoint
from labelsieve.runs.findings import Findings, Record, read_findings
from labelsieve.runs.folder import RunFolder, counts
from labelsieve.runs.rows import Rows, Watch
from labelsieve.train.build import Parts, parts_for
from labelsieve.train.decide import NoiseDecision, settle_method
from labelsieve.train.held import held_for


@dataclass(frozen=True)
class Measure:
    """Holds what an epoch is held against. Nothing of it goes back into training."""

    data: NoisyData
    truth: Truth | None
    test: Held | None
    method: Method
    engine: PlainEngine
    val: Held | None = None  # where given, epochs are measured on these, for a choice between them, and not on test pictures
    also: Mapping[str, Held] = field(default_factory=dict)  # further test sets, by name

    def record(self, epoch: Epoch) -> dict[str, Any]:
        epochs = self.method.training.epochs
        line: dict[str, Any] = {"epoch": min(epoch.index + 1, epochs), "phase": epoch.phase}
        line["lr"] = self.method.lr_at(min(epoch.index, epochs - 1))
        if epoch.trained:
            names = dict.fromkeys(name for each in epoch.trained for name in each.terms)
            line["loss"] = {name: _means(epoch, name) for name in names}
            line["steps"] = [len(each.values) for each in epoch.trained]
        if epoch.verdict is not None:
            line |= self._cleaning(epoch.verdict)
        return line if epoch.phase == FINAL else line | self._accuracies()

    def _accuracies(self) -> dict[str, Any]:
        if self.val is not None:
            return {"validation": self.accuracy_on(self.val)}
        line: dict[str, Any] = {} if self.test is None else {"accuracy": self.accuracy_on(self.test)}
        return line | ({"also": {name: self.accuracy_on(held) for name, held in self.also.items()}} if self.also else {})

    def accuracy_on(self, held: Held) -> dict[str, float]:
        """Percent on held pictures: each network, both (sum of logits), and the prototypes where there are any."""
        seen = [self.engine.predict(eye, held.images) for eye in self.method.model]
        scores = [prototype_scores(self.method, r, prediction) for r, prediction in enumerate(seen)]
        return accuracies([prediction.logits for prediction in seen], scores, held.labels)

    def _cleaning(self, verdict: Verdict) -> dict[str, Any]:
        line: dict[str, Any] = {"clean_share": [float(mask.double().mean()) for mask in verdict.clean]}
        if len(verdict.opinions) > 1:
            first, last = next(iter(verdict.opinions)), verdict.counts
            pairs = list(zip(verdict.opinions[first], verdict.opinions[last]))
            thresholds = verdict.thresholds[first], verdict.thresholds[last]
            line["divergence"] = [diagnostics.divergence(a, b) for a, b in pairs]
            line["consistency"] = [diagnostics.consistency(a, b, *thresholds) for a, b in pairs]
        line |= self._against_truth(verdict)
        return line | ({"notes": list(verdict.notes)} if verdict.notes else {})

    def _against_truth(self, verdict: Verdict) -> dict[str, Any]:
        if self.truth is None:
            return {}
        whole = self.truth.labels == self.data.labels
        right = [whole[rows] for rows in verdict.rows] or [whole] * len(verdict.clean)
        line: dict[str, Any] = {"wrong_labels": int((~whole).sum())}
        for name, chances in verdict.opinions.items():
            line[f"auc_{name}"] = [diagnostics.auc(*pair) for pair in zip(chances, right)]
        measured = [diagnostics.precision_recall(*pair) for pair in zip(verdict.clean, right)]
        line["clean_precision"] = [precision for precision, _ in measured]
        line["clean_recall"] = [recall for _, recall in measured]
        return line


def _means(epoch: Epoch, name: str) -> list[float]:
    """The mean of a loss term over each phase that has it."""
    having = [each for each in epoch.trained if name in each.terms]
    return [float(each.values[:, each.terms.index(name)].mean()) for each in having]


@torch.no_grad()
def prototype_scores(method: Method, r: int, seen: Prediction) -> Tensor | None:
    """The class scores of network r's prototypes, once they have learnt."""
    prototypes = method.prototypes(r)
    return None if prototypes is None else prototypes.classify(seen.features)


@dataclass(frozen=True)
class Chosen:
    """The best epoch so far, counted from 1, its percentage on the validation pictures, and its networks on the host."""

    epoch: int
    accuracy: float
    tensors: Mapping[str, Tensor]

    def facts(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "accuracy": self.accuracy}


def check_choice(config: Config, rows: Rows) -> None:
    """A `ToolError` where the rule asks for validation pictures and there are none."""
    if config.output.model == "best-val" and rows.val is None:
        raise ToolError(
            f"{config.data.source}: it has no validation pictures to choose a model with; "
            f"add some, or keep the last epoch with --set output.model=last"
        )


def better(best: Chosen | None, record: Mapping[str, Any], method: Method) -> Chosen | None:
    """The best epoch after this one; of equal ones the first."""
    if "validation" not in record or (best is not None and record["validation"]["both"] <= best.accuracy):
        return best
    tensors = {name: value.clone() for name, value in model_tensors(method).items()}
    return Chosen(record["epoch"], record["validation"]["both"], tensors)


def model_of(chosen: Chosen, config: Config, rows: Rows, method: Method, device: torch.device) -> Model:
    """The chosen networks, ready to look at pictures."""
    return built(model_facts(config, method, rows.collection), dict(chosen.tensors), device)


def tested(chosen: Chosen, config: Config, rows: Rows, method: Method, device: torch.device) -> dict[str, Any]:
    """What the final record says of the chosen model: its epoch, and its accuracy on the test pictures, met here only."""
    record: dict[str, Any] = {"chosen_epoch": chosen.epoch, "chosen_validation": chosen.accuracy}
    model, batch = model_of(chosen, config, rows, method, device), config.engine.eval_batch
    if rows.test is not None and rows.test is not rows.val:
        record["accuracy"] = measured(model, rows.test, batch)
    if rows.collection.also:
        record["also"] = {name: measured(model, held, batch) for name, held in rows.collection.also.items()}
    return record


@dataclass
class Run:
    """What it was told, its objects, and how far it is. Without a folder it lives in memory only."""

    folder: RunFolder | None  # None: nothing is written
    config: Config
    rows: Rows
    parts: Parts
    history: ScoreHistory
    metrics: list[dict[str, Any]]
    timings: list[dict[str, Any]]
    epoch: int = 0  # epochs done
    done: bool = False
    decision: NoiseDecision | None = None  # what was left open and has been decided
    chosen: Chosen | None = None  # by the rule best-val: the model so far
    choices: tuple[str, ...] = ()  # what the configuration left open and was settled by the data, in words
    environment: dict[str, Any] = field(default_factory=dict)  # what it began with, where it has a folder
    outcome: Outcome | None = None  # what it found, once it has stopped

    @property
    def home(self) -> RunFolder:
        """The folder of a run that has one."""
        assert self.folder is not None
        return self.folder

    @property
    def found(self) -> Findings:
        """What it found: at hand, or read back where it was done before."""
        return read_findings(self.home) if self.outcome is None else self.outcome.found

    @property
    def record(self) -> Record:
        """What it tells of itself, as `read_record` would read it back."""
        return Record(
            self.config,
            self.environment,
            self.metrics,
            sum(line["seconds"] for line in self.timings),
            self.rows.notes if self.rows.opened is not None else (),
            len(self.rows.left_out),
        )

    def only_one(self) -> AbstractContextManager[None]:
        """Hold the folder against a second process."""
        return nullcontext() if self.folder is None else self.folder.only_one()


def fingerprint(rows: Rows) -> str:
    """Of the given labels, the pinned ones and the pictures' shape: enough to notice other data under the same name."""
    digest = hashlib.sha256(str((rows.data.shape, rows.data.classes)).encode())
    digest.update(rows.data.labels.numpy().tobytes())
    if rows.pinned is not None:
        digest.update(rows.pinned.numpy().tobytes())
    return digest.hexdigest()


def scales(rows: Rows) -> str:
    """Of the samples' mean and deviation: what a program hands over has no name, and may be others with the same labels."""
    return hashlib.sha256(str((rows.collection.mean, rows.collection.std)).encode()).hexdigest()


def values(rows: Rows) -> list[float]:
    """Mean and deviation over all channels or dimensions: by these other samples under the same labels are noticed, and a
    decoder that rounds otherwise is not."""
    return [fmean(rows.collection.mean), fmean(rows.collection.std)]


def new_run(
    folder: RunFolder | None, config: Config, rows: Rows, choices: tuple[str, ...] = (), watch: Watch | None = None
) -> Run:
    history = ScoreHistory(len(rows.data), config.output.history_mib)
    parts = replace(parts_for(config, rows), ask=partial(held_for, config, rows, None if watch is None else watch.progress))
    return Run(folder, config, rows, parts, history, [], [], choices=choices)


def settle(run: Run, decision: NoiseDecision) -> None:
    """Train on by what was decided after the warm-up."""
    run.decision = decision
    settle_method(run.parts.method, run.config, decision)


def keep_estimate(run: Run) -> None:
    """What was decided and why, into the run folder."""
    if run.folder is not None and run.decision is not None:
        write_estimate(run.folder, run.decision.facts(), data_cautions(counts(run.rows)))


def state_of(run: Run) -> checkpoint.Checkpoint:
    """Everything the run needs to go on, as it stands now."""
    method = run.parts.method
    tables = {f"learner{net.number}": net.state_dict() for net in method.nets}
    tables |= {"method": method.state_dict(), "tables": method.tables, "history": run.history.state_dict()}
    decision = None if run.decision is None else run.decision.facts()
    facts = {"fingerprint": fingerprint(run.rows), "metrics": run.metrics, "done": run.done, "decision": decision}
    facts["values"] = values(run.rows)
    if run.rows.collection.name == MEMORY:
        facts["scales"] = scales(run.rows)
    if run.chosen is not None:
        tables["chosen"] = dict(run.chosen.tensors)
        facts["chosen"] = run.chosen.facts()
    return checkpoint.Checkpoint(run.epoch, checkpoint.pack(tables), facts)


def save(run: Run, at_stop: bool = False) -> None:
    """A checkpoint, where the run has a folder."""
    if run.folder is None:
        return
    state = state_of(run)
    checkpoint.save(run.folder.checkpoints, state)
    if run.config.output.slim_checkpoint and at_stop:
        checkpoint.save_slim(run.folder.slim, state)


def keep_model(run: Run) -> None:
    """The model as it stands, or the one that was chosen, into the run folder."""
    chosen = None if run.chosen is None else run.chosen.tensors
    write_model(run.home, run.config, run.parts.method, run.rows.collection, chosen)


def keep_answers(run: Run) -> None:
    """What the model that is kept says of each test picture. One chosen on validation meets them once the run is done.

    Of several processes only the one that writes looks at them.
    """
    held, method = run.rows.test, run.parts.method
    if held is None or (run.chosen is not None and not run.done):
        return
    if run.chosen is None:
        with run.parts.engine.ranks.alone():
            seen = [run.parts.engine.predict(eye, held.images) for eye in method.model]
        scores = [prototype_scores(method, r, prediction) for r, prediction in enumerate(seen)]
        write_answers(run.home, [prediction.logits for prediction in seen], scores, held)
    else:
        model = model_of(run.chosen, run.config, run.rows, method, run.parts.engine.device)
        looks = model.look(held.images, run.config.engine.eval_batch)
        write_answers(run.home, [look.logits for look in looks], [look.prototypes for look in looks], held)
