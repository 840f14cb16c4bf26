"""A run that is being trained: what it was told, its objects, how far it is, and its folder if it has one."""

import hashlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import Any

from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import MEMORY
from labelsieve.results.answers import write_answers
from labelsieve.results.card import write_estimate
from labelsieve.results.cautions import data_cautions
from labelsieve.results.history import ScoreHistory
from labelsieve.results.outcome import Outcome, write_model
from labelsieve.runs import checkpoint
from labelsieve.runs.data_facts import counts
from labelsieve.runs.findings import Findings, Record, read_findings
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import Rows
from labelsieve.train.build import Parts, parts_for
from labelsieve.train.decide import Decision, settle_method
from labelsieve.train.held import held_for
from labelsieve.train.measure import Chosen, model_of, prototype_scores


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
    decision: Decision | None = None  # what was left open and has been decided
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


def new_run(folder: RunFolder | None, config: Config, rows: Rows, choices: tuple[str, ...] = ()) -> Run:
    history = ScoreHistory(len(rows.data), config.output.history_mib)
    parts = replace(parts_for(config, rows), ask=partial(held_for, config, rows))
    return Run(folder, config, rows, parts, history, [], [], choices=choices)


def settle(run: Run, decision: Decision) -> None:
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
