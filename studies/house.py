"""Counts what a reader has to follow: `python -m studies.house` trains digits for two epochs and counts what it enters.

Files and functions of the package between `train` and issues.csv, modules and lines of the wheel, and import cycles, imports
inside functions included. ARCHITECTURE.md has the figures.
"""

import ast
import inspect
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import labelsieve

PACKAGE = Path(labelsieve.__file__).parent
COMMAND = ("train", "digits", "--epochs", "3", "--limit", "300", "--set", "training.warmup=1", "--device", "cpu")


def entered(words: tuple[str, ...]) -> set[tuple[str, str]]:
    """(file, function) of the package that a command enters; modules that are only imported do not count."""
    from labelsieve.cli.main import main

    seen: set[tuple[str, str]] = set()

    def look(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and "<" not in code.co_name  # no module, class body or comprehension
        if is_function and code.co_filename.startswith(str(PACKAGE)) and not _importing(frame):
            seen.add((code.co_filename, code.co_qualname))

    before = sys.argv
    sys.argv = ["labelsieve", *words]
    sys.setprofile(look)
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        sys.argv = before
    return seen


def _importing(frame: FrameType) -> bool:
    """Whether a module of the package is just being loaded, which may call a function to make a constant."""
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(str(PACKAGE)):
            return True
        above = above.f_back
    return False


def modules() -> dict[str, Path]:
    found = {".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in PACKAGE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in found.items()}


def imports() -> dict[str, set[str]]:
    """{module: the package's modules that it imports}, at the top or inside a function; not those for type checkers only."""
    known = modules()
    return {name: set(_imported(ast.parse(path.read_text("utf-8")), known)) - {name} for name, path in known.items()}


def _imported(tree: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from inner & known.keys()
            if inner - known.keys():
                yield node.module
        else:
            yield from _imported(node, known)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, in however many steps."""
    reach = {name: _reached(graph, name) for name in graph}
    found = {tuple(sorted(other for other in reach[name] if name in reach[other])) for name in graph if name in reach[name]}
    return sorted(map(list, found))


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    left = list(graph[start])
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += graph[name]
    return seen


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        seen = entered((*COMMAND, "--out", str(Path(folder) / "run")))
    files = modules().values()
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    print(f"train to issues.csv: {len({file for file, _ in seen})} files, {len(seen)} functions")
    print(f"wheel: {len(files)} modules, {lines:,} lines")
    print("import cycles:", cycles(imports()) or "none")


if __name__ == "__main__":
    main()
