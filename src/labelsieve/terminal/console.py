"""The one console all verbs write to. What is printed is said as it is: names may hold brackets and colons."""

from rich.console import Console

console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
