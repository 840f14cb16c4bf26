"""The history of scores stays within its room, keeps evenly spaced epochs, and can be saved and taken up at any time."""

import pytest
import torch
from torch import Tensor

from labelsieve.results.outcome import ScoreHistory


def scores(epoch: int, samples: int = 5) -> tuple[Tensor, ...]:
    return tuple(torch.rand(2, samples, generator=torch.Generator().manual_seed(epoch)))


def grown(start: int, epochs: int, samples: int = 5, mib: int = 1, break_at: int | None = None) -> ScoreHistory:
    history = ScoreHistory(samples, mib)
    for epoch in range(epochs):
        if epoch == break_at:
            saved = {name: value.clone() for name, value in history.state_dict().items()}
            history = ScoreHistory(samples, mib)
            history.load_state_dict(saved)
        if epoch >= start:
            history.add(epoch, {"loss": scores(epoch, samples), "prototype": scores(epoch + 1000, samples)})
        assert len(history.epochs) <= history.room
        assert {len(table) for table in history.opinions.values()} <= {len(history.epochs)}
        assert history.epochs == sorted(set(history.epochs))
        assert all(kept % history.stride == 0 and kept >= start for kept in history.epochs)
    return history


@pytest.mark.parametrize("start", [0, 1, 7, 30])
@pytest.mark.parametrize("epochs", [1, 4, 63, 64, 65, 66, 200, 451])
def test_bounded_ascending_and_evenly_spaced(start: int, epochs: int) -> None:
    history = grown(start, epochs)
    wanted = [epoch for epoch in range(start, epochs) if epoch % history.stride == 0]
    assert history.epochs == wanted
    assert len(wanted) > history.room // 2 - 2 or history.stride == 1
    for epoch, kept in zip(history.epochs, history.opinions.get("loss", [])):
        assert torch.equal(kept, torch.stack(scores(epoch)).half())


@pytest.mark.parametrize("break_at", [0, 1, 10, 11, 63, 64, 65, 129, 199])
def test_a_break_makes_no_difference(break_at: int) -> None:
    unbroken, broken = grown(10, 200).state_dict(), grown(10, 200, break_at=break_at).state_dict()
    assert unbroken.keys() == broken.keys()
    assert all(torch.equal(unbroken[name], broken[name]) for name in unbroken)


@pytest.mark.parametrize(("samples", "mib"), [(50_000, 64), (1_000_000, 64), (10, 0), (10_000_000, 1), (50_000, 5)])
def test_memory_is_within_the_bound(samples: int, mib: int) -> None:
    history = ScoreHistory(samples, mib)
    assert history.room % 2 == 0 and 4 <= history.room <= 64
    # Below four snapshots there would be nothing to show; that floor may be above the bound.
    assert history.room == 4 or history.room * samples * 8 <= mib * 2**20


def test_the_opinion_that_counts_is_the_last_one_also_after_a_break() -> None:
    history, again = ScoreHistory(5, 1), ScoreHistory(5, 1)
    assert history.counting is None and set(history.state_dict()) == {"stride"}
    history.add(0, {"loss": scores(0), "confidence": scores(1)})
    again.load_state_dict(history.state_dict())
    for each in (history, again):
        assert each.counting is not None and torch.equal(each.counting[0], torch.stack(scores(1)).half())


def test_what_older_checkpoints_kept_twice_is_one_opinion() -> None:
    history = ScoreHistory(5, 1)
    table = torch.stack(scores(0)).half().unsqueeze(0)
    history.load_state_dict({"stride": torch.tensor(1), "epochs": torch.tensor([3]), "by_loss": table, "by_prototype": table})
    assert list(history.opinions) == ["loss"]
