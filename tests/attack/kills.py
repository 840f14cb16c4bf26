"""Kills a command at its n-th call that changes the disk, looks what is left, and gives the command that a user would give next.

The calls are counted in the command's own process, by functions put in the place of `os.fsync` and its like: the product knows
nothing of it. A write is cut in half first.
"""

import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack import cage, worlds
from attack.case import World, lay_out
from runs.tiny import contents

CALLS = ("fsync", "rename", "replace", "link", "unlink", "remove", "rmdir", "mkdir", "symlink")
LOG = "decisions.jsonl"
SECONDS = 120.0
TIME = re.compile(rb"20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9:.+]*|[0-9.]+ (seconds|s|ms|minutes)\b")


@dataclass(frozen=True)
class Scene:
    """`next` is what a user says after a kill, by what is there; `made` is what comes out, `own` what may change before."""

    name: str
    world: str
    words: tuple[str, ...]
    made: tuple[str, ...]
    own: tuple[str, ...] = ()
    next: Callable[[Path], tuple[str, ...]] | None = None

    def after(self, here: Path) -> tuple[str, ...]:
        return self.next(here) if self.next is not None else self.words


def _resumed(here: Path) -> tuple[str, ...]:
    return ("resume", "run") if (here / "run" / "config.yaml").exists() else TRAIN


def _next_resumed(here: Path) -> tuple[str, ...]:
    return ("resume", "next") if (here / "next" / "config.yaml").exists() else NEXT


TRAIN = ("train", "stripes.npz", "--out", "run", *worlds.TINY, "--set", "training.epochs=3")
NEXT = ("train", "--decisions", "run", "--out", "next")
SCENES = (
    Scene("training", "stripes", TRAIN, ("run",), ("run/",), _resumed),
    Scene("resuming", "half run", ("resume", "run"), ("run",), ("run/",)),
    Scene("the next round", "run", NEXT, ("next",), (), _next_resumed),
    Scene("apply, a folder", "pictures run", ("apply", "run", "--out", "corrected"), ("corrected",)),
    Scene("apply, copies", "pictures run", ("apply", "run", "--out", "corrected", "--copy"), ("corrected",)),
    Scene("apply, a table", "run", ("apply", "run", "--out", "o.csv"), ("o.csv", "changes.csv")),
    Scene("apply, arrays", "run", ("apply", "run", "--out", "o.npz"), ("o.npz", "changes.csv")),
    Scene("predictions", "run", ("predict", "run", "stripes.npz", "--out", "p.csv"), ("p.csv",)),
    Scene("report", "run", ("report", "run"), ("run/report.html",), ("run/report.html",)),
    Scene("export to cleanlab", "run", ("export", "run", "--to", "cleanlab"), ("run/export",)),
    Scene("export to fiftyone", "pictures run", ("export", "run", "--to", "fiftyone", "--out", "e"), ("e",)),
    Scene("export to labelstudio", "pictures run", ("export", "run", "--to", "labelstudio", "--out", "e"), ("e",)),
    Scene("export to huggingface", "run", ("export", "run", "--to", "huggingface", "--out", "e"), ("e",)),
    Scene("export to onnx", "run", ("export", "run", "--to", "onnx", "--out", "e"), ("e",)),
    Scene("embedding", "weights", ("embed", "pics", *worlds.FROZEN, "--weights", "tiny.pth", "--out", "f.npz"), ("f.npz",)),
    Scene("ranking", "probabilities", ("rank", "probs.csv", "--out", "r.csv"), ("r.csv",)),
    Scene("decisions in", "run", ("decisions", "run", "--from", "more.csv"), (f"run/{LOG}",), (f"run/{LOG}",)),
    Scene("decisions to a table", "run", ("decisions", "run", "--to", "csv", "--out", "d.csv"), ("d.csv",)),
    Scene("decisions to tasks", "run", ("decisions", "run", "--to", "labelstudio", "--out", "d.json"), ("d.json",)),
)


@dataclass(frozen=True)
class Killed:
    scene: str
    call: int
    failures: tuple[str, ...]


class Kills:
    """The unbroken outcome of a scene, and kills on the way to it."""

    def __init__(self, scene: Scene, world: World, place: Path) -> None:
        self.scene, self.world, self.place = scene, world, place
        first, second = (self._unbroken(f"unbroken{k}") for k in range(2))
        self.count = min(first[0], second[0])
        # a clock may be in it: what two unbroken ones differ in tells nothing
        self.expected = {name: one for name, one in first[1].items() if second[1].get(name) == one}
        assert self.count and self.expected, scene

    def _room(self, name: str) -> tuple[Path, Path]:
        room = self.place / f"{self.scene.name} {name}".replace(" ", "-").replace(",", "")
        for folder in ("here", "outside", "home", "tmp"):
            (room / folder).mkdir(parents=True)
        lay_out(self.world, (), room / "here", room / "outside")
        return room, room / "here"

    def _unbroken(self, name: str) -> tuple[int, dict[str, Any]]:
        room, here = self._room(name)
        code, err = called(self.scene.words, here, room)
        assert code == 0, (self.scene, err)
        return int((room / "calls").read_text()), outcome(self.scene, here)

    def kill(self, call: int, again: int = 0) -> Killed:
        """At that call; `again`: and at that call of the command that is given next."""
        room, here = self._room(f"{call} {again}")
        before = files(here)
        code, err = called(self.scene.words, here, room, call)
        failures = [] if code == -signal.SIGKILL else [f"it was not killed: {err}"]
        failures += self._lost(before, files(here))
        if again:
            code, err = called(self.scene.after(here), here, room, again)
            failures += self._lost(before, files(here))
        words = self.scene.after(here)
        code, err = called(words, here, room)
        failures += self._lost(before, files(here))
        said = [line for line in err.splitlines() if line.startswith("error: ")]
        if code != 0 and (len(said) != 1 or "Traceback" in err):
            failures.append(f"{' '.join(words[:2])}: exit code {code} and no sentence: {err[-300:]}")
        found = outcome(self.scene, here)
        differing = [name for name, one in self.expected.items() if found.get(name) != one]
        if differing:
            failures.append(f"not what an unbroken one makes: {', '.join(sorted(differing)[:5])}; {err[-300:]}")
        drafts = [path.relative_to(here) for path in here.rglob(".*") if path.name.endswith((".draft", ".part"))]
        failures += [f"left behind: {draft}" for draft in drafts]
        return Killed(self.scene.name, call, tuple(failures))

    def _lost(self, before: dict[str, bytes], after: dict[str, bytes]) -> Iterator[str]:
        """What was there and is not, or is another; a log may grow."""
        for name, content in before.items():
            found = after.get(name)
            is_own = name.startswith(self.scene.own) if self.scene.own else False
            if name.endswith(LOG) and is_own:
                if found is None or not found.startswith(content):
                    yield f"lost from {name}"
            elif found != content and not is_own:
                yield f"lost: {name}"


def files(here: Path) -> dict[str, bytes]:
    return {str(path.relative_to(here)): path.read_bytes() for path in sorted(here.rglob("*")) if path.is_file()}


def outcome(scene: Scene, here: Path) -> dict[str, Any]:
    """What a command made, but for what tells how it came to be."""
    found: dict[str, Any] = {}
    for made in scene.made:
        path = here / made
        if (path / "model.safetensors").exists() and (path / "checkpoint").is_dir() and any((path / "checkpoint").iterdir()):
            found |= contents(path)
        elif path.is_dir():
            found |= files(path)
        elif path.is_file():
            found[made] = _without_time(path.read_bytes()) if made.endswith(LOG) else path.read_bytes()
    place = os.fsencode(here)
    return {name: TIME.sub(b"", one.replace(place, b"")) if isinstance(one, bytes) else one for name, one in found.items()}


def _without_time(log: bytes) -> list[tuple[Any, ...]]:
    """What was decided; keys and times are new with each call."""
    import json

    rows = [json.loads(line) for line in log.splitlines()]
    return [(row["id"], row["action"], row.get("label"), row["who"], row["seq"]) for row in rows]


def called(words: tuple[str, ...], here: Path, room: Path, kill_at: int = 0) -> tuple[int, str]:
    """The command in a process of its own: its exit code and what it said of errors. It writes how many calls it made."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            signal.alarm(int(SECONDS))
            count = _counted(kill_at)
            code = cage._in_place(words, here, room, cage.Watch())
            (room / "calls").write_text(str(count[0]))
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, (room / "err").read_text(errors="replace")


def _counted(kill_at: int) -> list[int]:
    """From now on each call that changes the disk is counted; the one of that number is not made, for the process is killed."""
    count, own = [0], os.getpid()

    def dies() -> bool:
        count[0] += os.getpid() == own
        return count[0] == kill_at

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            if dies():
                os.kill(own, signal.SIGKILL)
            return real(*words, **more)

        return call

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))
    write = os.write

    def torn(handle: int, content: Any) -> int:
        if handle > 2 and dies():
            write(handle, bytes(content)[: len(content) // 2])
            os.kill(own, signal.SIGKILL)
        return write(handle, content)

    os.write = torn
    return count


def spread(count: int, wanted: int) -> list[int]:
    """So many different calls of `count`, from the first to the last."""
    if wanted >= count:
        return list(range(1, count + 1))
    return sorted({1 + round(k * (count - 1) / max(1, wanted - 1)) for k in range(wanted)})


def stripes() -> World:
    return {"stripes.npz": worlds.made(("half run",))["half run"]["stripes.npz"]}


def killed_all(place: Path, wanted: int, scenes: tuple[Scene, ...] = SCENES) -> list[Killed]:
    """About `wanted` kills, as many in each scene as its calls allow; a quarter of those of trainings come twice."""
    names = tuple({scene.world for scene in scenes} - {"stripes"})
    made = dict(worlds.made(names)) | {"stripes": stripes()}
    told = []
    ready = [Kills(scene, made[scene.world], place) for scene in scenes]
    share = _shares([one.count for one in ready], wanted)
    for one, many in zip(ready, share):
        for number, call in enumerate(spread(one.count, many)):
            again = 1 + call % 7 if one.scene.next is not None and number % 4 == 3 else 0
            told.append(one.kill(call, again))
    return told


def _shares(counts: list[int], wanted: int) -> list[int]:
    """Each gets the same, and what it cannot use goes to the others."""
    found = [0] * len(counts)
    while sum(found) < min(wanted, sum(counts)):
        for k, count in enumerate(counts):
            if found[k] < count and sum(found) < wanted:
                found[k] += 1
    return found
