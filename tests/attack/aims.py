"""What is aimed at: for each world, which files are damaged and which commands then read them. A seed gives one case."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch

from attack.case import Case, Change, World, replaced
from attack.mutations import damaged
from attack.worlds import BACKBONE, CACHED, FROZEN

QUICK = ("--device", "cpu", "--set", "engine.threads=1")
DRY = ("--dry-run", *QUICK)


@dataclass(frozen=True)
class Aim:
    """`files` are damaged by pattern; `needed` ones the commands cannot do without. `weight`: how often it is chosen."""

    world: str
    files: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    needed: tuple[str, ...] = ()
    weight: float = 1.0


def _inspected(what: str, *more: str) -> tuple[tuple[str, ...], ...]:
    return (("inspect", what, *more), ("train", what, "--out", "new", *more, *DRY))


def _weighed(file: str) -> tuple[tuple[str, ...], ...]:
    """Commands that read a file of weights."""
    frozen = ("--features", "frozen", *FROZEN[:4], "--weights", file)
    return (
        ("embed", "pics", *FROZEN, "--weights", file, "--out", "f.npz"),
        ("train", "pics", "--out", "new", *frozen, *DRY),
        ("train", "pics", "--out", "new", "--network", f"timm:{BACKBONE}", "--pretrained", file, *DRY),
    )


RUN = ("run/*",)
LOOKS = (
    ("report", "run"),
    ("apply", "run", "--out", "corrected"),
    ("apply", "run", "--out", "o.csv"),
    ("decisions", "run"),
    ("decisions", "run", "--to", "csv", "--out", "d.csv"),
    ("decisions", "run", "--to", "labelstudio", "--out", "d.json"),
    ("export", "run", "--to", "cleanlab", "--out", "e"),
    ("export", "run", "--to", "fiftyone", "--out", "e"),
    ("export", "run", "--to", "labelstudio", "--out", "e"),
    ("review", "run", "--no-browser", "--port", "0"),
    ("resume", "run"),
    ("train", "--decisions", "run", "--out", "next2", "--dry-run"),
)
MODEL = (("evaluate", "run"), ("export", "run", "--to", "huggingface", "--out", "e"))

AIMS: tuple[Aim, ...] = (
    Aim("photos", ("pics/*",), (*_inspected("pics"), ("train", "pics", "--out", "new", "--strict", *DRY)), weight=3),
    Aim("tables", ("list.csv", "pics/*"), _inspected("list.csv", "--root", "pics"), ("list.csv",), 1.5),
    Aim("tables", ("list.tsv",), _inspected("list.tsv", "--root", "pics"), ("list.tsv",)),
    Aim("tables", ("list.jsonl",), _inspected("list.jsonl", "--root", "pics"), ("list.jsonl",)),
    Aim("tables", ("list.parquet",), _inspected("list.parquet", "--root", "pics"), ("list.parquet",), 1.5),
    Aim("tables", ("classes.txt",), _inspected("list.csv", "--root", "pics", "--classes", "classes.txt"), ("classes.txt",), 0.5),
    Aim(
        "tables", ("trusted.txt",), (("train", "pics", "--trusted", "trusted.txt", "--out", "new", *DRY),), ("trusted.txt",), 0.5
    ),
    Aim("tables", ("prior.csv",), (("train", "pics", "--prior", "prior.csv", "--out", "new", *DRY),), ("prior.csv",), 0.5),
    Aim("arrays", ("pictures.npz",), _inspected("pictures.npz"), ("pictures.npz",), 1.5),
    Aim("arrays", ("vectors.npz",), _inspected("vectors.npz"), ("vectors.npz",)),
    Aim("arrays", ("packed.npz",), _inspected("packed.npz"), ("packed.npz",)),
    Aim("arrays", ("alone.npy", "alone_labels.npy"), _inspected("alone.npy"), ("alone.npy",)),
    Aim("arrays", ("vectors.parquet",), _inspected("vectors.parquet"), ("vectors.parquet",)),
    *(
        Aim("noises", (file,), (("train", "digits", "--noise", f"{kind}:{file}{rate}", "--out", "new", *DRY),), (file,), 0.6)
        for kind, file, rate in (
            ("matrix", "matrix.npy", ""),
            ("matrix", "matrix.json", ""),
            ("matrix", "matrix.csv", ""),
            ("file", "labels.npy", ""),
            ("file", "labels.json", ""),
            ("file", "labels.npz", ""),
            ("votes", "votes.npz", ":0.3"),
        )
    ),
    *(
        Aim("cifar", (file,), (("train", "cifar10:.", "--noise", f"cifar-n:{file}:worse", "--out", "new", *DRY),), (file,))
        for file in ("human.pt", "older.pt")
    ),
    Aim("cifar", ("cifar-10-batches-py/*",), _inspected("cifar10:."), ("cifar-10-batches-py/*",), 1.5),
    Aim("cifar", ("packed.tar.gz",), _inspected("cifar10:packed.tar.gz"), ("packed.tar.gz",)),
    Aim("saved", ("saved/*",), _inspected("saved"), weight=1.5),
    Aim("saved", ("hub/*",), _inspected("hub"), weight=1.5),
    Aim("web", ("clothing/annotations/*",), _inspected("clothing1m:clothing"), weight=0.7),
    Aim("web", ("web/info/*",), _inspected("webvision:web"), weight=0.7),
    Aim("fashion", ("*-ubyte*",), _inspected("fashion-mnist:."), ("*-ubyte*",)),
    Aim("run", RUN, LOOKS, ("run/config.yaml", "run/issues.csv"), 6),
    Aim(
        "run",
        ("run/checkpoint/*", "run/metrics.jsonl", "run/environment.json", "run/noise.npz"),
        (("resume", "run"),),
        ("run/checkpoint/*",),
        2,
    ),
    Aim(
        "run",
        ("run/metrics.jsonl", "run/config.yaml", "run/predictions.npz", "run/timings.jsonl"),
        (("compare", "run", "run2"),),
        weight=2,
    ),
    Aim(
        "run",
        ("run/model.*", "run/config.yaml"),
        (MODEL[0], ("predict", "run", "stripes.npz")),
        ("run/model.*", "run/config.yaml"),
        1.5,
    ),
    Aim("run", ("run/*",), MODEL[1:], ("run/config.yaml",)),
    Aim(
        "run",
        ("run/model.*", "run/config.yaml", "run/noise.npz", "stripes.npz"),
        tuple(("export", "run", "--to", to, "--out", "e") for to in ("onnx", "torch-export")),
        ("run/model.*", "run/config.yaml"),
        0.4,
    ),
    Aim("run", ("stripes.npz",), (*LOOKS[:2], LOOKS[10], *MODEL, ("predict", "run", "stripes.npz")), weight=1),
    Aim(
        "run",
        ("in.csv", "more.csv"),
        (("apply", "run", "--out", "o.csv", "--decisions", "more.csv"), ("decisions", "run", "--from", "more.csv")),
        ("more.csv",),
        2,
    ),
    Aim("run", ("tasks.json",), (("decisions", "run", "--from", "tasks.json"),), ("tasks.json",), 2),
    Aim("pictures run", ("run/*", "pics/*"), LOOKS, ("run/config.yaml", "run/issues.csv"), 4),
    Aim(
        "pictures run",
        ("pics/*",),
        (
            LOOKS[1],
            ("apply", "run", "--out", "corrected", "--copy"),
            ("apply", "run", "--out", "corrected", "--symlink"),
            LOOKS[7],
            LOOKS[8],
            ("predict", "run", "pics"),
            ("evaluate", "run", "pics"),
        ),
        weight=2,
    ),
    Aim(
        "pictures run",
        ("cache/*",),
        (*_inspected("pics", "--set", "pictures.cache_dir=cache"), ("resume", "run"), ("report", "run")),
        weight=1.5,
    ),
    Aim(
        "next round",
        ("next/*",),
        tuple(tuple("next" if word == "run" else word for word in one) for one in LOOKS),
        ("next/config.yaml",),
        2,
    ),
    *(
        Aim("weights", (file,), (embedded, trained, tuned), (file,))
        for file in ("tiny.pth", "older.pth", "tiny.safetensors")
        for embedded, trained, tuned in (_weighed(file),)
    ),
    Aim("weights", ("features.npz",), _inspected("features.npz"), ("features.npz",)),
    Aim("weights", ("cache/*", "pics/*"), (("embed", "pics", *FROZEN, "--weights", "tiny.pth", "--out", "f.npz", *CACHED),)),
    Aim(
        "frozen run",
        ("run/backbone*", "run/config.yaml", "run/model.*", "run/checkpoint/*", "cache/*"),
        (("resume", "run"), ("evaluate", "run"), ("predict", "run", "pics"), ("report", "run"), LOOKS[9], LOOKS[11]),
        weight=1.5,
    ),
    Aim("slim run", ("run/*",), (("resume", "run"), ("report", "run")), ("run/slim/*", "run/config.yaml"), 1.5),
    *(
        Aim("probabilities", (file,), (("rank", file, "--out", "r.csv"), ("rank", file, "--out", "r.parquet")), (file,), 0.6)
        for file in ("probs.npz", "probs.csv", "probs.jsonl", "probs.parquet", "lists.parquet")
    ),
    Aim(
        "probabilities",
        ("classes.txt",),
        (("rank", "probs.csv", "--classes", "classes.txt", "--out", "r.csv"),),
        ("classes.txt",),
        0.3,
    ),
    Aim(
        "probabilities",
        ("speed.json",),
        (("reproduce", "table1", "--speed", "speed.json", "--dry-run"),),
        ("speed.json",),
        0.5,
    ),
    Aim("sweep", ("sweep/sweep.json",), (("reproduce", "small", "--out", "sweep", "--dry-run"),), ("sweep/sweep.json",), 0.5),
    Aim(
        "sweep",
        ("run/metrics.jsonl", "run/config.yaml", "run/scores.npz", "run/noise.npz", "run/issues.csv"),
        (("reproduce", "figures", "run", "--out", "figures"), ("reproduce", "prototypes", "run")),
        weight=0.7,
    ),
    Aim(
        "pictures run",
        ("stdin", "new.csv"),
        (("predict", "run", "-"), ("predict", "run", "new.csv", "--out", "p.jsonl")),
        (),
        0.6,
    ),
    Aim(
        "half run",
        ("run/*",),
        (("resume", "run"), ("report", "run"), ("apply", "run", "--out", "corrected")),
        ("run/checkpoint/*", "run/config.yaml"),
        2,
    ),
)
HOLES = (1, 2**20, 3 * 2**30)
LINKS = (
    "_OUTSIDE_/secret.txt",
    "_OUTSIDE_/secret.png",
    "/dev/zero",
    "/dev/random",
    "/dev/stdin",
    "/proc/self/mem",
    "{own}",
    "nowhere",
    "_OUTSIDE_/folder",
)
NAMES = (
    "\x1b[2J.png",
    "a\nb.png",
    "=cmd.png",
    "-rf.png",
    "x" * 200 + ".png",
    "\u202egnp.png",
    ".hidden.png",
    "json.py",
    "numpy.py",
    "\udcff\udcfe.png",
    'a,b"c.png',
    "con.png",
)
DRAFTS = (
    ".corrected.draft",
    ".o.csv.draft",
    ".d.csv.draft",
    ".d.json.draft",
    ".e.draft",
    "run/.report.html.draft",
    "run/.metrics.jsonl.draft",
    "run/checkpoint/.epoch-000003.draft",
)


def numbered(worlds: Mapping[str, World], seed: int, number: int) -> Case:
    """The same for the same number and seed, however many are asked for."""
    return case(worlds, random.Random(f"{seed} {number}"))


def case(worlds: Mapping[str, World], rng: random.Random) -> Case:
    aims = [aim for aim in AIMS if aim.world in worlds]
    aim = rng.choices(aims, [one.weight for one in aims])[0]
    world = worlds[aim.world]
    words = rng.choice(aim.commands)
    files = [name for name in world if any(fnmatch(name, pattern) for pattern in aim.files)]
    changes, refused, notes = [], False, []
    for name in rng.sample(files, min(len(files), rng.choice((1, 1, 1, 1, 2, 3)))):
        change, note, is_ruined = _changed(rng, name, world)
        changes.append(change)
        notes.append(note)
        refused = refused or (is_ruined and any(fnmatch(name, pattern) for pattern in aim.needed) and not _unread(name, words))
    if "compare" in words:
        same = ("run/config.yaml", "run/metrics.jsonl", "run/predictions.npz")
        changes += [replaced(name.replace("run/", "run2/", 1), world[name]) for name in same]
    return Case(aim.world, words, tuple(_in_order(changes)), refused, "; ".join(notes))


def _unread(name: str, words: tuple[str, ...]) -> bool:
    """What is said of decisions, and a run that goes on, need no list of issues; a table of decisions needs no settings."""
    if name.endswith("config.yaml"):
        return words[0] == "decisions" and "csv" in words
    return name.endswith("issues.csv") and (words[0] in ("resume", "train") or (words[0] == "decisions" and "--to" not in words))


def _in_order(changes: list[Change]) -> list[Change]:
    """One for a path; and none below a folder that is replaced, for that may be a link that leads out."""
    found = {change.path: change for change in changes}
    return [one for path, one in found.items() if not any(path.startswith(f"{above}/") for above in found)]


def _changed(rng: random.Random, name: str, world: World) -> tuple[Change, str, bool]:
    """A change, what it is in words, and whether nothing is left of the file that can be read."""
    kind = rng.random()
    if kind < 0.78:
        content = damaged(rng, name, world[name])
        if len(content) == len(world[name]) > 4000:
            places = [k for k, (a, b) in enumerate(zip(content, world[name])) if a != b]
            if len(places) <= 64 and b"_HERE_" not in world[name]:
                return Change(name, "edits", [[k, f"{content[k]:02x}"] for k in places]), f"{name}: other bytes", False
        return replaced(name, content), f"{name}: damaged", False
    if kind < 0.86:
        to = rng.choice(LINKS).replace("{own}", name.rpartition("/")[2])
        return (
            Change(name, "link", to),
            f"{name}: a link to {to}",
            "/dev/" in to or to in ("nowhere", "_OUTSIDE_/folder") or not to.startswith("_"),
        )
    if kind < 0.92:
        odd = rng.choice(("fifo", "folder", "gone", "socket"))
        return Change(name, odd), f"{name}: {odd}", odd != "gone"
    if kind < 0.94:
        size = rng.choice(HOLES)
        return Change(name, "hole", size), f"{name}: {size} zeros", False
    folder = name.rpartition("/")[0]
    if kind < 0.96 and folder and not folder.startswith("cache"):  # where your own cache leads is your own affair
        to = rng.choice(("_OUTSIDE_/folder", "/dev", "..", ".", "/proc/self"))
        return Change(folder, "link", to), f"{folder}: a link to {to}", False
    if kind < 0.98:
        draft = rng.choice(DRAFTS)
        odd = rng.choice(("link", "fifo", "folder", "text"))
        return Change(draft, odd, "_OUTSIDE_/secret.txt" if odd == "link" else ""), f"{draft}: {odd}", False
    more = f"{folder}/{rng.choice(NAMES)}" if folder else rng.choice(NAMES)
    return replaced(more, world[name]), f"{more!r}: one more file", False
