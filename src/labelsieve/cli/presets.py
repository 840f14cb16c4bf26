"""`labelsieve presets`: the named groups of settings, what is in one, and every key that can be set."""

from typing import Annotated

import typer


def presets(
    name: Annotated[str | None, typer.Argument(help="Show what this preset sets.")] = None,
    keys: Annotated[bool, typer.Option("--keys", help="List every setting with its type and default.")] = False,
) -> None:
    """List presets, or show one."""
    from rich.table import Table

    from labelsieve.runs.config import Config, dotted_keys, type_name, value_at
    from labelsieve.runs.presets import PRESETS, VARIANTS, describe, preset
    from labelsieve.terminal.console import console

    table = Table(box=None, pad_edge=False)
    if keys:
        for head in ("setting", "type", "default"):
            table.add_column(head)
        for key, hint in dotted_keys().items():
            table.add_row(key, type_name(hint), str(value_at(Config(), key)))
    elif name is not None:
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
