"""Judges how a case ended: an empty list of failures is well."""

# ruff: noqa: PTH115, PTH118
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attack import values
from attack.cage import Cage, Ended
from attack.case import Case, World, lay_out

CODES = {"predict": (0, 1, 2, 3)}  # and 0, 1 and 2 for all others
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")
NO_FIGURE = re.compile(r"\b(?:nan|inf)\b *%")
STARTED = re.compile(r"^http://127\.0\.0\.1:\d+/", re.M)
LONGEST = 4000  # characters of an error
OWN = {  # by the command, what it may change and make
    "resume": ("run/", "next/"),
    "report": ("run/report.html", "next/report.html", "run/.report.html.draft", "next/.report.html.draft"),
    "decisions": ("run/decisions.jsonl", "next/decisions.jsonl"),
}
GROWS = "decisions.jsonl"  # whatever happens, what stands in it stays


@dataclass(frozen=True)
class Seen:
    """A path as it lies on the disk."""

    kind: int
    inode: int
    size: int
    stamp: int
    to: str


def tried(case: Case, world: World, room: Path, cage: Cage) -> tuple[list[str], Ended]:
    """Lay the world out in `room`, run the command, look at what became of it."""
    here, outside = room / "here", room / "outside"
    for folder in (here, outside / "folder", room / "home", room / "tmp"):
        folder.mkdir(parents=True)
    (outside / "secret.txt").write_text(f"{values.MARK}\n")
    (outside / "secret.png").write_bytes(secret_picture())
    (outside / "folder" / "secret.png").write_bytes(secret_picture())
    lay_out(world, case.changes, here, outside)
    before, kept = (
        listed(room),
        {path: path.read_bytes() for path in here.rglob(GROWS) if path.is_file() and not path.is_symlink()},
    )
    until: Callable[[str], bool] | None = (lambda out: bool(STARTED.search(out))) if "review" in case.words else None
    ended = cage.run(case.words, here, room, until)
    return [*_of_process(case, ended), *_of_disk(case, room, before, kept, ended)], ended


def secret_picture() -> bytes:
    import io

    from PIL import Image, PngImagePlugin

    stream, facts = io.BytesIO(), PngImagePlugin.PngInfo()
    facts.add_text("words", values.MARK)
    Image.new("L", (12, 12), 77).save(stream, "PNG", pnginfo=facts)
    return stream.getvalue()


def _of_process(case: Case, ended: Ended) -> list[str]:
    found = []
    if ended.too_long:
        found.append("hang")
    if ended.too_large:
        found.append(f"memory: {ended.memory / 2**30:.1f} GiB")
    if "Traceback" in ended.err or "Traceback" in ended.out:
        found.append(f"traceback: {_where(ended.err)}")
    elif not (ended.too_long or ended.too_large):
        found += _of_words(case, ended)
    found += ended.noted
    if case.refused and ended.code == 0:
        found.append("accepted what cannot be read")
    return found


def _where(err: str) -> str:
    """The last line of ours in a traceback, and what was raised."""
    ours = re.findall(r'File ".*?/labelsieve/(.*?)", line \d+, in (\w+)', err)
    last = err.rstrip().rpartition("\n")[2]
    return f"{last[:160]} in {'.'.join(ours[-1]) if ours else 'no file of ours'}"


def _of_words(case: Case, ended: Ended) -> list[str]:
    found = []
    if ended.code not in CODES.get(case.words[0], (0, 1, 2)):
        found.append(f"exit code {ended.code}")
    elif ended.code in (1, 2):
        said = [line for line in ended.err.splitlines() if line.startswith("error: ")]
        if len(said) != 1 and not ended.err.startswith("Usage:"):
            found.append("no sentence")
        elif len(ended.err) > LONGEST:
            found.append(f"an error of {len(ended.err):,} characters")
    elif NO_FIGURE.search(ended.out):
        found.append("a figure that is none")
    if "Warning:" in ended.err or "warnings.warn" in ended.err:
        found.append("a warning of Python")
    # what `predict` prints is its table, which other programs read as it is
    odd = CONTROL.search(((ended.out if case.words[0] != "predict" else "") + ended.err).replace("\r\n", "\n"))
    if odd:
        found.append(f"{odd.group()!r} on the terminal")
    return found


def listed(top: Path) -> dict[str, Seen]:
    found = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            to = os.readlink(path) if stat.S_ISLNK(facts.st_mode) else ""
            is_folder = stat.S_ISDIR(facts.st_mode)
            found[os.path.relpath(path, top)] = Seen(
                facts.st_mode, facts.st_ino, 0 if is_folder else facts.st_size, 0 if is_folder else facts.st_mtime_ns, to
            )
    return found


def _of_disk(case: Case, room: Path, before: dict[str, Seen], kept: dict[Path, bytes], ended: Ended) -> list[str]:
    after = listed(room)
    verb = case.words[0]
    own = [f"here/{name}" for name in OWN.get(verb, ())]
    outs = [case.words[k + 1] for k, word in enumerate(case.words) if word == "--out" and verb != "train"]
    made = (*own, *(f"here/{out}" for out in outs), *("here/changes.csv" for out in outs if out == "o.csv"))
    made = (*made, "home", "tmp", "out", "err", "seen", "here/cache/")
    found = []
    for name, was in before.items():
        now = after.get(name)
        if now is None and name.endswith(".draft") and not stat.S_ISLNK(was.kind) and not stat.S_ISFIFO(was.kind):
            continue  # taken for one that a killed process left
        if (
            now != was
            and not (name.startswith("here/") and any(name.startswith(one) for one in own))
            and not name.startswith(("home", "tmp", "here/cache"))
        ):
            found.append(f"{'lost' if now is None else 'overwritten'}: {name}")
    secrets = {seen.inode for name, seen in before.items() if name.startswith("outside/") and not stat.S_ISDIR(seen.kind)}
    for name in after.keys() - before.keys():
        if not any(name.startswith(one) for one in made) and not _is_draft_of(name, made):
            found.append(f"a file where none belongs: {name}")
        if name.endswith((".draft", ".part")) and not (ended.too_long or ended.too_large or ended.code < 0):
            found.append(f"left behind: {name}")
        if name.startswith("here/"):
            found += _handed_on(room / name, after[name], secrets, name)
    for path, content in kept.items():
        if not path.is_file() or not path.read_bytes().startswith(content):
            found.append(f"decisions lost: {path.name}")
    return found


def _is_draft_of(name: str, made: tuple[str, ...]) -> bool:
    folder, _, last = name.rpartition("/")
    return last.endswith(".draft") and any(f"{folder}/{last[1:-6]}".startswith(one) for one in made)


def _handed_on(path: Path, seen: Seen, secrets: set[int], name: str) -> list[str]:
    if seen.inode in secrets:
        return [f"handed on: {name} is the file outside"]
    if "outside" in seen.to:
        return [f"handed on: {name} is a link outside"]
    if stat.S_ISREG(seen.kind) and seen.size < 2**24 and values.MARK.encode() in path.read_bytes():
        return [f"handed on: {name} holds what stands outside"]
    return []
