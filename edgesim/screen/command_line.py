"""Command lines: a usage error is one line, like every other error."""

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

from edgesim.base.loading import ends_at_once
from edgesim.base.plain_text import printable
from edgesim.base.registry import did_you_mean
from edgesim.screen.plain import ends_with_its_reader

_ALIKE = 0.7
"""Least similarity of a suggested option; at the library's 0.6 ``--out`` would be suggested for ``--rounds``."""


_UsageError: Any = typer.BadParameter.__base__
"""Depending on its version, typer has click's class or its own copy of it."""


class Group(TyperGroup):
    """Commands below one name."""

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that a line names; raises the library's usage error for an option given twice."""
        name, command, rest = super().resolve_command(ctx, args)
        _refuse_twice(command, rest, ctx)
        return name, command, rest

    @override
    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        _in_a_line(super().main, *args, **kwargs)


class Command(TyperCommand):
    """A command that suggests for an unknown option only options of very similar spelling."""

    @override
    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        _in_a_line(super().main, *args, **kwargs)

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; raises the library's usage error, with a suggestion, and for an option given twice."""
        _refuse_twice(self, args, ctx)
        try:
            return list(super().parse_args(ctx, args))
        except Exception as raised:
            error: Any = raised
            option = getattr(error, "option_name", None)
            if isinstance(option, str) and hasattr(error, "possibilities"):
                known = [name for parameter in self.params for name in parameter.opts]
                error.possibilities = []
                remedy = self.remedy(option) or did_you_mean(option, known, _ALIKE)
                error.message = f"No such option: {printable(option)}{remedy}"
            raise

    def remedy(self, option: str) -> str:
        """Advice about an unknown option, to show instead of options of similar spelling."""
        return ""


def _refuse_twice(command: Any, args: list[str], ctx: Any) -> None:
    """Raise the library's usage error for an option with one value that is given twice, of which it takes the last."""
    options = [of for of in command.params if of.param_type_name == "option" and not (of.multiple or of.is_flag)]
    # A line that is being completed is not refused.
    for option in options if not ctx.resilient_parsing else []:
        typed = [name for word in args if (name := word.partition("=")[0]) in option.opts]
        if len(typed) > 1:
            raise _UsageError(f"{typed[0]}: is given twice; give it once")


def _in_a_line(main: Callable[..., Any], *args: Any, **kwargs: Any) -> NoReturn:
    """Run a command and end with its status; a usage error is one line, not the library's box of several lines."""
    try:
        status = main(*args, **kwargs | {"standalone_mode": False})
    except _UsageError as error:
        # Empty where the help has been printed instead.
        # Some versions of the library leave in what Pydantic puts before its reasons.
        if reason := " ".join(error.format_message().split()).removesuffix(".").replace("Value error, ", ""):
            remedy = f"`{error.ctx.command_path} --help` shows what it takes" if error.ctx else ""
            line = f"error: {reason[0].lower()}{reason[1:]}{' ' if reason.endswith('?') else '; '}{remedy}"
            print(printable(line.removesuffix("; "), keep=""), file=sys.stderr)
        sys.exit(error.exit_code)
    sys.exit(status if isinstance(status, int) else 0)


def start(
    main: Callable[..., Any],
    words: list[str] | None = None,
    name: str | None = None,
    kind: type[Command] = Command,
) -> None:
    """Run a command alone, with the options of the command line, or those of ``words`` under its ``name``."""
    # Plug-ins given by dotted path usually lie in the current folder; modules beside the script come first.
    sys.path.append("")
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(cls=kind)(main)
    ends_at_once()
    with ends_with_its_reader():
        app(words, prog_name=name)
