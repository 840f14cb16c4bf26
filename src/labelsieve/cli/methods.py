"""`labelsieve methods`: which there are, what each needs, costs and reached; of one, its settings and its authors' cells."""

import inspect
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from labelsieve.methods.contract import Method


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
