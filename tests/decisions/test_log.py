"""The log: nothing that was acknowledged is lost, nothing is there twice, whatever happens to the writers and the disk."""

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import labelsieve
from decisions.made import decision
from labelsieve import locks
from labelsieve.decisions.decision import Decision
from labelsieve.decisions.log import NAME, DecisionLog
from labelsieve.errors import ToolError

ENVIRONMENT = os.environ | {"PYTHONPATH": f"{Path(__file__).parents[1]}:{Path(labelsieve.__file__ or '').parents[1]}"}
# Writes for ever, a few at a time, and says which keys were acknowledged.
WRITER = """
import sys
from pathlib import Path
from labelsieve.decisions.log import DecisionLog
from decisions.made import decision
log, name = DecisionLog(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
n = 0
while True:
    keys = [f"{name}-{n + i}" for i in range(1 + n % 3)]
    log.append([decision(key, "x" * (n % 4000 + 1)) for key in keys])
    print(*keys, flush=True)
    n += len(keys)
"""


def writer(folder: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)


def test_what_is_appended_is_read_back_with_its_place(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    assert log.all() == [] and log.since(0) == ([], 0) and not (tmp_path / NAME).exists()
    given = log.append([decision("1", "ü\udcff\u2028\n,", "relabel", "dög", replaces=7), decision("2", "b", "drop")])
    assert [entry.seq for entry in given] == [1, 2]
    assert DecisionLog(tmp_path).all() == given and given[0].id == "ü\udcff\u2028\n," and given[0].label == "dög"
    lines = (tmp_path / NAME).read_bytes().splitlines()
    facts = json.loads(lines[1])
    assert facts["id"] == "b" and facts["action"] == "drop" and facts["label"] is None and facts["score"] == 0.25


def test_since_gives_only_what_is_new(tmp_path: Path) -> None:
    log, other = DecisionLog(tmp_path), DecisionLog(tmp_path)
    log.append([decision("1")])
    first, offset = other.since(0)
    assert [entry.key for entry in first] == ["1"] and other.since(offset) == ([], offset)
    log.append([decision("2"), decision("3")])
    new, end = other.since(offset)
    assert [entry.key for entry in new] == ["2", "3"] and end == (tmp_path / NAME).stat().st_size
    for foreign in (offset + 1, end + 100, -1):
        assert len(other.since(foreign)[0]) == 3


def test_a_key_counts_once_also_from_another_process(tmp_path: Path) -> None:
    log, other = DecisionLog(tmp_path), DecisionLog(tmp_path)
    first = log.append([decision("1", label="cat"), decision("2")])
    again = other.append([decision("2"), decision("3"), decision("3"), decision("1", label="dog")])
    assert [entry.seq for entry in again] == [2, 3, 3, 1] and again[3] == first[0]
    assert [entry.key for entry in log.all()] == ["1", "2", "3"]


def test_a_torn_last_line_is_unseen_and_then_cut_off(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    log.append([decision("1")])
    with (tmp_path / NAME).open("ab") as file:
        file.write(decision("lost").line()[:40])
    fresh = DecisionLog(tmp_path)
    assert [entry.key for entry in fresh.all()] == ["1"]
    for one in (fresh, log):
        one.append([decision(f"after {id(one)}")])
    assert [entry.seq for entry in log.all()] == [1, 2, 3]


@pytest.mark.parametrize(
    "damage", [b"no json\n", b"{}\n", b"[1]\n", b"\x00\x00\n", decision("x").line().replace(b'"keep"', b'"burn"')]
)
def test_a_damaged_line_is_named(tmp_path: Path, damage: bytes) -> None:
    DecisionLog(tmp_path).append([decision("1")])
    with (tmp_path / NAME).open("ab") as file:
        file.write(damage)
    with pytest.raises(ToolError, match=f"{NAME}, line 2"):
        DecisionLog(tmp_path).all()
    with pytest.raises(ToolError, match=f"{NAME}, line 2"):
        DecisionLog(tmp_path).append([decision("2")])


def test_killed_at_random_moments_every_acknowledged_entry_is_there_once(tmp_path: Path) -> None:
    rng, acknowledged = random.Random(3), []
    for turn in range(12):
        pair = [writer(tmp_path, f"{turn}{side}") for side in "ab"]
        for process in pair:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            for _ in range(2):  # however busy the machine is, each comes so far
                acknowledged += process.stdout.readline().split()
        time.sleep(rng.uniform(0.0, 0.15))
        for process in pair:
            process.kill()
        for process in pair:
            said = process.communicate()[0].split("\n")
            acknowledged += " ".join(said[:-1]).split()
            assert process.returncode == -signal.SIGKILL
        DecisionLog(tmp_path).append([decision(f"after {turn}")])
    entries = DecisionLog(tmp_path).all()
    keys = [entry.key for entry in entries]
    assert len(keys) == len(set(keys)) and set(acknowledged) <= set(keys) and len(acknowledged) > 50
    assert [entry.seq for entry in entries] == list(range(1, len(keys) + 1))


def test_many_threads_and_several_logs_lose_nothing(tmp_path: Path) -> None:
    logs = [DecisionLog(tmp_path), DecisionLog(tmp_path)]

    def work(name: int) -> None:
        for n in range(15):
            logs[name % 2].append([decision(f"{name}-{n}")])

    threads = [threading.Thread(target=work, args=(name,)) for name in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = logs[0].all()
    assert [entry.seq for entry in entries] == list(range(1, 241)) and len({entry.key for entry in entries}) == 240


@pytest.mark.parametrize("step", ["write", "fsync"])
def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    log = DecisionLog(tmp_path)
    log.append([decision("1")])
    before, real = (tmp_path / NAME).read_bytes(), os.write

    def full(handle: int, data: bytes = b"") -> int:
        if step == "write" and len(data) > 50:
            return real(handle, data[:50])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(ToolError, match="No space left.*free some space"):
            log.append([decision("2"), decision("3")])
    assert (tmp_path / NAME).read_bytes() == before
    assert [entry.seq for entry in log.append([decision("2"), decision("3")])] == [2, 3]
    assert [entry.key for entry in DecisionLog(tmp_path).all()] == ["1", "2", "3"]


FILLER = """
import sys
from pathlib import Path
from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import ToolError
from decisions.made import decision
log = DecisionLog(Path(sys.argv[1]))
for n in range(1000):
    try:
        log.append([decision(f"{n}a"), decision(f"{n}b")])
    except ToolError as error:
        print(n, error)
        break
"""


def test_a_limit_of_the_kernel_half_way_through_a_line(tmp_path: Path) -> None:
    """The real thing: the kernel takes part of the bytes and refuses the rest."""
    limit = 10_000
    done = subprocess.run(
        [sys.executable, "-c", FILLER, str(tmp_path)],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    count = int(done.stdout.split()[0])
    assert count > 10 and "File too large" in done.stdout
    assert [entry.key for entry in DecisionLog(tmp_path).all()] == [f"{n}{side}" for n in range(count) for side in "ab"]
    assert (tmp_path / NAME).read_bytes().endswith(b"\n")


def test_appending_stays_fast_when_the_log_is_long(tmp_path: Path) -> None:
    lines = [Decision(f"k{n}", f"id{n}", "keep", "cat", "ada", "now", 0.5, None, n + 1).line() for n in range(100_000)]
    (tmp_path / NAME).write_bytes(b"".join(lines))
    log, offset = DecisionLog(tmp_path), (tmp_path / NAME).stat().st_size
    log.append([decision("first")])  # reads what is there, once
    read, real = [], os.pread

    def counted(handle: int, size: int, at: int) -> bytes:
        read.append(size)
        return real(handle, size, at)

    os.pread = counted  # type: ignore[assignment]
    try:
        for n in range(20):
            log.append([decision(f"new {n}")])
        assert len(log.since(offset)[0]) == 21
    finally:
        os.pread = real  # type: ignore[assignment]
    assert sum(read) < 10_000 and log.since(offset)[0][-1].seq == 100_021


def test_a_log_put_in_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    log.append([decision("1"), decision("2")])
    (tmp_path / NAME).unlink()
    assert log.append([decision("2")])[0].seq == 1
    (tmp_path / NAME).write_bytes(b"")
    assert log.append([decision("2")])[0].seq == 1 and len(log.all()) == 1


def test_a_log_written_over_by_a_longer_one_is_read_anew(tmp_path: Path) -> None:
    """As `cp` puts back a copy: the file stays the same one."""
    log = DecisionLog(tmp_path)
    log.append([decision("1")])
    (tmp_path / "other").mkdir()
    DecisionLog(tmp_path / "other").append([decision(f"another {n}") for n in range(3)])
    (tmp_path / NAME).write_bytes((tmp_path / "other" / NAME).read_bytes())
    assert [entry.seq for entry in log.append([decision("1")])] == [4]
    assert [entry.key for entry in log.all()] == ["another 0", "another 1", "another 2", "1"]


def test_a_log_put_in_the_place_of_another_while_one_waits_for_it_gets_the_decision(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    log.append([decision("1")])
    (tmp_path / "other").mkdir()
    DecisionLog(tmp_path / "other").append([decision("another")])
    waits, real = threading.Event(), locks.fcntl.flock

    def told(handle: int, flags: int) -> None:
        waits.set()
        real(handle, flags)

    with (tmp_path / NAME).open("rb") as held, pytest.MonkeyPatch.context() as patch:
        real(held, locks.fcntl.LOCK_EX)
        patch.setattr(locks.fcntl, "flock", told)
        writing = threading.Thread(target=log.append, args=([decision("2")],))
        writing.start()
        assert waits.wait(60)
        (tmp_path / "other" / NAME).replace(tmp_path / NAME)
    writing.join()
    assert [entry.key for entry in DecisionLog(tmp_path).all()] == ["another", "2"]


def test_links_and_pipes_are_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    (tmp_path / NAME).symlink_to(victim)
    with pytest.raises(ToolError, match=NAME):
        DecisionLog(tmp_path).append([decision("1")])
    assert victim.read_text() == "mine\n"
    (tmp_path / NAME).unlink()
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(ToolError, match="no plain file"):
        DecisionLog(tmp_path).all()


def test_a_folder_that_is_gone_or_closed_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="gone.*make the folder"):
        DecisionLog(tmp_path / "gone").append([decision("1")])
