"""The one console all verbs write to."""

from rich.console import Console

console = Console(highlight=False, soft_wrap=True)
