"""`NoisyLabelClassifier`: the whole method as a scikit-learn classifier.

The constructor stores, `fit` computes. `label_issues_` and `clean_probability_` say which labels were probably wrong.
"""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from labelsieve.api.labels import BadInput, IssueTable, check_present, identities, plain, plain_labels, warn_of_order
from labelsieve.api.samples import LOAD_PICTURES, check_no_names, form_of, rows_of, seen_through, stacked
from labelsieve.config.presets import Settings, own, vectors
from labelsieve.config.resolve import cleaner_of, unheeded, validate
from labelsieve.config.schema import Config, dotted_keys, full_key, override, value_at
from labelsieve.data.noisy_data import MEMORY
from labelsieve.engine.device import callers_settings_kept, choose_device
from labelsieve.errors import ToolError
from labelsieve.methods.parts.heads import HeldOut
from labelsieve.nets import lent
from labelsieve.predict.model import Model, built
from labelsieve.results.card import cautions
from labelsieve.results.outcome import Outcome, model_facts, model_tensors
from labelsieve.runs import checkpoint
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import Rows
from labelsieve.train.loop import each_epoch
from labelsieve.train.run import Run, fingerprint, scales
from labelsieve.train.start import resume, settled, start


def seed_in(path: Path) -> int | None:
    """The seed of the run at `path`: a fit without one of its own goes on with that, as what it settles follows from it."""
    return RunFolder.open(path).read_config().seed if RunFolder(path).config.is_file() else None


def run_in(path: Path, config: Config, rows: Rows) -> Run:
    """The run at `path`, new or as it was left."""
    if not RunFolder(path).config.is_file():
        if path.exists() and not RunFolder(path).is_bare():
            raise BadInput(f"run_dir: {path} exists and is not a run; choose another run_dir")
        return start(path, config, rows=rows)
    _check_same(RunFolder.open(path), config, rows)
    return resume(path, device=config.device, rows=rows)


def _check_same(folder: RunFolder, config: Config, rows: Rows) -> None:
    """`BadInput` where the run is done, or is not this fit's."""
    begun = checkpoint.load(folder.goes_on_from).facts if folder.has_begun() else {}
    if begun and (begun.get("fingerprint"), begun.get("scales")) != (fingerprint(rows), scales(rows)):
        raise BadInput(f"run_dir: in {folder.path} is a run on other data; choose another run_dir")
    if begun.get("done"):
        raise BadInput(f"run_dir: the run in {folder.path} is done; choose another run_dir, or set run_dir=None")
    before = folder.read_config()
    other = [key for key in dotted_keys() if key != "device" and value_at(before, key) != value_at(config, key)]
    other += [f"{config.method}.{key}" for key in config.own if before.own.get(key) != config.own[key]]
    if other:
        first = other[0]
        raise BadInput(
            f"run_dir: in {folder.path} is a run with other settings ({first}: {value_at(before, first)} there, "
            f"{value_at(config, first)} here); choose another run_dir"
        )


def shown(record: dict[str, Any], epochs: int) -> None:
    """Epoch, phase, loss, share of clean labels. No colours, no cursor: notebooks and logs keep what they are given."""
    from labelsieve.terminal.training import said  # here, for it loads rich

    if record["phase"] != "final":
        print("  ".join(said(record, record["epoch"], epochs)), flush=True)


PICTURES: Settings = {"training.epochs": 24, "training.warmup": 4, "training.lr": 0.05}
LOOK = 256  # rows looked at together: always so many, so that a row's answer does not depend on its neighbours


def known_as(network: Any) -> AbstractContextManager[str | None]:
    """The name under which a network is built: as given, or lent to a module or a builder for the time of a fit."""
    if network is None or isinstance(network, str):
        return nullcontext(network)
    if not callable(network):
        raise BadInput(f"network={network!r} cannot be used; give a name, a torch.nn.Module or a function that makes one")
    return lent(network)


@contextmanager
def unchanged_by_failure(estimator: BaseEstimator) -> Iterator[None]:
    """What an earlier fit left stays whole where this one does not end: its model would answer with the new classes' names."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class NoisyLabelClassifier(ClassifierMixin, BaseEstimator):
    """Two networks trained on noisy labels, for vectors (N, D) or pictures (N, H, W), (N, H, W, C), (N, C, H, W).

    Pictures are uint8, or floats from 0 to 1 or from 0 to 255; a list of Pillow images, arrays or tensors of one size will do.
    Those of 16 px or more are varied and mixed little while the network is `small`; `settings` can change that.

    Parameters
    ----------
    method : str
        One of those that `labelsieve methods` lists; `ce` is plain training.
    cleaner : str or None
        What judges labels: `cpc-awr`, `cpc-agn`, `contrastive`, `gmm-awr`, `gmm-agn`, or a name given to `register_cleaner`.
        None is the method's own.
    network : str, torch.nn.Module, callable or None
        A name, a module that gives logits, or a function (channels, classes) -> module; for vectors, channels are dimensions.
        Two networks are trained: of a module, two copies, each with new weights from its layers' `reset_parameters`; a function
        is called twice and may return pretrained weights. With a module or a function, other programs know a run in `run_dir`
        only by its files. None chooses by the data.
    backbone : str or None
        A pretrained network of timm, such as `tf_efficientnet_lite0`. Then X are pictures of any size (paths, Pillow images or
        arrays), and two small heads learn from its features, which are kept in the cache folder.
    weights : path or None
        A file with the backbone's weights. None takes timm's own: those on this machine, else they are downloaded after that is
        printed.
    epochs, warmup, batch_size, lr : int, float or None
        None chooses by the data (batches shrink with few samples).
    mirror : bool
        May a picture be mirrored and stay the same thing?
    settings : dict or None
        Any other setting by its dotted key, such as {"training.beta": 4, "views.policy": "auto"}. One that the cleaner does not
        read is a warning or an error, as on the command line.
    device : str or torch.device
        `cpu`, `cuda`, `cuda:1`, or `auto` for the first GPU if there is one.
    run_dir : path or None
        A folder to write the run to, as the command line would (without the training data). If the same fit was interrupted
        there, it goes on. None writes nothing.
    random_state : int, RandomState or None
        An int makes a fit on a CPU repeatable.
    verbose : bool
        Print one line per epoch.

    Attributes
    ----------
    classes_ : array (K,)
        The classes; `predict_proba` has its columns in their order.
    n_features_in_, feature_names_in_ : int, array
        As everywhere in scikit-learn, for vectors.
    label_issues_ : DataFrame
        One row per sample, in their order: id, given_label, suggested_label, label_score (low = suspicious), is_label_issue,
        rank. A structured numpy array if pandas is not installed.
    clean_probability_ : array (N,)
        Its column label_score.
    issues_ : IssueTable
        The same and more.
    cautions_ : tuple of str
        When not to trust the result, gravest first; empty if all is well.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.arange(200) % 2
    >>> X = 3 * np.eye(2)[truth] + rng.normal(size=(200, 2))
    >>> y = np.array(["cat", "dog"])[np.where(np.arange(200) < 20, 1 - truth, truth)]
    >>> model = NoisyLabelClassifier(epochs=6, random_state=0).fit(X, y)
    >>> print(model.score(X, np.array(["cat", "dog"])[truth]) > 0.9)
    True
    >>> print(model.clean_probability_[:20].mean() < model.clean_probability_[20:].mean() - 0.5)
    True
    """

    def __init__(
        self,
        *,
        method: str = "cpc",
        cleaner: str | None = None,
        network: str | nn.Module | Callable[[int, int], nn.Module] | None = None,
        backbone: str | None = None,
        weights: str | Path | None = None,
        epochs: int | None = None,
        warmup: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        mirror: bool = False,
        settings: Mapping[str, Any] | None = None,
        device: str | torch.device = "cpu",
        run_dir: str | Path | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.method = method
        self.cleaner = cleaner
        self.network = network
        self.backbone = backbone
        self.weights = weights
        self.epochs = epochs
        self.warmup = warmup
        self.batch_size = batch_size
        self.lr = lr
        self.mirror = mirror
        self.settings = settings
        self.device = device
        self.run_dir = run_dir
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, ids: Collection[Any] | None = None) -> Self:
        """Train on samples X and their given labels y (N,); `ids` (N,) name them in the tables.

        Without `ids`, the index of a data frame X or a series y does, where no name is there twice; else the rows' numbers. A
        fit that fails or is interrupted leaves the classifier as it was; one with `run_dir` goes on when it is called again.
        """
        with unchanged_by_failure(self), callers_settings_kept():
            tables = (X, y)
            warn_of_order(X, y, 3)
            X = self._seen(X)
            check_no_names(X, "X", LOAD_PICTURES)
            y = plain(y)
            check_present(y)
            X, y = validate_data(self, stacked(X, "X"), plain_labels(y), allow_nd=True, dtype="numeric")
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise BadInput("y has 1 class; a classifier needs at least two classes")
            self.form_ = form_of(X)
            names = [str(name) for name in self.classes_]
            named = identities(ids, len(y), *tables)
            rows = rows_of(self.form_.tensor(X), codes.astype(np.int64), names, [str(name) for name in named], self.mirror)
            with known_as(self.network) as name:
                self._train(rows, named, name)
        return self

    def _seen(self, X: Any) -> Any:
        """The features of X where there is a backbone; else X."""
        if self.backbone is None:
            if self.weights is not None:
                raise BadInput("weights are a backbone's; name it: backbone=..., a network of timm")
            return X
        seen = seen_through(self.backbone, self.weights, X, "X", self.device)
        if seen.unread:
            raise BadInput(f"X: {seen.words()}; fix them, or leave them out")
        return seen.features

    def _train(self, rows: Rows, ids: NDArray[Any], network: str | None) -> None:
        try:
            config = self._config(rows, network)
            begun = seed_in(Path(self.run_dir)) if self.run_dir is not None and self.random_state is None else None
            config, _ = settled(config if begun is None else replace(config, seed=begun), rows)
        except ToolError as error:
            raise BadInput(str(error)) from None
        if self.run_dir is None:
            run = start(None, config, rows=rows)
        else:
            run = run_in(Path(self.run_dir), config, rows)
        # Closed at once: a notebook keeps an interrupted call's frames, and with them the lock on the run.
        with closing(each_epoch(run)) as steps:  # type: ignore[type-var]
            for step in steps:
                if self.verbose:
                    shown(step.record, step.epochs)
        facts = model_facts(config, run.parts.method, rows.collection)
        self.model_: Model = built(facts, model_tensors(run.parts.method), choose_device(str(self.device)))
        assert run.outcome is not None
        self.cautions_ = tuple(cautions(run.found, run.record))
        self.issues_ = self._issues(run.outcome, ids, run.parts.held)
        self.clean_probability_ = self.issues_.label_score
        self.label_issues_ = self.issues_.to_frame()

    def _issues(self, outcome: Outcome, ids: NDArray[Any], held: HeldOut | None) -> IssueTable:
        """The same ranking as a run's issues.csv."""
        verdict, ranked = outcome.verdict, outcome.issues
        first = torch.stack(next(iter(verdict.opinions.values()))).cpu().numpy()
        return IssueTable(
            id=ids,
            given_label=self.classes_[ranked.given],
            suggested_label=self.classes_[ranked.predicted],
            label_score=ranked.score.astype(np.float64),
            is_label_issue=ranked.is_issue,
            order=ranked.order,
            probs=verdict.shares.numpy() if held is None else held.probs.numpy(),
            clean_by_loss=first.mean(0),
            clean_by_prototype=verdict.chance.cpu().numpy(),
            classes=self.classes_,
            wrong_share=outcome.found.share,
            cautions=self.cautions_,
        )

    def _config(self, rows: Rows, network: str | None) -> Config:
        """The presets' settings for such data, then what the constructor was told."""
        start = vectors() if rows.data.are_vectors else own() | PICTURES
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._check_numbers()
        epochs = start["training.epochs"] if self.epochs is None else self.epochs
        told = {
            "method": self.method,
            "network": network,
            "training.epochs": epochs,
            "training.warmup": min(start["training.warmup"], max(1, epochs // 4)) if self.warmup is None else self.warmup,
            "training.batch": self.batch_size,
            "training.warmup_batch": self.batch_size,
            "training.lr": self.lr,
            "device": str(self.device),
            "seed": seed,
            "data.source": MEMORY,
            "cleaner": cleaner_of(self.method) if self.cleaner is None else self.cleaner,
        }
        given = start | {key: value for key, value in told.items() if value is not None} | dict(self.settings or {})
        config = override(Config(), {key: v.item() if isinstance(v, np.generic) else v for key, v in given.items()})
        validate(config)
        unread = unheeded(config, {full_key(key) for key in self.settings or ()})
        if unread:
            warnings.warn(f"settings: {unread}", stacklevel=4)
        return config

    def _check_numbers(self) -> None:
        """`BadInput` for what no setting's own check would name as it is called here."""
        least = {"epochs": (self.epochs, 1), "warmup": (self.warmup, 0), "batch_size": (self.batch_size, 2)}
        for name, (value, low) in least.items():
            if value is None:
                continue
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or value % 1 != 0:
                raise BadInput(f"{name}={value!r} is no whole number")
            if value < low:
                why = "trains nothing" if name == "epochs" else "is too few"
                raise BadInput(f"{name}={value} {why}; give at least {low}, or None for a number that suits the data")
        if self.settings is not None and not isinstance(self.settings, Mapping):
            raise BadInput(
                f"settings={self.settings!r} cannot be used; give a dict by dotted keys, such as {{'training.beta': 4}}"
            )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The share of each class by both networks together, (N, K), columns as `classes_`.

        A suggested label is the largest mean of their single shares, which may be another where the networks disagree.
        """
        check_is_fitted(self, "model_")
        X = self._seen(X)
        check_no_names(X, "X", LOAD_PICTURES)
        with callers_settings_kept():
            X = stacked(X, "X")
            if len(self.form_.shape) > 1 and np.ndim(X) > 1:  # scikit-learn's own check takes a picture's rows for features
                self.form_.check(np.shape(X))
            X = validate_data(self, X, allow_nd=True, dtype="numeric", reset=False)
            images = self.form_.tensor(X)
            missing = -len(images) % LOOK
            filled = torch.cat((images, images[:1].expand(missing, *images.shape[1:])))
            shares = self.model_.probabilities(filled, LOOK)[: len(images)].cpu().double()
            return np.asarray(shares / shares.sum(1, keepdim=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each sample, (N,), as y had it."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[shares.argmax(1)])
