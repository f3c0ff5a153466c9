"""Options as they are typed: what is said about one that a command does not have."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.core import TyperCommand

_ALIKE = 0.7
"""How like an option is to one that is suggested for it; at the usual 0.6 ``--rounds`` would be ``--out``."""


class Command(TyperCommand):
    """A command that suggests for an unknown option only those that are spelt much like it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; raises the usage error of the library, which prints it."""
        try:
            return list(super().parse_args(ctx, args))
        except Exception as raised:
            error: Any = raised
            # The class that typer raises is click's or a copy of its own, by version.
            option = getattr(error, "option_name", None)
            if isinstance(option, str) and hasattr(error, "possibilities"):
                remedy = self.remedy(option)
                known = [] if remedy else [name for parameter in self.params for name in parameter.opts]
                error.possibilities = difflib.get_close_matches(option, known, cutoff=_ALIKE)
                error.message = f"No such option: {option}{remedy}"
            raise

    def remedy(self, option: str) -> str:
        """What to say about an option that is not there, instead of others that are spelt like it."""
        return ""


def start(main: Callable[..., Any]) -> None:
    """Run a script's command with the options that were typed."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(cls=Command)(main)
    app()


def keys_called(name: str, settings: Mapping[str, Any], above: str = "") -> list[str]:
    """Whole keys, as ``section.key``, of all settings whose last part is a name."""
    found = []
    for key, value in settings.items():
        if key == name:
            found.append(above + key)
        if isinstance(value, Mapping):
            found += keys_called(name, value, f"{above}{key}.")
    return found
