"""The console of all commands: it shows names and texts of strangers as text, without markup or escapes."""

from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

from rich.console import Console
from rich.text import Text
from typing_extensions import override

from edgesim.base.plain_text import printable
from edgesim.screen.plain import reader_left


class PlainConsole(Console):
    """A console that takes every string as text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)
        if not self.width:
            # COLUMNS=0 would make every line an empty one.
            self.width = 80

    @override
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    @override
    def on_broken_pipe(self) -> None:
        reader_left()

    @override
    def status(self, *arguments: Any, **options: Any) -> Any:
        """Show what is being done within a context; nothing where a notebook could not show it."""
        return nullcontext() if lacks_widgets(self) else super().status(*arguments, **options)


def lacks_widgets(console: Console) -> bool:
    """Whether the console is a notebook's without ipywidgets, in which rich would print warnings instead of bars."""
    return console.is_jupyter and find_spec("ipywidgets") is None
