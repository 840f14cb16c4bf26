"""Clients decide at once while the review's server is killed and started anew: every decision it acknowledged is in the log once.

The server and what it is asked are those of `python -m studies.review_load`. As the page does, a client that got no
answer sends the same decision with the same key again.
"""

import asyncio
import json
import random
import signal
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from labelsieve.decisions.log import DecisionLog
from review.made import made_run
from studies import review_load

ACTIONS = ("accept", "keep", "drop", "unsure")
PATIENCE = 0.05  # seconds before a client tries again


@dataclass
class Told:
    """`sent` and `saved` are keys: of decisions that were sent, and of those that were acknowledged."""

    kills: int = 0
    sent: set[str] = field(default_factory=set)
    saved: set[str] = field(default_factory=set)
    refused: int = 0
    failures: list[str] = field(default_factory=list)

    def words(self) -> str:
        return f"{len(self.saved):,} decisions acknowledged under {self.kills} kills of the server; {len(self.failures)} failures"


def reviewed(place: Path, kills: int, clients: int = 8, seed: int = 0) -> Told:
    """Kill the server so many times, and once more at the end."""
    run = made_run(place / "reviewed", count=400)
    told = Told()
    asyncio.run(_reviewed(run, kills, clients, seed, told))
    entries = DecisionLog(run).all()
    keys = [entry.key for entry in entries]
    for words, found in (
        ("acknowledged and lost", told.saved - set(keys)),
        ("twice in the log", {key for key in keys if keys.count(key) > 1} if len(keys) != len(set(keys)) else set()),
        ("in the log, and nobody sent it", set(keys) - told.sent),
    ):
        if found:
            told.failures.append(f"{len(found)} {words}, such as {min(found)}")
    if [entry.seq for entry in entries] != list(range(1, len(entries) + 1)):
        told.failures.append("numbers with gaps")
    if told.refused:
        told.failures.append(f"{told.refused} refused")
    return told


class _Server:
    """The one that runs now; `address` is empty while there is none."""

    def __init__(self, run: Path) -> None:
        self.run, self.address, self.process = run, "", None

    async def start(self) -> None:
        self.process, self.address = await asyncio.to_thread(review_load._started, self.run)

    def kill(self) -> None:
        assert self.process is not None
        self.address = ""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


async def _reviewed(run: Path, kills: int, clients: int, seed: int, told: Told) -> None:
    server, rng, over = _Server(run), random.Random(seed), asyncio.Event()
    await server.start()
    tasks = [asyncio.create_task(_client(number, server, told, over)) for number in range(clients)]
    try:
        for _ in range(kills + 1):
            wanted = len(told.saved) + rng.randrange(20, 400)
            while len(told.saved) < wanted and not any(task.done() for task in tasks):
                await asyncio.sleep(0.002)
            server.kill()
            told.kills += 1
            if told.kills > kills:
                over.set()
            else:
                await server.start()
    finally:
        over.set()
        if server.address:
            server.kill()
        await asyncio.gather(*tasks)


async def _client(number: int, server: _Server, told: Told, over: asyncio.Event) -> None:
    rng, count = random.Random(number), 0
    while not over.is_set():
        key = f"kill-{number:04d}-{count:08d}"
        entry = {"key": key, "id": f"s{rng.randrange(400):03d}", "action": ACTIONS[count % 4], "who": f"client {number}"}
        told.sent.add(key)
        count += 1
        while not over.is_set():
            try:
                status = await _posted(server, json.dumps({"decisions": [entry]}).encode())
            except (OSError, asyncio.IncompleteReadError, IndexError):
                await asyncio.sleep(PATIENCE)
                continue
            told.refused += status != 200
            if status == 200:
                told.saved.add(key)
            break


async def _posted(server: _Server, body: bytes) -> int:
    place = urlsplit(server.address)
    if not place.port:
        raise ConnectionError
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        cookie = f"labelsieve-{place.port}={parse_qs(place.query)['token'][0]}"
        head = f"POST /api/decisions HTTP/1.1\r\nHost: {place.netloc}\r\nCookie: {cookie}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return await review_load._answer(reader)
    finally:
        writer.close()
