"""`labelsieve doctor`, `presets` and `methods`: what is installed, which settings and presets there are, what methods need."""

import inspect
import re
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from labelsieve.methods.contract import Method


def doctor() -> None:
    """Show versions, devices and extras."""
    import torch
    from rich.table import Table

    from labelsieve.engine.device import choose_device, usable_cores
    from labelsieve.runs.environment import EXTRAS, describe, environment, in_words, installed
    from labelsieve.terminal.console import console

    device = choose_device("auto")
    facts = environment(device)
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("labelsieve", facts["labelsieve"])
    if commit := in_words(facts):
        table.add_row("commit", commit)
    table.add_row("python", f"{facts['python']} ({facts['platform']})")
    for name, version in facts["packages"].items():
        table.add_row(name, version or "missing: reinstall labelsieve")
    table.add_row("device", describe(device))
    table.add_row("cores", f"{usable_cores()} usable, torch uses {torch.get_num_threads()} threads")
    for extra, packages in EXTRAS.items():
        missing = [name for name in packages if installed(name) is None]
        broken = [] if missing else [why for name in packages if (why := _fails(name))]
        state = f'not installed ({", ".join(missing)} missing): pip install "labelsieve[{extra}]"' if missing else "installed"
        table.add_row(f"extra {extra}", f"installed, but cannot be imported ({broken[0]}); reinstall it" if broken else state)
    console.print(table)


def _fails(name: str) -> str:
    """Why a package cannot be imported, or "": one that was compiled beside another version of torch is there and of no use."""
    from importlib import import_module

    try:
        import_module(name)
    except Exception as error:  # a package may fail in any way
        return f"{name}: {' '.join(str(error).split())[:120]}"
    return ""


def presets(
    name: Annotated[str | None, typer.Argument(help="Show what this preset sets.")] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="List every setting with its default, what it means and its type.")
    ] = False,
) -> None:
    """List presets, or show one."""
    from rich.table import Table

    from labelsieve.config.presets import PRESETS, VARIANTS, describe, preset
    from labelsieve.terminal.console import console

    if keys:
        say_keys()
        return
    table = Table(box=None, pad_edge=False)
    if name is not None:
        table.add_column("setting")
        table.add_column("value")
        settings = preset(name)
        table.title, table.title_justify = describe(name), "left"
        for key, value in settings.items():
            table.add_row(key, str(value))
    else:
        table.add_column("preset", no_wrap=True)
        table.add_column("what it is")
        for what, alike in groupby(PRESETS, key=lambda known: describe(known).splitlines()[0]):
            table.add_row("\n".join(alike), what)
        table.caption = "Others by a plus sign: " + ", ".join(f"NAME+{variant}" for variant in VARIANTS)
        table.caption_justify = "left"
    console.print(table)


def say_keys() -> None:
    """Every setting with its default, what it means, its type: in columns on a terminal, elsewhere a line each, for grep."""
    from rich.markup import escape
    from rich.table import Table

    from labelsieve.config.schema import Config, dotted_keys, rules_by_key, type_name, value_at
    from labelsieve.config.setting import rules
    from labelsieve.methods.registry import METHODS, own_keys
    from labelsieve.terminal.console import console

    table = Table(box=None, pad_edge=False)
    for head in ("setting", "default", "what it is"):
        table.add_column(head, no_wrap=head != "what it is")
    said = {key: (str(value_at(Config(), key)), rules_by_key()[key].meaning, hint) for key, hint in dotted_keys().items()}
    for key, hint in own_keys().items():
        head, _, name = key.rpartition(".")
        rule = dict(rules(METHODS[head].Config))[name]
        said[key] = (str(getattr(METHODS[head].Config(), name)), rule.meaning, hint)
    for key, (default, meaning, hint) in said.items():
        words = f"{meaning} ({type_name(hint)})"
        table.add_row(key, default, escape(words))
        if not console.is_terminal:
            console.print(f"{key:27s} {default:9s} {words}", soft_wrap=True, markup=False, highlight=False)
    if console.is_terminal:
        console.print(table)


def methods(name: Annotated[str | None, typer.Argument(help="Show this method's settings and numbers.")] = None) -> None:
    """List training methods, or show one. Networks, views, cost, and accuracy, published and here."""
    from labelsieve.methods.registry import METHODS, method_named
    from labelsieve.terminal.console import console

    console.print(_listed(METHODS) if name is None else _shown(method_named(name)))


def _listed(known: "dict[str, type[Method]]") -> Any:
    from rich.console import Group
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for head in ("method", "nets", "views", "sees of each sample", "last epoch here"):
        table.add_column(head, no_wrap=head not in ("sees of each sample", "last epoch here"))
    for name, method in known.items():
        views = "strong" if method.varies else "weak"
        costs = re.sub(r" views?( trained)? on|( trained)? on|(?<=looked) at", r"\1", method.costs)
        vectors = "" if method.takes_vectors else "; no vectors"
        table.add_row(name, str(method.networks), views, costs + vectors, _measured(method))
    words = (
        "Seen in an epoch by all networks together: views trained on, views looked at. Where strong views are trained on, "
        "weak ones are, too. `labelsieve methods NAME` has a method's settings and its cells, with the published numbers."
    )
    return Group(table, "", words)


def _measured(method: "type[Method]") -> str:
    return "\n".join(f"{cell} {its.ours:g} %" for cell, its in method.cells.items() if its.ours is not None) or "not run"


def _shown(method: "type[Method]") -> Any:
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    from labelsieve.config.setting import rules

    about = Table(title=escape(said_of(method)), title_justify="left", box=None, pad_edge=False)
    for head in ("setting", "default", "what it is"):
        about.add_column(head, no_wrap=head != "what it is")
    if method.own_section:
        usual = method.Config()
        for key, rule in rules(method.Config):
            default = getattr(usual, key)
            said = f"{default:.4g}" if isinstance(default, float) else str(default)
            about.add_row(f"{method.name}.{key}", said, escape(rule.meaning))
    else:
        about.add_row("training.*, cleaning.*", "", "`labelsieve presets --keys` lists them")
    cells = Table(box=None, pad_edge=False)
    for head in ("preset", "published", "here"):
        cells.add_column(head)
    for name, cell in method.cells.items():
        cells.add_row(name, _per_cent(cell.published, "not printed"), _per_cent(cell.ours, "not run"))
    return Group(about, "", cells)


def _per_cent(number: float | None, otherwise: str) -> str:
    return otherwise if number is None else f"{number:g} %"


def said_of(method: "type[Method]") -> str:
    """What the method's file says it is."""
    module = inspect.getmodule(method)
    return (inspect.getdoc(module) or method.name).strip()
