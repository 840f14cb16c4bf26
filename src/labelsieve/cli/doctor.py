"""`labelsieve doctor`: what is installed, which device would be used, which optional parts are there."""


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
