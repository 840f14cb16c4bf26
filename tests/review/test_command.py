"""`labelsieve review` as a command: the address on a line of its own, pictures of arrays, what is missing said, no orphans."""

import contextlib
import importlib.util
import io
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from browser.server import PATIENCE, Server
from labelsieve.cli.main import main
from labelsieve.decisions.decision import Decision
from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import ToolError
from labelsieve.review.opening import open_review
from labelsieve.review.serving import listen
from review.made import made_run
from runs.tiny import arrays_file


@pytest.fixture(scope="module")
def trained(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run over an npz of pictures, of which a review may write down decisions."""
    return shutil.copytree(finished, tmp_path_factory.mktemp("trained") / "run")


@pytest.fixture
def started() -> Iterator[Callable[[Path], Server]]:
    servers: list[Server] = []

    def start(path: Path) -> Server:
        servers.append(Server(path).start())
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def test_a_real_server_serves_pictures_of_arrays_and_leaves_no_process_behind(
    trained: Path, started: Callable[[Path], Server]
) -> None:
    server = started(trained)
    assert server.address == f"http://127.0.0.1:{server.port}/?token={server.address.split('=')[1]}"
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=PATIENCE) as client:
        assert client.get("/api/start").status_code == 401
        assert client.get("/", params={"token": server.address.split("=")[1]}).status_code == 200
        facts = client.get("/api/start").json()
        assert facts["pictures"] and len(facts["classes"]) == 3
        row = client.get("/api/rows", params={"everything": True, "limit": 1}).json()["rows"][0]
        end = time.monotonic() + PATIENCE
        while not client.get("/api/changes").json()["shown"]["ready"] and time.monotonic() < end:
            time.sleep(0.1)
        answer = client.get("/api/picture", params={"id": row["id"]})
        assert answer.headers["content-type"] == "image/png" and Image.open(io.BytesIO(answer.content)).size == (8, 8)
    assert server.process is not None
    helpers = children(server.process.pid)
    assert helpers
    server.kill()
    end = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in helpers):
        assert time.monotonic() < end, "the process that reads pictures outlives the server"
        time.sleep(0.05)


def test_a_run_keeps_the_nearest_clean_samples_of_both_classes(trained: Path) -> None:
    review = open_review(trained)
    table = review.table
    issues = [row for row in range(len(table)) if table.is_issue[row]]
    assert issues
    for row in issues:
        given, suggested, alike = review.evidence.neighbours(row)
        for near, label in ((given, table.given[row]), (suggested, table.suggested[row])):
            assert all(table.given[other] == label and not table.is_issue[other] and other != row for other in near)
        assert len(set(given)) == len(given) <= 6
        assert len(set(alike)) == 6 and row not in alike


def test_arrays_that_changed_since_are_not_shown(trained: Path, tmp_path: Path) -> None:
    review = open_review(trained, arrays_file(tmp_path / "other.npz", labels=np.arange(48)[::-1] % 3))
    review.pictures.open()
    try:
        assert "changed since the run" in review.pictures.remark and not review.pictures.ready
    finally:
        review.pictures.stop()


def test_without_the_extra_the_command_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec

    def find(name: str, *rest: Any) -> Any:
        return None if name == "fastapi" else found(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    monkeypatch.setattr(sys, "argv", ["labelsieve", "review", str(made_run(tmp_path / "run"))])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1 and 'pip install "labelsieve[review]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [(["nowhere"], "no run folder"), (["RUN", "--reviewer", "a\tb"], "printable"), (["RUN", "--reviewer=-1+2"], "begin")],
)
def test_mistakes_are_said_before_anything_starts(
    run: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["labelsieve", "review", "--port", "0", *(str(run) if word == "RUN" else word for word in words)]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2 and said in capsys.readouterr().err


def test_a_port_that_is_taken_is_named_and_without_one_the_next_is_used() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ToolError, match=rf"127.0.0.1:{port}: cannot listen"):
            listen("127.0.0.1", port)
    with listen("127.0.0.1", None) as first, listen("127.0.0.1", None) as second:
        assert first.getsockname()[1] != second.getsockname()[1]


def test_the_review_starts_without_torch(run: Path) -> None:
    import subprocess

    code = (
        "import sys; from pathlib import Path; from labelsieve.review.opening import open_review; "
        "import labelsieve.review.serving; open_review(Path(sys.argv[1])); "
        "print('torch' in sys.modules, 'sklearn' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("writable", [True, False])
def test_a_log_that_cannot_be_written_is_told_before_anybody_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], writable: bool
) -> None:
    run = made_run(tmp_path / "run")
    monkeypatch.setattr("labelsieve.review.serving.serve", lambda review, listener, *rest: (listener.close(), rest[-1]()))
    # Tests may run as root, who may write everywhere.
    monkeypatch.setattr(os, "access", lambda place, mode, **rest: writable or mode != os.W_OK)
    monkeypatch.setattr(sys, "argv", ["labelsieve", "review", str(run), "--port", "0", "--no-browser"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert ("decisions.jsonl cannot be written" in capsys.readouterr().out.replace("\n", " ")) is not writable


def test_the_command_counts_what_is_decided_as_the_page_does_and_not_what_was_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made_run(tmp_path / "run")
    said = [("s000", "drop"), ("s001", "drop"), ("s001", "clear"), ("s000", "unsure")]
    entries = [
        Decision(f"ben-{n:04d}", name, action, None, "ben", "2026-11-15T10:00:00Z") for n, (name, action) in enumerate(said)
    ]
    DecisionLog(run).append(entries)
    monkeypatch.setattr("labelsieve.review.serving.serve", lambda review, listener, *rest: (listener.close(), rest[-1]()))
    monkeypatch.setattr(sys, "argv", ["labelsieve", "review", str(run), "--port", "0", "--no-browser"])
    with pytest.raises(SystemExit):
        main()
    assert "20 issues in 40 labels, 1 decided so far" in capsys.readouterr().out.replace("\n", " ")
    counts = open_review(run).desk.counts()
    assert counts["unsure"] == 1 and counts["open"] == 19
