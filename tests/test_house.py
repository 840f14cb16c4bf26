"""The house's rules, held by reading the source: imports go down only, nothing below runs/ prints."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import labelsieve

PACKAGE = Path(labelsieve.__file__ or "").parent
FILES = sorted(PACKAGE.rglob("*.py"))
PURE = ("losses", "mixture", "evidence", "streams", "sgd")
# What each room of the lower house may import of ours, besides itself and the errors.
BELOW = {"methods": ("config",), "nets": (), "data": ("disk", "doors", "run_files", "texts"), "engine": ("data", "methods")}
# And each upper room, besides itself and the top floor, as ARCHITECTURE.md lists it. The command line may import all.
TOP_FLOOR = ("errors", "disk", "doors", "run_files", "texts", "version")
ABOVE = {
    "backbones": ("data", "nets", "engine"),
    "decisions": (),
    "issues": ("decisions",),
    "report": ("issues",),
    "config": (*BELOW, "decisions"),
    "runs": (*BELOW, "backbones", "decisions", "issues", "config"),
    "results": (*BELOW, "issues", "report", "config", "runs"),
    "predict": (*BELOW, "backbones", "config", "runs"),
    "corrected": ("data", "decisions", "issues", "config", "runs", "results"),
    "train": (*BELOW, "backbones", "issues", "config", "runs", "results", "predict"),
    "exports": ("data", "decisions", "issues", "config", "runs", "corrected", "predict"),
    "review": ("data", "decisions", "issues", "report", "config", "runs"),
    "terminal": ("data", "backbones", "issues", "config", "runs", "results", "train"),
    "api": (*BELOW, "backbones", "issues", "config", "runs", "results", "predict", "train", "terminal"),
    "benchmark": (*BELOW, "issues", "report", "review", "config", "runs", "results", "predict", "corrected", "train", "terminal"),
    "reproduce": ("engine", "methods", "issues", "report", "config", "runs", "results", "train", "benchmark"),
}
UPPER = (*ABOVE, "cli")
BANNED_NAMES = {"utils", "helpers", "common", "base", "util", "helper", "misc"}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def imports(path: Path, top_level_only: bool = False) -> set[str]:
    """Dotted names of all that a file imports: `from a import b` gives both a and a.b."""
    tree = tree_of(path)
    found: set[str] = set()
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the whole name"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(path: Path) -> set[str]:
    """The rooms (or modules of the top floor) of ours that a file imports. Any room may declare its settings."""
    names = {name for name in imports(path) if name.startswith("labelsieve.")}
    return {name.split(".")[1] for name in names if not f"{name}.".startswith("labelsieve.config.setting.")}


def called(path: Path) -> set[str]:
    """Names of the functions called, as written: `print`, `time.time`, `path.open`."""
    return {ast.unparse(node.func) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)}


def files(*rooms: str) -> list[Path]:
    return [path for path in FILES if room(path) in rooms]


def shown(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_the_house_is_where_it_is_looked_for() -> None:
    assert len(FILES) > 40 and {"methods", "nets", "data", "engine", "runs"} <= {room(path) for path in FILES}


@pytest.mark.parametrize("path", files(*BELOW), ids=shown)
def test_lower_rooms_import_downwards_only(path: Path) -> None:
    allowed = {room(path), "errors", *BELOW[room(path)]}
    assert ours(path) <= allowed
    assert not ours(path) & set(UPPER)


@pytest.mark.parametrize("path", files(*ABOVE), ids=shown)
def test_upper_rooms_import_what_the_architecture_says(path: Path) -> None:
    assert ours(path) <= {room(path), *TOP_FLOOR, *ABOVE[room(path)]}


@pytest.mark.parametrize("name", PURE)
def test_the_methods_pure_parts_import_nothing_of_ours_outside_method(name: str) -> None:
    path = PACKAGE / "methods" / "parts" / f"{name}.py"
    assert ours(path) <= {"methods"}
    foreign = {one.split(".")[0] for one in imports(path) if not one.startswith("labelsieve")}
    assert foreign <= {"torch", "math", "collections", "dataclasses", "typing"}


@pytest.mark.parametrize("path", files("methods"), ids=shown)
def test_the_method_knows_no_data_and_no_networks(path: Path) -> None:
    assert ours(path) <= {"methods", "config", "errors"}
    assert {name for name in imports(path) if name.startswith("labelsieve.config")} <= {
        "labelsieve.config.setting",
        "labelsieve.config.setting.setting",
    }


@pytest.mark.parametrize("path", files(*BELOW), ids=shown)
def test_nothing_below_runs_prints_or_reads_the_clock(path: Path) -> None:
    assert not imports(path) & {"time", "datetime", "logging", "random"}
    assert not called(path) & {
        "print",
        "input",
        "time.time",
        "time.monotonic",
        "time.perf_counter",
        "breakpoint",
    }
    if room(path) != "data":  # only data/ reads files
        assert not {name for name in called(path) if name.split(".")[-1] in ("open", "read_text", "read_bytes")}


@pytest.mark.parametrize("path", files("methods", "nets", "engine", "data"), ids=shown)
def test_every_draw_below_runs_takes_a_generator(path: Path) -> None:
    """torch.rand*, np.random.* and in-place draws; nets/ build inside a forked generator."""
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        assert not name.startswith(("np.random.rand", "np.random.seed", "numpy.random.rand", "torch.manual_seed"))
        draws = name in ("torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.bernoulli")
        draws |= name == "torch.multinomial" or name.endswith((".uniform_", ".normal_", ".bernoulli_"))
        if draws:
            assert "generator" in {keyword.arg for keyword in node.keywords}, ast.unparse(node)


@pytest.mark.parametrize("path", files("issues", "report", "review", "decisions"), ids=shown)
def test_what_people_get_starts_without_torch(path: Path) -> None:
    assert "torch" not in {name.split(".")[0] for name in imports(path)}
    assert not ours(path) & {"methods", "nets", "engine", "data"} or room(path) == "review"


@pytest.mark.parametrize("path", [path for path in FILES if room(path) not in ("", "cli")], ids=shown)
def test_nothing_stands_on_the_command_line(path: Path) -> None:
    assert "cli" not in ours(path)


@pytest.mark.parametrize("path", files("decisions"), ids=shown)
def test_the_log_of_decisions_stands_alone_and_reads_no_clock(path: Path) -> None:
    assert ours(path) <= {"texts", "decisions", "disk", "doors", "errors"}
    assert not imports(path) & {"time", "datetime", "random", "numpy", "pandas"}
    assert "print" not in called(path)


@pytest.mark.parametrize("path", files("reproduce"), ids=shown)
def test_sweeps_know_nothing_of_decisions(path: Path) -> None:
    """What they share with the log, such as locks, stands on the top floor."""
    assert "decisions" not in ours(path)


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_the_wheel_knows_nothing_of_studies(path: Path) -> None:
    """They stand on it, outside of it, so that an experiment never becomes part of what users install."""
    assert "studies" not in {name.split(".")[0] for name in imports(path)}


def loaded_by(*modules: str) -> set[str]:
    code = f"import sys\nimport {', '.join(modules)}\nprint(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def test_importing_the_package_issues_and_report_loads_no_torch() -> None:
    modules = ["labelsieve", *(".".join(("labelsieve", *path.relative_to(PACKAGE).with_suffix("").parts))
               for path in files("issues", "report", "decisions") if path.stem != "__init__")]  # fmt: skip
    assert not loaded_by(*modules) & {"torch", "sklearn", "matplotlib"}


def test_the_commands_help_loads_no_torch() -> None:
    door = PACKAGE / "cli" / "main.py"
    if not door.exists():
        pytest.skip("there is no command line yet")
    assert not loaded_by("labelsieve.cli.main") & {"torch", "sklearn"}


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_every_file_says_what_it_is_and_has_a_noun(path: Path) -> None:
    parts = {part.removesuffix(".py") for part in path.relative_to(PACKAGE).parts}
    assert not parts & BANNED_NAMES
    if path.read_text(encoding="utf-8").strip():
        docstring = ast.get_docstring(tree_of(path))
        assert docstring and 1 <= len(docstring.splitlines()) <= 8
    else:
        assert path.name == "__init__.py"


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_nothing_unpickles(path: Path) -> None:
    """No data file and no model may run code; safe_pickle.py follows CIFAR's pickles opcode by opcode."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant) and node.value.value is False
    unsafe = {"pickle.load", "pickle.loads", "joblib.load", "yaml.load", "eval", "exec"}
    assert not called(path) & unsafe
    for node in ast.walk(tree_of(path)):  # weights alone can be read without running anything
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
            assert "weights_only=True" in {ast.unparse(keyword) for keyword in node.keywords}
    assert not imports(path) & {"pickle", "joblib", "shelve", "marshal", "dill"}
