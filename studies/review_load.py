"""Many reviewers at once on a copy of a run: how long does saving a decision take, and is any lost?

`python -m studies.review_load RUN`: the server is started as a process of its own on a copy of what it reads; each
client decides on one label after the other, waits for the answer, and rests a moment. `--pause 0` is as fast as it goes.
"""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated
from urllib.parse import parse_qs, urlsplit

import numpy as np
import typer

from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import ToolError
from labelsieve.terminal.console import as_command

READ = ("config.yaml", "issues.csv", "issues.parquet", "scores.npz", "neighbours.npz", "round.json")


@dataclass(frozen=True)
class Load:
    """`lost` and `twice` count acknowledged decisions; times in milliseconds."""

    clients: int
    seconds: float
    saved: int
    lost: int
    twice: int
    median: float
    p99: float
    worst: float

    def words(self) -> str:
        return (
            f"{self.clients} clients, {self.seconds:.0f} s: {self.saved:,} decisions saved "
            f"({self.saved / self.seconds:.0f} a second), {self.lost} lost, {self.twice} twice; "
            f"until saved: median {self.median:.1f} ms, 99th percentile {self.p99:.1f} ms, worst {self.worst:.1f} ms"
        )


def load(run: Path, clients: int = 50, seconds: float = 60.0, pause: float = 0.2) -> Load:
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "run"
        copy.mkdir()
        for name in READ:
            if (run / name).is_file():
                shutil.copy(run / name, copy / name)
        ids = json.loads(_ids(copy))
        server, address = _started(copy)
        try:
            times, keys = asyncio.run(_all(address, ids, clients, seconds, pause))
        finally:
            server.send_signal(signal.SIGKILL)  # what was acknowledged must outlive that, too
            server.wait()
        written = [entry.key for entry in DecisionLog(copy).all()]
        lost, twice = len(set(keys) - set(written)), len(written) - len(set(written))
    found = 1000 * np.array(times)
    return Load(
        clients, seconds, len(keys), lost, twice, float(np.median(found)), float(np.quantile(found, 0.99)), float(found.max())
    )


def _ids(run: Path) -> str:
    """In another process, so that this one stays small."""
    code = (
        "import json, sys; from pathlib import Path; from labelsieve.review.table import read_table; "
        "print(json.dumps(read_table(Path(sys.argv[1])).ids.tolist()[:20000]))"
    )
    return subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True).stdout


def _started(run: Path, errors: IO[bytes] | None = None) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "labelsieve", "review", str(run), "--no-browser", "--port", "0", "--reviewer", "load"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("http://"):
            return server, line.strip()
    raise ToolError(f"{run}: the review did not start")


async def _all(address: str, ids: list[str], clients: int, seconds: float, pause: float) -> tuple[list[float], list[str]]:
    times: list[float] = []
    keys: list[str] = []
    end = time.monotonic() + seconds
    await asyncio.gather(*(_client(number, address, ids, end, pause, times, keys) for number in range(clients)))
    return times, keys


async def _client(
    number: int, address: str, ids: list[str], end: float, pause: float, times: list[float], keys: list[str]
) -> None:
    place = urlsplit(address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    cookie = f"labelsieve-{place.port}={parse_qs(place.query)['token'][0]}"
    head = f"POST /api/decisions HTTP/1.1\r\nHost: {place.netloc}\r\nCookie: {cookie}\r\nContent-Type: application/json\r\n"
    rng = np.random.default_rng(number)
    await asyncio.sleep(pause * rng.random())
    count = 0
    while time.monotonic() < end:
        key, name = f"load-{number:04d}-{count:08d}", ids[int(rng.integers(len(ids)))]
        action = ("accept", "keep", "drop", "unsure")[count % 4]
        body = json.dumps({"decisions": [{"key": key, "id": name, "action": action, "who": f"client {number}"}]})
        began = time.perf_counter()
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        status = await _answer(reader)
        times.append(time.perf_counter() - began)
        if status == 200:
            keys.append(key)
        count += 1
        await asyncio.sleep(pause * (0.5 + rng.random()))
    writer.close()


async def _answer(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    await reader.readexactly(length)
    return int(head.split()[1])


def command(
    run: Annotated[Path, typer.Argument(help="A run folder; a copy of it is decided on.")],
    clients: Annotated[int, typer.Option(min=1)] = 50,
    seconds: Annotated[float, typer.Option(min=1)] = 60.0,
    pause: Annotated[float, typer.Option(min=0, help="Seconds that a client rests after each decision, on average.")] = 0.2,
) -> None:
    """Let many clients decide at once, and say how long saving takes."""
    typer.echo(load(run, clients, seconds, pause).words())


if __name__ == "__main__":
    as_command(command)
