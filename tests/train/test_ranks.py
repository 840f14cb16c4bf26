"""Runs by several processes, as torchrun starts them: one list, one voice, stopped and resumed with any number of them."""

import csv
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from pathlib import Path

import pytest
import torch
from torch.distributed.elastic.multiprocessing.api import PContext
from torch.distributed.launcher.api import LaunchConfig

from labelsieve.cli.train import PATIENT, wait_for_the_epoch
from labelsieve.engine.dist import Ranks
from labelsieve.errors import ToolError, UsageError
from labelsieve.train.loop import PASSED_ON, Stopper
from labelsieve.train.ranks import STORES, Meeting

SOURCE = Path(__file__).parents[2] / "src"
KNOWN = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
DIGITS = ["train", "digits", "--noise", "sym:0.3", "--limit", "300", "--device", "cpu", "--set", "training.warmup=2"]
DIGITS += ["--set", "training.batch=32", "--set", "output.checkpoint_seconds=0"]
LATEST = 300.0  # seconds until a run that hangs is given up
PROMISED = 30.0  # seconds in which the others stop (docs/scale.md)


def labelsieve(*words: str, by: Sequence[str] = ()) -> list[str]:
    return [sys.executable, *by, "-m", "labelsieve", *words]


def torchrun(count: int) -> list[str]:
    return ["-m", "torch.distributed.run", "--nproc-per-node", str(count)]


def started(command: Sequence[str], folder: Path, **known: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, cwd=folder, env=KNOWN | known, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


def ranks(commands: Sequence[Sequence[str]], folders: Sequence[Path], **known: str) -> list[subprocess.Popen[str]]:
    """Processes that meet without torchrun: rank 0 keeps the table."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(len(commands))} | known
    return [
        started(command, folder, RANK=str(rank), LOCAL_RANK=str(rank), **shared)
        for rank, (command, folder) in enumerate(zip(commands, folders))
    ]


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=LATEST)
    finally:
        process.kill()
    return process.returncode, out, err


def done(*words: str, folder: Path, by: Sequence[str] = ()) -> str:
    code, out, err = ended(started(labelsieve(*words, by=by), folder))
    assert code == 0, err
    return out


def until(process: subprocess.Popen[str], there: Callable[[], bool]) -> None:
    """Wait for what a run leaves in its folder."""
    last = time.monotonic() + LATEST
    while not there():
        assert process.poll() is None and time.monotonic() < last, process.communicate()
        time.sleep(0.05)


def epochs_in(run: Path) -> int:
    return max((int(path.name.split("-")[1]) for path in run.glob("checkpoint/epoch-*")), default=0)


def processes_of(parent: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True).stdout
    return [int(line) for line in found.split()]


def issues(run: Path) -> list[dict[str, str]]:
    with (run / "issues.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def check_same_list(one: Path, other: Path) -> None:
    """The same labels are issues, and every score is the same within rounding."""
    mine, theirs = ({row["id"]: row for row in issues(run)} for run in (one, other))
    assert mine.keys() == theirs.keys()
    for name, row in mine.items():
        assert row["is_label_issue"] == theirs[name]["is_label_issue"], name
        assert row["suggested_label"] == theirs[name]["suggested_label"], name
        assert abs(float(row["label_score"]) - float(theirs[name]["label_score"])) < 1e-3, name


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    done(*DIGITS, "--epochs", "5", "--out", "run", folder=folder)
    return folder / "run"


def test_two_end_with_the_list_that_one_has_stopped_by_ctrl_c_and_resumed(alone: Path, tmp_path: Path) -> None:
    """--gpus starts them; the first Ctrl-C is heard by torchrun, which tells the ranks; one process goes on."""
    both = started(labelsieve(*DIGITS, "--epochs", "5", "--out", "run", "--gpus", "2"), tmp_path)
    until(both, lambda: epochs_in(tmp_path / "run") >= 1)
    both.send_signal(signal.SIGINT)
    code, out, err = ended(both)
    assert code == 130 and "resume with:" in out and not err, err
    assert out.count("stopped after epoch") == 1 and 1 <= epochs_in(tmp_path / "run") < 5
    done("resume", "run", folder=tmp_path)
    check_same_list(alone, tmp_path / "run")


@pytest.mark.slow
def test_a_run_goes_on_with_any_number_of_processes(alone: Path, tmp_path: Path) -> None:
    done(*DIGITS, "--epochs", "5", "--time-limit", "0.001s", "--out", "run", folder=tmp_path, by=torchrun(2))
    assert epochs_in(tmp_path / "run") == 1
    done("resume", "run", "--device", "cpu", "--gpus", "4", "--time-limit", "0.001s", folder=tmp_path)
    assert epochs_in(tmp_path / "run") == 2
    done("resume", "run", "--device", "cpu", folder=tmp_path, by=torchrun(2))
    check_same_list(alone, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("heard_by", [[0], [1], [0, 1, -1]])
def test_all_stop_where_one_is_asked_to(alone: Path, heard_by: list[int], tmp_path: Path) -> None:
    """A scheduler may ask one process, or all of them and torchrun (-1), which passes it on: that is one signal."""
    both = started(labelsieve(*DIGITS, "--epochs", "5", "--out", "run", "--gpus", "2"), tmp_path)
    until(both, lambda: epochs_in(tmp_path / "run") >= 1)
    family = [*sorted(processes_of(both.pid)), both.pid]
    for which in heard_by:
        os.kill(family[which], signal.SIGTERM)
    ends, out, err = ended(both)
    assert ends == 128 + signal.SIGTERM and not err, err
    assert out.count("stopped after epoch") == 1 and "resume with:" in out
    assert 1 <= epochs_in(tmp_path / "run") < 5
    done("resume", "run", folder=tmp_path)
    check_same_list(alone, tmp_path / "run")


class Other(Ranks):
    """This process and another one, which wants to stop for the reason `wants`."""

    def __init__(self, wants: int) -> None:
        super().__init__(0, 2)
        self.wants = wants

    def most(self, number: int) -> int:
        return max(number, self.wants)


@pytest.mark.parametrize(("wants", "stops", "code"), [(0, False, 0), (1, True, 0), (128 + signal.SIGTERM, True, 143)])
def test_a_rank_stops_as_another_does_and_ends_with_its_code(wants: int, stops: bool, code: int) -> None:
    stopper = Stopper(ranks=Other(wants))
    assert stopper() is stops and stopper.exit_code == code


def test_a_signal_that_torchrun_passes_on_is_not_a_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stopper, said, now = Stopper(ranks=Other(0)), list[str](), [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with stopper.listening(said.append):
            signal.raise_signal(signal.SIGINT)
            now[0] += PASSED_ON - 1
            signal.raise_signal(signal.SIGINT)
            assert stopper.exit_code == 130 and len(said) == 1
            now[0] += 2
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_gpus_gives_an_epoch_its_time_also_where_torchrun_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch 2.11 has 30 seconds as a default of the function that ends its processes, and nothing that changes it."""
    monkeypatch.setattr(PContext.close, "__defaults__", PContext.close.__defaults__)
    monkeypatch.delenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", raising=False)
    wait_for_the_epoch()
    default = {name: given.default for name, given in signature(PContext.close).parameters.items()}
    assert default["timeout"] == PATIENT and default["death_sig"] is None
    assert LaunchConfig(1, 1, 1).shutdown_timeout == PATIENT


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_one_that_is_killed_is_named_and_the_rest_stop(alone: Path, killed: int, tmp_path: Path) -> None:
    both = started(labelsieve(*DIGITS, "--epochs", "400", "--out", "run", by=torchrun(2)), tmp_path)
    until(both, lambda: epochs_in(tmp_path / "run") >= 3)
    victim = sorted(processes_of(both.pid))[killed]
    os.kill(victim, signal.SIGKILL)
    at = time.monotonic()
    code, _, err = ended(both)
    assert code == 1 and time.monotonic() - at < PROMISED
    said = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1 and f"rank {killed} of 2" in said[0] and f"process {victim}" in said[0] and "resume" in said[0]
    done("resume", "run", "--time-limit", "0.001s", folder=tmp_path)


def said_by(processes: Sequence[subprocess.Popen[str]]) -> str:
    """The one sentence that all of them say together."""
    found = [ended(process) for process in processes]
    assert all(code in (1, 2) for code, _, _ in found), found
    said = [line for _, _, err in found for line in err.splitlines()]
    assert len(said) == 1, said
    return said[0]


def test_ranks_that_were_told_otherwise_are_named_before_training(tmp_path: Path) -> None:
    commands = [labelsieve(*DIGITS, "--seed", seed, "--out", "run") for seed in ("1", "2")]
    said = said_by(ranks(commands, [tmp_path] * 2))
    assert "rank 1 of 2" in said and "seed: 2 here, seed: 1 there" in said and not (tmp_path / "run").exists()


def test_a_rank_that_does_not_see_the_run_folder_is_named(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    said = said_by(ranks([labelsieve(*DIGITS, "--epochs", "5", "--out", "run")] * 2, [here, there]))
    assert "rank 1 of 2" in said and "a disk that all machines share" in said


@pytest.mark.slow
def test_a_signal_before_training_ends_all_in_one_sentence(tmp_path: Path) -> None:
    """Only one process hears it, while both are still opening what they were given."""
    slow = tmp_path / "slow.py"
    slow.write_text("import os, pathlib, time\npathlib.Path('there' + os.environ['RANK']).touch()\ntime.sleep(300)\n")
    both = ranks([labelsieve(*DIGITS, "--method-file", str(slow), "--out", "run")] * 2, [tmp_path] * 2)
    for rank, process in enumerate(both):
        until(process, (tmp_path / f"there{rank}").exists)
    both[1].send_signal(signal.SIGTERM)
    found = [ended(process) for process in both]
    assert [code for code, _, _ in found] == [128 + signal.SIGTERM] * 2
    assert [err for _, _, err in found] == ["error: ended by a signal; nothing is lost, give the command again\n", ""]


def test_more_processes_than_a_batch_has_rows(tmp_path: Path) -> None:
    few = labelsieve(*DIGITS, "--set", "training.warmup_batch=3", "--batchnorm", "rank", "--out", "run")
    said = said_by(ranks([few] * 2, [tmp_path] * 2))
    assert said.startswith("error: ") and "2 processes share each step, and training.warmup_batch=3" in said


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> Meeting:
    """Rank 1 of 2, on a machine with two GPUs, that has found the table and nothing else yet."""
    found = Meeting.__new__(Meeting)
    found.rank, found.count, found.local, found.table = 1, 2, 1, STORES.HashStore()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    return found


def test_another_version_is_named_by_its_line(second: Meeting) -> None:
    second.table.set("compared/versions", "labelsieve 1.0\ntorch 2.11")
    with pytest.raises(ToolError, match=r"its versions differ from rank 0's: torch 2.12 here, torch 2.11 there; install one"):
        second.compare("versions", "labelsieve 1.0\ntorch 2.12", "install one version on all machines")
    assert not second.table.check(["agreed on versions/1"])


def test_a_torch_without_nccl_and_gpus_that_are_too_few(second: Meeting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    with pytest.raises(ToolError, match=r"has no NCCL.*install a CUDA build of torch.*--device cpu"):
        second._own_gpu("cuda")
    with pytest.raises(UsageError, match=r"--device cuda:1 is one GPU, and there are 2 processes"):
        second._own_gpu("cuda:1")
    second.local = 2
    with pytest.raises(UsageError, match=r"more processes than GPUs here \(2\); use --nproc-per-node 2"):
        second._own_gpu("cuda")


def test_gpus_that_are_not_there(tmp_path: Path) -> None:
    code, _, err = ended(started(labelsieve(*DIGITS[:6], "--gpus", "2", "--out", "run"), tmp_path, CUDA_VISIBLE_DEVICES=""))
    assert code == 2 and err.count("\n") == 1 and "sees no GPU here" in err


@pytest.fixture
def two_hosts() -> Iterator[list[tuple[str, str]]]:
    """Two machines with a cable between them, as network namespaces: each one's name, and that of its card."""
    names = [f"sieve{os.getpid()}{which}" for which in "ab"]
    cards = [f"card{os.getpid() % 100_000}{which}" for which in "ab"]
    plan = [f"netns add {name}" for name in names]
    plan += [f"link add {cards[0]} netns {names[0]} type veth peer name {cards[1]} netns {names[1]}"]
    for i, (name, card) in enumerate(zip(names, cards)):
        plan += [
            f"-n {name} addr add 10.213.0.{i + 1}/24 dev {card}",
            f"-n {name} link set lo up",
            f"-n {name} link set {card} up",
        ]
    if os.geteuid() or not shutil.which("ip") or subprocess.run(["ip", *plan[0].split()], capture_output=True).returncode:
        pytest.skip("network namespaces need Linux, root and ip")
    try:
        for words in plan[1:]:
            subprocess.run(["ip", *words.split()], check=True)
        yield list(zip(names, cards))
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.mark.slow
def test_two_hosts_train_one_run_over_the_network(alone: Path, two_hosts: list[tuple[str, str]], tmp_path: Path) -> None:
    def on(host: int) -> subprocess.Popen[str]:
        name, card = two_hosts[host]
        meeting = ["--nnodes", "2", "--node-rank", str(host), "--master-addr", "10.213.0.1", "--master-port", "29555"]
        command = labelsieve(*DIGITS, "--epochs", "5", "--out", "run", by=[*torchrun(1), *meeting])
        return started(["ip", "netns", "exec", name, *command], tmp_path, GLOO_SOCKET_IFNAME=card)

    hosts = [on(0), on(1)]
    found = [ended(host) for host in hosts]
    assert [code for code, _, _ in found] == [0, 0], found
    assert "done: run" in found[0][1] and not found[1][1]
    check_same_list(alone, tmp_path / "run")
