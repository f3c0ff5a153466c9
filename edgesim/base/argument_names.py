"""Errors of calls from Python name arguments, where those of commands name options."""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from edgesim.base.errors import EdgesimError
from edgesim.base.processes import Stopped

P = ParamSpec("P")
R = TypeVar("R")

_COMMAND_OR_OPTION = re.compile(r"edgesim [^;)`]*|(?<![^\s(`'])--([a-z][a-z-]*)")
"""Commands that a message tells to type keep their options."""
_OTHER_NAMES = {"knob": "knobs", "objective": "objectives", "set": "overrides"}
_OF_EXECUTORS = ("address",)
"""Arguments of what is given as ``executor``."""

_OPTIONS_NAMED = ContextVar("options_named", default=False)


@contextmanager
def options_named() -> Iterator[bool]:
    """Within it errors may name options of a command; answers whether it is the outermost one."""
    is_outermost, token = not _OPTIONS_NAMED.get(), _OPTIONS_NAMED.set(True)
    try:
        yield is_outermost
    finally:
        _OPTIONS_NAMED.reset(token)


def names_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose errors name its arguments (``out``, ``fresh=True``) for options (``--out``, ``--fresh``).

    Within a command they stay as they are.
    """
    signature = inspect.signature(function)
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    known = defaults | (dict.fromkeys(_OF_EXECUTORS) if "executor" in defaults else {})

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with options_named() as is_outermost:
            try:
                return function(*args, **kwargs)
            except (EdgesimError, Stopped) as error:
                if is_outermost:
                    if isinstance(error, Stopped):
                        # Nothing else says so where a script ends by it.
                        print(error, file=sys.stderr)
                    error.args = (_COMMAND_OR_OPTION.sub(lambda found: _argument(found, known), str(error)),)
                raise

    return wrapped


def _argument(found: re.Match[str], known: Mapping[str, Any]) -> str:
    """The argument for an option; what is none stays as it is."""
    if not found[1]:
        return found[0]
    name = found[1].replace("-", "_")
    if isinstance(known.get(name), bool):
        return f"{name}=True"
    if isinstance(known.get(name.removeprefix("no_")), bool):
        return f"{name.removeprefix('no_')}=False"
    return next((one for one in (name, _OTHER_NAMES.get(name, name)) if one in known), found[0])
