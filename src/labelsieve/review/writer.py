"""Saves decisions of many requests with one trip to the disk; each request is answered once its own are saved."""

import asyncio
from collections.abc import Callable

from labelsieve.decisions.decision import Decision

Append = Callable[[list[Decision]], list[Decision]]


class Writer:
    """While one trip is on its way, what arrives waits for the next: a disk that takes its time is asked rarely."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._waiting: list[tuple[list[Decision], asyncio.Future[list[Decision]]]] = []
        self._going: asyncio.Task[None] | None = None

    async def write(self, entries: list[Decision]) -> list[Decision]:
        answer: asyncio.Future[list[Decision]] = asyncio.get_running_loop().create_future()
        self._waiting.append((entries, answer))
        if self._going is None or self._going.done():
            self._going = asyncio.create_task(self._go())
        return await answer

    async def _go(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                written = iter(await asyncio.to_thread(self._append, [entry for entries, _ in batch for entry in entries]))
            except Exception as error:  # whatever it is, those who wait must hear of it
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for entries, answer in batch:
                own = [next(written) for _ in entries]
                if not answer.done():
                    answer.set_result(own)
