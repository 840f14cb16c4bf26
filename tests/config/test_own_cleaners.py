"""A cleaner of one's own divides a run: it is checked, saved, resumed and drawn, and what is wrong with it is said by name."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from api.made import blobs
from labelsieve import NoisyLabelClassifier, register_cleaner
from labelsieve.errors import UsageError
from labelsieve.methods.parts import cleaners
from labelsieve.methods.parts.cleaners import Evidence, PrototypeCleaner
from labelsieve.predict.model import load_model
from labelsieve.reproduce.curves import agreement_lines, auc_lines
from labelsieve.reproduce.figures import lines_figure, save
from labelsieve.runs.findings import read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import arrays_file, contents, tiny_config, to_the_end, whole


class Nearest:
    """The share of a label's softmax against the class means that the peer's clean labels have; with a rate that drops."""

    def __init__(self, lr: float = 1.0) -> None:
        self.lr = lr
        self.means: Tensor | None = None

    def learn(self, seen: Evidence, clean: Tensor | None = None) -> None:
        assert clean is not None and clean.shape == (len(seen),) and clean.dtype == torch.bool
        chosen = torch.nn.functional.one_hot(seen.labels, seen.classes).float() * clean.unsqueeze(1)
        means = chosen.T @ seen.features / chosen.sum(0).clamp_min(1).unsqueeze(1)
        self.means = means if self.means is None else self.means + 0.5 * self.lr * (means - self.means)

    def judge(self, seen: Evidence) -> Tensor:
        assert self.means is not None
        shares = (-torch.cdist(seen.features, self.means)).softmax(1)
        return shares.gather(1, seen.labels.unsqueeze(1)).squeeze(1)

    def state_dict(self) -> dict[str, Tensor]:
        return {} if self.means is None else {"prototypes": self.means, "again": self.means}  # a name of ours, a shared tensor

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.means = state.get("prototypes")


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = dict(cleaners.REGISTERED)
    yield
    cleaners.REGISTERED.clear()
    cleaners.REGISTERED.update(before)


@pytest.fixture
def source(tmp_path: Path) -> str:
    return arrays_file(tmp_path / "stripes.npz")


def test_it_divides_and_a_resumed_run_ends_the_same(tmp_path: Path, source: str) -> None:
    register_cleaner("nearest", lambda seed: Nearest())
    config = tiny_config(source, cleaner="nearest", training__epochs=4)
    unbroken = whole(tmp_path / "unbroken", config)
    assert [line["phase"] for line in unbroken.metrics] == ["warm-up", *["prototypes"] * 3, "final"]
    assert len(unbroken.metrics[-1]["auc_prototype"]) == 2 and "prototypes" not in unbroken.metrics[-2]["accuracy"]
    for progress in each_epoch(start(tmp_path / "stopped", config), lambda: True):
        assert progress.epoch == 1
    for progress in each_epoch(resume(tmp_path / "stopped"), lambda: True):
        assert progress.epoch == 2
    to_the_end(tmp_path / "stopped")
    assert contents(tmp_path / "stopped") == contents(tmp_path / "unbroken")


class Drawing(Nearest):
    """Its start, its order and its chances come from torch's own generator."""

    def __init__(self) -> None:
        super().__init__()
        self.start = torch.nn.Linear(4, 4).weight.detach()

    def judge(self, seen: Evidence) -> Tensor:
        return (super().judge(seen) + 0.3 * torch.rand(len(seen)) * self.start.mean().sigmoid()).clamp(0, 1)


class DrawingOurs(PrototypeCleaner):
    def judge(self, seen: Evidence) -> Tensor:
        return super().judge(seen) * torch.rand(len(seen))


@pytest.mark.parametrize("make", [lambda seed: Drawing(), lambda seed: DrawingOurs(dim=8, seed=seed)])
def test_what_it_draws_from_torch_is_drawn_again(tmp_path: Path, source: str, make: Any) -> None:
    register_cleaner("drawing", make)
    config = tiny_config(source, cleaner="drawing", training__epochs=4)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    whole(tmp_path / "one", config)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    for begun in (start(tmp_path / "two", config), None):
        for _ in each_epoch(begun or resume(tmp_path / "two"), lambda: True):
            torch.manual_seed(3)
    to_the_end(tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_it_goes_on_from_a_slim_checkpoint(tmp_path: Path, source: str) -> None:
    register_cleaner("nearest", lambda seed: Nearest())
    config = tiny_config(source, cleaner="nearest", training__epochs=3, output__slim_checkpoint=True)
    stops = iter((False, True))
    for _ in each_epoch(start(tmp_path / "run", config), lambda: next(stops)):
        pass
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    run = to_the_end(tmp_path / "run")
    judge = run.parts.method.prototypes(0)
    assert run.done and isinstance(judge, cleaners.OwnCleaner) and judge.state_dict()["own.prototypes"].dtype == torch.float32


def test_scores_and_issues_hold_its_chances(tmp_path: Path, source: str) -> None:
    register_cleaner("nearest", lambda seed: Nearest())
    whole(tmp_path / "run", tiny_config(source, cleaner="nearest"))
    with np.load(tmp_path / "run" / "scores.npz") as scores:
        assert scores["by_prototype"].shape == (2, 48) and "similarity_given" not in scores
        assert not np.array_equal(scores["by_prototype"], scores["by_loss"])
    header, *rows = (tmp_path / "run" / "issues.csv").read_text().splitlines()
    assert "chance_by_prototype" in header and len(rows) == 48
    assert load_model(tmp_path / "run", torch.device("cpu")).experts[0].prototypes is None


def test_figures_show_it_by_its_name(tmp_path: Path, source: str) -> None:
    register_cleaner("gmm-a$b", lambda seed: Nearest())
    whole(tmp_path / "run", tiny_config(source, cleaner="gmm-a$b", training__epochs=3))
    records = [read_record(RunFolder.open(tmp_path / "run"))]
    lines = auc_lines(records)
    assert [line.label for line in lines] == [r"gmm-a\$b", r"its mixture (gmm-a\$b)"]
    assert [line.cleaner for line in agreement_lines(records, "divergence")] == ["gmm-a$b"]
    figure = lines_figure([("AUC", lines)], 1, "words")
    assert all(place.stat().st_size > 200 for place in save(figure, tmp_path / "auc"))


def test_what_others_do_with_such_a_run(tmp_path: Path, source: str) -> None:
    """Whoever has not registered it can read the run, and is told why it cannot go on."""
    register_cleaner("nearest", lambda seed: Nearest())
    for _ in each_epoch(start(tmp_path / "run", tiny_config(source, cleaner="nearest")), lambda: True):
        pass
    cleaners.REGISTERED.clear()
    assert RunFolder.open(tmp_path / "run").read_config().cleaner == "nearest"
    with pytest.raises(UsageError, match='cleaner "nearest" is not known.*register_cleaner'):
        resume(str(tmp_path / "run"))  # a text will do


def test_one_made_of_ours_is_taken_as_it_is(tmp_path: Path, source: str) -> None:
    class Halved(PrototypeCleaner):
        def judge(self, seen: Evidence) -> Tensor:
            return super().judge(seen) / 2

    register_cleaner("halved", lambda seed: Halved(dim=8, seed=seed))
    run = whole(tmp_path / "run", tiny_config(source, cleaner="halved"))
    with np.load(tmp_path / "run" / "scores.npz") as scores:
        assert 0 < scores["by_prototype"].max() <= 0.5 and "similarity_given" in scores
    assert "prototypes" in run.metrics[-2]["accuracy"]


def test_a_fit_takes_it_by_its_name() -> None:
    register_cleaner("nearest-awr", lambda seed: Nearest())
    vectors, given, truth = blobs(150)
    model = NoisyLabelClassifier(epochs=6, random_state=0, settings={"cleaner": "nearest-awr"}).fit(vectors, given)
    assert model.score(vectors, truth) > 0.9
    assert model.clean_probability_[given != truth].mean() < model.clean_probability_[given == truth].mean() - 0.3


def gives(value: Any) -> Callable[..., Any]:
    class Given(Nearest):
        def judge(self, seen: Evidence) -> Any:
            return value(len(seen))

    return lambda seed: Given()


def ours_giving(value: Any) -> Callable[..., Any]:
    class Given(PrototypeCleaner):
        def judge(self, seen: Evidence) -> Any:
            return value(super().judge(seen))

    return lambda seed: Given(dim=8, seed=seed)


class ChangesLosses(Nearest):
    def judge(self, seen: Evidence) -> Tensor:
        return 1 - seen.losses.clamp_(0, 1)


class ChangesFeatures(PrototypeCleaner):
    def learn(self, seen: Evidence, clean: Tensor | None = None, features: Tensor | None = None) -> None:
        seen.features.mul_(2)
        super().learn(seen, clean, features)


class NoState(Nearest):
    def state_dict(self) -> Any:
        return None


class NoVerbs:
    def learn(self, seen: Evidence, clean: Tensor | None = None) -> None: ...


class OddState(Nearest):
    def state_dict(self) -> Any:
        return {"count": 3}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Nearest, r"called as in build\(seed=0\).*lambda seed"),
        (lambda seed: NoVerbs(), "NoVerbs has no judge and no state_dict and no load_state_dict"),
        (gives(lambda n: torch.zeros(n, 2)), r"judge gave \(48, 2\); it must give a tensor \(48,\)"),
        (gives(lambda n: [0.5] * n), "judge gave list"),
        (gives(lambda n: torch.full((n,), -2.0)), "values from -2 to -2.*between 0 and 1"),
        (gives(lambda n: torch.full((n,), torch.nan)), "values from nan"),
        (ours_giving(lambda chances: 7 * chances), "values from .*between 0 and 1"),
        (ours_giving(lambda chances: chances * torch.nan), "values from nan"),
        (ours_giving(lambda chances: chances[1:]), r"judge gave \(47,\)"),
        (lambda seed: ChangesLosses(), r"judge changed seen.losses in place.*seen.losses.clone\(\)"),
        (lambda seed: ChangesFeatures(dim=8, seed=seed), "learn changed seen.features in place"),
        (lambda seed: NoState(), "state_dict gave NoneType"),
        (lambda seed: OddState(), '"count" in its state_dict is int; checkpoints hold tensors'),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, source: str, make: Any, said: str) -> None:
    register_cleaner("mine", make)
    with pytest.raises(UsageError, match=f'cleaner "mine": .*{said}'):
        whole(tmp_path / "run", tiny_config(source, cleaner="mine"))


def test_our_names_are_taken_ones_own_mean_the_newest() -> None:
    with pytest.raises(UsageError, match="known already"):
        register_cleaner("cpc-awr", lambda seed: Nearest())
    made: list[int] = []
    register_cleaner("mine", lambda seed: Nearest())
    register_cleaner("mine", lambda seed: made.append(seed) or Nearest())
    cleaners.own_cleaner("mine", seed=7)
    assert made == [7]
    with pytest.raises(UsageError, match="cannot be called"):
        register_cleaner("instance", Nearest())  # type: ignore[arg-type]
