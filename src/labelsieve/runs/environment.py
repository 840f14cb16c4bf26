"""What a run was made with: versions, the commit of a source checkout, device, threads. No names of people or machines.

The commit is read from git's own files, so git need not be installed; git is only asked whether the source has changes.
"""

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from labelsieve.version import __version__

PACKAGE = Path(__file__).resolve().parents[1]
PATIENCE = 10  # seconds for git, which may have to wait for a slow disk
PACKAGES = ("torch", "numpy", "scikit-learn", "safetensors", "pyyaml", "typer", "rich", "pillow")
# Optional parts: extra -> the packages it brings. The same as in pyproject.toml; a test holds them together.
EXTRAS: dict[str, tuple[str, ...]] = {
    "tables": ("pyarrow",),
    "zoo": ("timm",),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "compare": ("cleanlab",),
    "frames": ("pandas",),
    "figures": ("matplotlib",),
    "review": ("fastapi", "uvicorn"),
    "remote": ("fsspec", "s3fs"),
}


@cache
def source_facts(package: Path = PACKAGE) -> dict[str, Any]:
    """`commit`, and `commit_differs` where that can be told; empty where the package is not in a checkout of its own."""
    root = package.parents[1]
    if package.parent.name != "src" or not (root / ".git").exists() or not _is_ours(root / "pyproject.toml"):
        return {}
    try:
        commit = _commit(root)
    except (OSError, UnicodeDecodeError):
        commit = None
    if commit is None:
        return {}
    differs = _differs(root)
    return {"commit": commit} | ({} if differs is None else {"commit_differs": differs})


def in_words(facts: Mapping[str, Any]) -> str | None:
    """The commit of an environment.json, in words; None where it has none."""
    return f"{facts['commit']}{', with changes' if facts.get('commit_differs') else ''}" if facts.get("commit") else None


def _is_ours(project: Path) -> bool:
    """Or the package was copied into somebody else's repository, whose commit says nothing of it."""
    try:
        name = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {}).get("name")
    except (OSError, ValueError):
        return False
    return bool(name == "labelsieve")


def _commit(root: Path) -> str | None:
    """What HEAD stands for. In a worktree, .git is a file that names its folder, and branches lie in the main one."""
    home = root / ".git"
    if home.is_file():
        home = root / _line(home).removeprefix("gitdir: ")
    shared = home / _line(home / "commondir") if (home / "commondir").exists() else home
    found = _line(home / "HEAD")
    for _ in range(5):  # a name may stand for another name
        if not found.startswith("ref: "):
            break
        found = _named(found.removeprefix("ref: "), home, shared)
    whole = len(found) in (40, 64) and set(found) <= set("0123456789abcdef")
    return found if whole else None


def _named(ref: str, home: Path, shared: Path) -> str:
    for place in (home / ref, shared / ref):
        if place.is_file():
            return _line(place)
    packed = shared / "packed-refs"
    lines = packed.read_text(encoding="utf-8").splitlines() if packed.exists() else []
    return next((line.split(" ", 1)[0] for line in lines if line.endswith(f" {ref}")), "")


def _line(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()


def _differs(root: Path) -> bool | None:
    """Whether tracked files of the source are other than in the commit; None where git is not there or does not say."""
    git = shutil.which("git")
    if git is None:
        return None
    asked = [git, "-C", str(root), "--no-optional-locks", "status", "--porcelain", "--untracked-files=no", "--", "src"]
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # those of a hook, say
    try:
        answer = subprocess.run(asked, capture_output=True, env=quiet, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return bool(answer.stdout.strip()) if answer.returncode == 0 else None


def installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def environment(device: torch.device) -> dict[str, Any]:
    return {
        "labelsieve": __version__,
        **source_facts(),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "packages": {name: installed(name) for name in PACKAGES},
        "device": describe(device),
        "threads": torch.get_num_threads(),
    }


def describe(device: torch.device) -> str:
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"
