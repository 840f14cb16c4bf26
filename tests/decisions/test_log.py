"""The log: nothing that was acknowledged is lost, nothing is there twice, whatever happens to the writers and the disk."""

import errno
import gc
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import labelsieve
from decisions.made import decision
from labelsieve import disk
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
    assert log.all() == [] and log.states() == {} and not (tmp_path / NAME).exists()
    given = log.append([decision("1", "ü\udcff\u2028\n,", "relabel", "dög", replaces=7), decision("2", "b", "drop")])
    assert [entry.seq for entry in given] == [1, 2]
    assert DecisionLog(tmp_path).all() == given and given[0].id == "ü\udcff\u2028\n," and given[0].label == "dög"
    lines = (tmp_path / NAME).read_bytes().splitlines()
    facts = json.loads(lines[1])
    assert facts["id"] == "b" and facts["action"] == "drop" and facts["label"] is None and facts["score"] == 0.25


def test_catching_up_adds_what_is_new(tmp_path: Path) -> None:
    log, other = DecisionLog(tmp_path), DecisionLog(tmp_path)
    log.append([decision("1")])
    index = other.catch_up()
    assert list(index.keys) == ["1"] and other.catch_up() is index and len(index) == 1
    log.append([decision("2"), decision("3", "b")])
    assert other.catch_up() is index and list(index.keys) == ["1", "2", "3"] and index.end == (tmp_path / NAME).stat().st_size
    assert other.read([2, 0]) == [log.all()[2], log.all()[0]] and list(other.known(["3", "4"])) == ["3"]


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


def long_log(folder: Path, entries: Iterable[tuple[str, str, int | None]]) -> int:
    """(who, id, replaces) each; how many bytes it has."""
    lines = [
        Decision(f"k{n}", name, "keep", "cat", who, "2026-11-15T10:00:00Z", 0.5, seen, n).line()
        for n, (who, name, seen) in enumerate(entries, 1)
    ]
    folder.mkdir(exist_ok=True)
    return (folder / NAME).write_bytes(b"".join(lines))


def test_what_was_read_once_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = long_log(tmp_path, (("ada", f"id{n}", None) for n in range(100_000)))
    read, real = [], os.pread

    def counted(handle: int, size: int, at: int) -> bytes:
        found = real(handle, size, at)
        read.append(len(found))
        return found

    monkeypatch.setattr(os, "pread", counted)
    log = DecisionLog(tmp_path)
    log.catch_up()
    assert size <= sum(read) < 1.01 * size
    read.clear()
    for n in range(20):  # also the first one of a server that has just read the log
        log.append([decision(f"new {n}")])
        log.catch_up()
    assert sum(read) < 20_000 and log.index.last_seq == 100_020


@pytest.mark.parametrize(
    "entry",
    [
        lambda n: ("ada", "a", n or None),  # all on one sample
        lambda n: ("ada", "a", None),
        lambda n: (f"person {n}", "a", None),  # all in conflict with all
        lambda n: (f"person {n % 50}", f"id{n % 997}", max(n - 300, 0) or None),
    ],
)
def test_a_long_log_takes_time_and_memory_by_its_length(
    tmp_path: Path, entry: Callable[[int], tuple[str, str, int | None]]
) -> None:
    def seconds(count: int) -> float:
        """Of the processor, the least of three, and no time in which all objects of the test process are searched for garbage."""
        folder, took = tmp_path / str(count), list[float]()
        long_log(folder, map(entry, range(count)))
        for _ in range(3):
            gc.collect()
            gc.disable()
            try:
                began = time.process_time()
                index = DecisionLog(folder).catch_up()
                assert len(index) == count
                for sample in range(len(index.newest)):
                    assert index.now(sample) == index.then(sample, count)
                took.append(time.process_time() - began)
            finally:
                gc.enable()
        return min(took)

    assert seconds(40_000) < 8 * seconds(10_000)  # in proportion: 4 times, quadratic: 16 times
    tracemalloc.start()
    try:
        log = DecisionLog(tmp_path / "40000")
        log.catch_up()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept / 40_000 < 700  # bytes for an entry; as objects they took 1,700


def test_a_line_without_an_end_is_damage_and_does_not_fill_the_memory(tmp_path: Path) -> None:
    DecisionLog(tmp_path).append([decision("1")])
    with (tmp_path / NAME).open("r+b") as file:
        file.truncate(3 * 2**30)  # a hole: it takes no room on the disk
    with pytest.raises(ToolError, match=f"{NAME}, line 2: longer than any decision"):
        DecisionLog(tmp_path).catch_up()


@pytest.mark.parametrize("seq", [2**53 + 1, -(2**64), 10**400])
def test_a_number_that_no_page_could_read_is_damage(tmp_path: Path, seq: int) -> None:
    (tmp_path / NAME).write_bytes(decision("1", seq=7).line().replace(b'"seq": 7', f'"seq": {seq}'.encode()))
    with pytest.raises(ToolError, match=f"{NAME}, line 1"):
        DecisionLog(tmp_path).catch_up()


def test_lines_in_another_form_of_json_say_the_same(tmp_path: Path) -> None:
    """As a program that rewrites the file might put them: the quick way to read a line is not the only one."""
    told = [decision("1", "ü\n", "relabel", "dög", seq=1), decision("2", 'a"b', "drop", seq=2, replaces=1, score=None)]
    again = [json.dumps(dict(reversed(json.loads(one.line()).items())), ensure_ascii=False, indent=None) for one in told]
    (tmp_path / NAME).write_text("".join(f" {line} \n" for line in again), encoding="utf-8")
    log = DecisionLog(tmp_path)
    assert log.all() == told and log.append([decision("3")])[0].seq == 3 and list(log.known("12")) == ["1", "2"]


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
    waits, real = threading.Event(), disk.fcntl.flock

    def told(handle: int, flags: int) -> None:
        waits.set()
        real(handle, flags)

    with (tmp_path / NAME).open("rb") as held, pytest.MonkeyPatch.context() as patch:
        real(held, disk.fcntl.LOCK_EX)
        patch.setattr(disk.fcntl, "flock", told)
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
