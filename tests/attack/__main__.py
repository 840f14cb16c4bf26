"""`make attack`: tries thousands of damaged inputs on every command, keeps what fails, and says how it went.

`python -m attack --cases 20000 --workers 2`; a failure is written to tests/attack/found and is a test from then on.
"""

import argparse
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attack.case import Case, World

if TYPE_CHECKING:
    from attack.cage import Cage
    from attack.requests import Told as Requested
    from attack.reviews import Told as Reviewed

FOUND = Path(__file__).parent / "found"
Told = Callable[[int], Case]  # the case of a number
AT_ONCE = 200  # cases in one process, at most
SELDOM = ("__main__", "benchmark", "reproduce", "api", "model_files")  # and large: a fork copies what is imported


def warmed() -> None:
    """Import all that the commands import, so that a process that is forked from here need not."""
    import importlib
    import pkgutil

    import torch

    import labelsieve

    torch.set_num_threads(1)
    for module in pkgutil.walk_packages(labelsieve.__path__, "labelsieve."):
        if not any(part in module.name.split(".") for part in SELDOM):
            importlib.import_module(module.name)
    for name in (
        "pyarrow.parquet",
        "pyarrow.ipc",
        "pyarrow.csv",
        "pandas",
        "yaml",
        "rich.table",
        "sklearn.datasets",
        "uvicorn",
        "fastapi",
    ):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def tried_all(worlds: Mapping[str, World], told: Told, numbers: range, place: Path, until: float) -> None:
    """Each case in a room of its own; a line per case goes to `place`. None is begun after `until`, by the steady clock."""
    from attack.cage import Cage

    cage = Cage()
    with (place / f"lines-{numbers.start}").open("w") as lines:
        for number in numbers:
            if time.monotonic() > until:
                break
            case = told(number)
            if number % AT_ONCE == 0:
                cage.end()
            lines.write(json.dumps({"number": number} | judged(case, worlds[case.world], place, cage)) + "\n")
            lines.flush()
    cage.end()


def judged(case: Case, world: World, place: Path, cage: "Cage") -> dict[str, Any]:
    """How a case ended. What failed is tried once more by itself: others came before it, and a busy machine is slow."""
    from attack.verdict import tried

    for _ in range(2):
        room = Path(tempfile.mkdtemp(prefix="case-", dir=place))
        try:
            failures, ended = tried(case, world, room, cage)
        finally:
            shutil.rmtree(room, ignore_errors=True)
        if not failures:
            break
        cage.end()
    line = {"code": ended.code, "verb": case.words[0], "seconds": ended.seconds, "memory": ended.memory}
    return line | ({"failures": failures, "case": case.as_text(), "err": ended.err[-3000:]} if failures else {})


def attack(
    worlds: Mapping[str, World], told: Told, numbers: range, workers: int, place: Path, seconds: float
) -> list[dict[str, Any]]:
    children, until = [], time.monotonic() + seconds
    for worker in range(workers):
        child = os.fork()
        if child == 0:
            try:
                tried_all(worlds, told, numbers[worker::workers], place, until)
                os._exit(0)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    found = [json.loads(line) for path in sorted(place.glob("lines-*")) for line in path.read_text().splitlines()]
    assert not any(codes), "a worker of the attack itself failed"
    return found


def main() -> int:
    """Inputs, kills, reviews, requests. 1 where anything failed."""
    from attack import worlds

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="damaged inputs to try")
    parser.add_argument("--start", type=int, default=0, help="the number of the first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worlds", default=",".join(worlds.WORLDS))
    parser.add_argument("--again", type=Path, help="try the cases kept there, and no new ones")
    parser.add_argument("--kills", type=int, default=200, help="of commands, at a call that changes the disk")
    parser.add_argument("--scenes", default="", help="only those whose names begin so: apply;report")
    parser.add_argument("--reviews", type=int, default=22, help="kills of a review's server while people decide")
    parser.add_argument("--requests", type=int, default=2000, help="damaged requests to a review's server")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=240, help="no input is begun after so many")
    parser.add_argument("--keep", type=Path, default=FOUND, help="where inputs that fail go, a file each")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attack-") as place:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = f"{place}/cache"
        warmed()
        failed = False
        if words.cases or words.again:
            failed |= inputs(words, Path(place))
        if words.kills:
            failed |= kills(words, Path(place))
        if words.reviews:
            failed |= reviews(words, Path(place))
        if words.requests:
            failed |= requests(words, Path(place))
    return int(failed)


def kills(words: argparse.Namespace, place: Path) -> bool:
    from attack.kills import SCENES, killed_all

    began = time.monotonic()
    told = killed_all(place, words.kills, tuple(one for one in SCENES if one.name.startswith(tuple(words.scenes.split(";")))))
    failed = [one for one in told if one.failures]
    for one in failed:
        print(f"{one.scene}, call {one.call}: {'; '.join(one.failures)}", file=sys.stderr)
    names = Counter(one.scene for one in told)
    print(
        f"{len(told)} kills in {time.monotonic() - began:.0f} s ({', '.join(f'{name} {count}' for name, count in names.items())})"
    )
    print(f"failed: {len(failed)}")
    return bool(failed)


def reviews(words: argparse.Namespace, place: Path) -> bool:
    from attack.reviews import reviewed

    return said(reviewed(place, words.reviews, seed=words.seed))


def requests(words: argparse.Namespace, place: Path) -> bool:
    from attack.requests import requested

    return said(requested(place, words.requests, words.seed))


def said(told: "Reviewed | Requested") -> bool:
    print(told.words())
    for one in told.failures:
        print(one, file=sys.stderr)
    return bool(told.failures)


def inputs(words: argparse.Namespace, place: Path) -> bool:
    from attack import worlds
    from attack.aims import numbered

    again = [Case.of_text(path.read_text()) for path in sorted(words.again.glob("*.json"))] if words.again else None
    names = {case.world for case in again} if again is not None else words.worlds.split(",")
    made = worlds.made(tuple(names))
    began = time.monotonic()
    told = (lambda number: again[number]) if again is not None else (lambda number: numbered(made, words.seed, number))
    first, count = (words.start, words.cases) if again is None else (0, len(again))
    lines = attack(made, told, range(first, first + count), words.workers, place, 60 * words.minutes)
    seconds = time.monotonic() - began
    failed = [line for line in lines if "failures" in line]
    kinds = Counter(one.partition(":")[0] for line in failed for one in line["failures"])
    keep(failed, words.keep)
    codes = Counter(line["code"] for line in lines)
    slowest = max((line["seconds"] for line in lines), default=0.0)
    largest = max((line["memory"] for line in lines), default=0) / 2**30
    print(
        f"{len(lines):,} inputs in {seconds:.0f} s; exit codes {dict(sorted(codes.items()))}; slowest {slowest:.1f} s; "
        f"{largest:.2f} GiB at most"
    )
    print(f"failed: {len(failed):,} ({', '.join(f'{name} {count}' for name, count in kinds.most_common()) or 'nothing'})")
    return bool(failed)


def keep(failed: list[dict[str, Any]], where: Path) -> None:
    """One file for each different failure."""
    where.mkdir(exist_ok=True)
    seen: dict[str, dict[str, Any]] = {}
    for line in failed:
        for one in line["failures"]:
            seen.setdefault(one if one.startswith("traceback") else f"{one} in {line['verb']}", line)
    counts = Counter(
        one if one.startswith("traceback") else f"{one} in {line['verb']}" for line in failed for one in line["failures"]
    )
    for what, line in seen.items():
        case = Case.of_text(line["case"])
        name = f"{line['verb']}-{line['number']:06d}"
        text = Case(
            **{**{f: getattr(case, f) for f in ("world", "words", "changes", "refused", "note")}, "failed": what}
        ).as_text()
        (where / f"{name}.json").write_text(text)
        print(f"{counts[what]:5d} x {what[:230]}   [{name}: {case.note[:150]}]", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
