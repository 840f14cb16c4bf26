"""The one console all verbs write to. What is printed is said as it is: names may hold brackets and colons.

All but what a terminal would obey: names of strangers' files and classes may hold escape sequences, which are shown instead.
"""

from typing import Any

from rich.console import Console
from rich.text import Text

from labelsieve.terminal.visible import visible


class PlainConsole(Console):
    """Everything printed passes here, cells of tables too."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, soft_wrap=True, markup=False, emoji=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(visible(text), **settings)


console = PlainConsole()
