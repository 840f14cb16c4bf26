"""Many requests, few trips to the disk: each is answered with its own entries, and hears of what went wrong."""

import asyncio
import time

import pytest

from labelsieve.decisions.decision import Decision
from labelsieve.errors import ToolError
from labelsieve.review.server import Writer


def entry(key: str) -> Decision:
    return Decision(key, "s0", "drop", None, "anna", "2026-11-15T10:00:00Z")


def test_what_comes_while_the_disk_is_busy_goes_together() -> None:
    trips: list[list[str]] = []

    def append(entries: list[Decision]) -> list[Decision]:
        trips.append([one.key for one in entries])
        time.sleep(0.02)
        return entries

    async def all_at_once() -> list[list[Decision]]:
        writer = Writer(append)
        return await asyncio.gather(*(writer.write([entry(f"{n}-a"), entry(f"{n}-b")]) for n in range(30)))

    found = asyncio.run(all_at_once())
    assert [[one.key for one in own] for own in found] == [[f"{n}-a", f"{n}-b"] for n in range(30)]
    assert sum(map(len, trips)) == 60 and len(trips) <= 3


def test_a_refusal_reaches_all_who_wait_and_the_next_trip_goes_on() -> None:
    full = True

    def append(entries: list[Decision]) -> list[Decision]:
        if full:
            raise ToolError("no space")
        return entries

    async def twice() -> list[Decision]:
        nonlocal full
        writer = Writer(append)
        found = await asyncio.gather(*(writer.write([entry(str(n))]) for n in range(3)), return_exceptions=True)
        assert all(isinstance(one, ToolError) for one in found)
        full = False
        return await writer.write([entry("later")])

    assert [one.key for one in asyncio.run(twice())] == ["later"]


def test_one_who_went_away_does_not_hold_up_the_rest() -> None:
    async def with_one_gone() -> list[Decision]:
        writer = Writer(lambda entries: entries)
        gone = asyncio.create_task(writer.write([entry("gone")]))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await writer.write([entry("here")])

    assert [one.key for one in asyncio.run(with_one_gone())] == ["here"]
