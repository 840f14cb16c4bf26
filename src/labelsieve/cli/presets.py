"""`labelsieve presets`: the named groups of settings, what is in one, and every key that can be set."""

from typing import Annotated

import typer


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
        for known in PRESETS:
            table.add_row(known, describe(known).splitlines()[0])
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
