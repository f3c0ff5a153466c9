"""Where commands print: names and texts of strangers are shown as text, without markup and without escapes."""

from typing import Any

from rich.console import Console
from rich.text import Text

from edgesim.files.plain_text import printable


class PlainConsole(Console):
    """A console that takes every string as text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """As rich: what becomes of a string, in tables too."""
        return super().render_str(printable(text), **options)
