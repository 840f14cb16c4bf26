"""The processes that torchrun started for one run: how they meet, compare what they were told, and notice that one is gone.

Rank 0 opens the data, writes the folder and speaks; the others read what it opened. Whatever ends one of them ends all.
"""

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from labelsieve.config.schema import Config
from labelsieve.engine.device import choose_device
from labelsieve.engine.dist import APART, Ranks
from labelsieve.errors import ToolError, UsageError
from labelsieve.runs.rows import Watch
from labelsieve.train.run import Run
from labelsieve.train.start import follow
from labelsieve.version import __version__

STORES: Any = dist  # torch's types leave its stores out
TICK = 1.0  # seconds between two signs of life
SILENT = 15  # ticks without one, after which a rank is taken for dead
PATIENT = timedelta(days=30)  # others may be decoding pictures
HOLDS = timedelta(seconds=10)  # for a word of those who live
GONE = "the meeting place is gone, and with it probably rank 0's machine"


def torchrun_started() -> bool:
    """Is this one of several processes that torchrun started?"""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def machine() -> str:
    """By what two processes know that they see each other's numbers; "" where there is nothing to tell by."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class Meeting:
    """Where the ranks of a run find each other: a small table that torchrun keeps."""

    def __init__(self, device: str, say: Callable[[str], None]) -> None:
        """`say` prints an error; only one rank does."""
        self.rank, self.count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.local, self.host = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("GROUP_RANK", "0"))
        self.say, self.over, self.told = say, Event(), Event()
        self.keeps_table = self.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"  # else torchrun does
        self.table = self._found()
        self.watched = self._found()  # one that waits holds its connection, so the watch has one of its own
        self.table.set(self._at("who"), json.dumps([socket.gethostname(), os.getpid(), machine()]))
        self._beat(0)
        self.remedy = "nothing is lost, give the command again"
        self.asked = 0  # ticks since a SIGTERM that nobody else heard; 0: none came
        signal.signal(signal.SIGTERM, self._heard)
        self.watch = Thread(target=self._watching, daemon=True)
        self.watch.start()
        with self.guarded():
            self._join(device)

    def _found(self) -> Any:
        address, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500"))
        first = self.keeps_table and not hasattr(self, "table")
        store = STORES.TCPStore(address, port, is_master=first, wait_for_workers=False, timeout=PATIENT)
        again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return STORES.PrefixStore(f"labelsieve/{os.environ.get('TORCHELASTIC_RUN_ID', '')}/{again}", store)

    def _at(self, name: str, rank: int | None = None) -> str:
        return f"{name}/{self.rank if rank is None else rank}"

    def _join(self, device: str) -> None:
        """Every process with a GPU of its own, or all on CPUs."""
        backend = "gloo"
        if choose_device(device).type == "cuda":
            self._own_gpu(device)
            backend = "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, store=self.table, rank=self.rank, world_size=self.count, timeout=PATIENT)
        self.compare("versions", f"labelsieve {__version__}\ntorch {torch.__version__}", "install one version on all machines")

    def _own_gpu(self, device: str) -> None:
        there = torch.cuda.device_count()
        if ":" in device:
            raise UsageError(
                f"--device {device} is one GPU, and there are {self.count} processes, each with its own; leave it out"
            )
        if self.local >= there:
            raise UsageError(
                f"there are more processes than GPUs here ({there}); use --nproc-per-node {there}, or --gpus {there}"
            )
        if not dist.is_nccl_available():
            raise ToolError(
                f"torch {torch.__version__} has no NCCL, by which GPUs add up their gradients; install a CUDA build of torch, "
                f"or train on CPUs with --device cpu"
            )
        torch.cuda.set_device(self.local)

    def compare(self, what: str, mine: str, remedy: str) -> None:
        """A `ToolError` on each rank that has something else than rank 0; of many lines the first that differs is told."""
        if self.rank == 0:
            self.table.set(f"compared/{what}", mine)
        theirs = self.table.get(f"compared/{what}").decode()
        for here, there in zip_longest(mine.splitlines(), theirs.splitlines(), fillvalue="nothing"):
            if here != there:
                raise ToolError(f"its {what} differ from rank 0's: {here.strip()} here, {there.strip()} there; {remedy}")
        self.table.set(self._at(f"agreed on {what}"), "")  # nobody goes on before all have looked
        self.table.wait([self._at(f"agreed on {what}", rank) for rank in range(self.count)], PATIENT)

    def in_turn(self, first: Callable[[], Any], then: Callable[[], Any]) -> Any:
        """What `first` gives on rank 0; afterwards what `then` gives on the others, one of each host before its others, so
        that pictures are decoded once."""
        if self.rank == 0:
            made = first()
        else:
            self.table.wait([self._at("opened", 0 if self.local == 0 else self.host)], PATIENT)
            made = then()
        if self.local == 0:
            self.table.set(self._at("opened", self.host), "")
        self.remedy = "`labelsieve resume` goes on from the last checkpoint"
        return made

    def _heard(self, number: int, frame: FrameType | None) -> None:
        """torchrun ends those who live as soon as one has ended; the watch says first which that was."""
        self.asked = self.asked or 1

    def _beat(self, tick: int) -> None:
        self.watched.set(self._at("alive"), str(tick))

    def _watching(self) -> None:
        """Tell the others every second that this process lives, and look whether they do, and whether one failed."""
        every = [self._at("alive", rank) for rank in range(self.count)]
        latest, missed, parent = [b""] * self.count, [0] * self.count, os.getppid()
        tick = 0
        while not self.over.wait(TICK):
            tick += 1
            try:
                self._beat(tick)
                if self.watched.check(["failed"]):
                    self._end(**json.loads(self.watched.get("failed")))
                now = self.watched.multi_get(every) if self.watched.check(every) else latest  # or some are on their way here
                missed = [count + 1 if one == before else 0 for one, before, count in zip(now, latest, missed)]
                latest = now
                dead = [rank for rank in range(self.count) if latest[rank] != b"done" and self._is_dead(rank, missed[rank])]
            except RuntimeError:
                if not self.over.wait(2 * TICK):  # others may have ended it in peace
                    self._end(-1, GONE, 1)
                return
            if dead:
                self._end(
                    dead[0],
                    f"it was killed, or its machine is lost; {self.remedy}",
                    1,
                    dead,
                )
            if self.asked > 3:
                self._tell(-1, f"ended by a signal; {self.remedy}", 128 + signal.SIGTERM)
            if os.getppid() != parent:
                self._end(-1, f"stopped at once; {self.remedy}", 130)
            self.asked += bool(self.asked)

    def _is_dead(self, rank: int, missed: int) -> bool:
        """No sign of life for long, or none of its process on this machine."""
        if missed < 1 or rank == self.rank:
            return False
        if missed >= SILENT:
            return True
        _, process, where = json.loads(self.watched.get(self._at("who", rank)))
        return bool(where) and where == machine() and not is_running(process)

    def _end(self, rank: int, words: str, code: int, dead: Sequence[int] = ()) -> None:
        """End this process, which may be waiting for others in a way that nothing else ends; the first that lives says why."""
        if self.told.is_set():  # it is about to say so itself
            return
        first = next(one for one in range(self.count) if one not in dead)
        if self.rank == first:
            self.say(f"{self._named(rank)}{words}")
            with suppress(RuntimeError):
                self.watched.set("said", "")
            self._leave_last()
        else:
            with suppress(RuntimeError):
                self.watched.wait(["said"], HOLDS)
        os._exit(code)

    def _named(self, rank: int) -> str:
        if rank < 0:
            return ""
        with suppress(RuntimeError):
            host, process, _ = json.loads(self.watched.get(self._at("who", rank)))
            return f"rank {rank} of {self.count} ({host}, process {process}): "
        return f"rank {rank}: "

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """What ends this process inside ends the others."""
        try:
            yield
        except ToolError as error:
            self._failed(str(error), error.exit_code)
            raise
        except RuntimeError as error:
            if hasattr(error, "exit_code"):  # how the command line says that it ends
                raise
            # Most likely another one is gone; if so, the watch finds out which.
            self.over.wait((SILENT + 5) * TICK)
            self._failed(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}", 1)
            raise
        except KeyboardInterrupt:
            self._failed("interrupted", 130)
            raise
        except Exception as error:
            self._failed(f"{type(error).__name__}: {error}", 1)
            raise

    def _tell(self, rank: int, words: str, code: int) -> None:
        """Why all end; the first that tells is heard."""
        self.watched.compare_set("failed", "", json.dumps({"rank": rank, "words": words, "code": code}))

    def _failed(self, words: str, code: int) -> None:
        """Let the others know. Rank 0 goes on to say it itself; another one waits until that was done, and ends."""
        if self.rank == 0:
            self.told.set()
        with suppress(RuntimeError):
            self._tell(self.rank, words, code)
            if self.rank == 0:
                self.table.set("said", "")
                self._leave_last()
                return
            self.table.wait(["said"], 2 * HOLDS)
        if self.rank:
            self.over.wait(TICK)  # torchrun ends those who live once one has ended
            os._exit(code)

    def _leave_last(self) -> None:
        """Without the table the others could not look at it any more."""
        if self.keeps_table:
            self.over.wait(2 * TICK)

    def part(self) -> None:
        """Wait until all are done, for torchrun ends those who live as soon as one has ended otherwise; then nobody is missed."""
        with suppress(RuntimeError):
            self.table.set(self._at("done"), "")
            self.table.wait([self._at("done", rank) for rank in range(self.count)], PATIENT)
        self.over.set()
        self.watch.join()
        with suppress(RuntimeError):
            self.watched.set(self._at("alive"), "done")


@contextmanager
def meeting(device: str | None, say: Callable[[str], None]) -> Iterator[Meeting | None]:
    """The meeting of this process with others, if torchrun started several; what ends one inside ends all."""
    if not torchrun_started():
        yield None
        return
    found = Meeting(device or "auto", say)
    with found.guarded():
        try:
            yield found
        except RuntimeError as error:
            if hasattr(error, "exit_code"):
                found.part()
            raise
    found.part()


def run_together(
    met: Meeting | None,
    opened: Callable[[], Run],
    path: Path,
    source: str | None = None,
    device: str | None = None,
    watch: Watch | None = None,
) -> Run:
    """The run that `opened` gives, where several processes train it on each of them: rank 0 opens it, and the others follow."""
    if met is None:
        return opened()
    run: Run = met.in_turn(opened, lambda: follow(path, source, device, watch))
    check_split(run.config, met.count)
    run.parts.engine.join(Ranks(met.rank, met.count, run.config.engine.batchnorm), run.parts.method)
    return run


def check_split(config: Config, count: int) -> None:
    """A `UsageError` where a step's batch has not enough for so many processes."""
    least = 2 if config.engine.batchnorm == APART else 1
    for key in ("batch", "warmup_batch"):
        batch = getattr(config.training, key)
        if batch < least * count:
            raise UsageError(
                f"{count} processes share each step, and training.{key}={batch} has fewer than {least} for each; "
                f"use fewer processes, or a larger batch"
            )
    if config.training.norm_devices > 1:
        raise UsageError(
            f"training.norm_devices={config.training.norm_devices} makes one process normalise as several would, and there are "
            f"{count}; leave it at 1"
        )
