"""Where there is no fcntl, as on Windows: everything starts, trains, resumes, corrects and is reviewed, and locks hold."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import labelsieve
from cli.own import QUICK, folder

TESTS, SOURCE = Path(__file__).parent, Path(labelsieve.__file__ or "").parents[1]
# Read by every Python that starts with its folder on the path, decoding processes among them. Where `filelock` is imported first,
# it keeps the system's locks, as it has those of Windows there.
HIDDEN = """
import os, signal, sys, types
if os.environ["LOCKS"] == "filelock":
    import filelock
    whole = types.ModuleType("os")
    vars(whole).update(vars(os))
    for name, module in list(sys.modules.items()):
        if name.startswith("filelock") and hasattr(module, "os"):
            module.os = whole
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_DIRECTORY", "O_PATH", "O_SYNC", "O_DSYNC", "pread", "pwrite",
             "preadv", "getuid", "geteuid", "getgid", "getegid", "sched_getaffinity", "nice", "mkfifo", "chown", "lchown",
             "posix_fallocate"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGUSR1", "SIGALRM"):  # not what the standard library itself uses here: SIGKILL, statvfs
    delattr(signal, name)
os.supports_dir_fd.clear()
os.supports_follow_symlinks.clear()
"""
EVERYTHING = """
import importlib, pkgutil
import labelsieve
names = [one.name for one in pkgutil.walk_packages(labelsieve.__path__, "labelsieve.") if not one.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(len(names), "modules")
import sys
from labelsieve.cli.main import main
for words in WORDS:
    sys.argv = ["labelsieve", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (words, end.code)
"""
HOLDER = """
import sys
from pathlib import Path
from labelsieve.disk import hold, open_to_hold
place = Path(sys.argv[1])
try:
    with hold(open_to_hold(place), place, wait=False):
        print("held", flush=True)
        sys.stdin.read()
except BlockingIOError:
    print("refused", flush=True)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDDEN)
    path = os.pathsep.join(map(str, (tmp_path / "hidden", SOURCE, TESTS)))
    homes = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}
    return os.environ | homes | {"PYTHONPATH": path, "LOCKS": "filelock", "PYTHONUNBUFFERED": "1"}


def python(code: str, environment: dict[str, str], *words: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def done(code: str, environment: dict[str, str]) -> tuple[str, str]:
    running = python(code, environment)
    out, err = running.communicate()
    assert running.returncode == 0, out + err
    return out, err


@pytest.mark.parametrize("locks", ["filelock", "none"])
def test_every_module_starts_and_a_run_goes_its_whole_way(tmp_path: Path, environment: dict[str, str], locks: str) -> None:
    run, out, file = tmp_path / "run", tmp_path / "corrected", tmp_path / "mine.csv"
    file.write_text("id,action\ncat/3.png,drop\n")
    words: list[tuple[object, ...]] = [("train", folder(tmp_path / "animals"), "--out", run, *QUICK, "--time-limit", "0.001s")]
    if locks == "filelock":
        apply = ("apply", run, "--out", out, "--decisions")
        words += [("resume", run), ("decisions", run, "--from", file), apply, ("report", run)]
    code = f"WORDS = {[list(map(str, verb)) for verb in words]!r}\n{EVERYTHING}"
    said, err = done(code, environment | {"LOCKS": locks})
    assert "stopped after epoch 1" in said and int(said.split()[0]) > 200
    without = "this system has no file locks; don't let two commands work on one run at once"
    assert (without in err) == (locks == "none")
    if locks == "filelock":
        assert f"done: {run}" in said and (run / "report.html").exists()
        assert (out / "cat" / "4.png").exists() and not (out / "cat" / "3.png").exists()


def test_a_review_answers_and_takes_decisions(tmp_path: Path, environment: dict[str, str]) -> None:
    from review.made import made_run

    code = "from labelsieve.cli.main import main; main()"
    words = ("review", made_run(tmp_path / "run"), "--no-browser", "--port", "0", "--reviewer", "ada")
    server = python(code, environment, *words)
    try:
        assert server.stdout is not None
        address = next((line.strip() for line in server.stdout if line.startswith("http://")), "")
        assert address, server.stderr and server.stderr.read()
        base, token = address.split("/?token=")
        cookie = f"labelsieve-{base.rpartition(':')[2]}={token}"
        body = b'{"decisions": [{"key": "abcdefgh", "id": "s000", "action": "drop", "who": "ada"}]}'
        asked = urllib.request.Request(f"{base}/api/decisions", body, {"Cookie": cookie, "Content-Type": "application/json"})
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200
        assert b'"action": "drop"' in (tmp_path / "run" / "decisions.jsonl").read_bytes()
    finally:
        server.kill()
        server.communicate()


@pytest.fixture
def held(tmp_path: Path, environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    running = python(HOLDER, environment, tmp_path / "run")
    assert running.stdout is not None and running.stdout.readline() == "held\n"
    yield running
    running.kill()
    running.communicate()


def test_a_lock_beside_the_place_excludes_others_and_falls_with_a_killed_process(
    tmp_path: Path, environment: dict[str, str], held: "subprocess.Popen[str]"
) -> None:
    assert python(HOLDER, environment, tmp_path / "run").communicate("")[0] == "refused\n"
    held.send_signal(signal.SIGKILL)
    held.wait()
    assert python(HOLDER, environment, tmp_path / "run").communicate("")[0] == "held\n"
    other = tmp_path / "other"
    assert python(HOLDER, environment, other).communicate("")[0] == "held\n"
