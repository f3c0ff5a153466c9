"""Plain words instead of a traceback, for every command of the project."""

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, ParamSpec, TypeVar

from edgesim.base.errors import EdgesimError
from edgesim.base.paths import check_path
from edgesim.base.plain_text import printable
from edgesim.base.processes import READER_LEFT, Stopped, sigterm_interrupts, why_stopped_printed

P = ParamSpec("P")
R = TypeVar("R")


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn bad input into one line on stderr and the error's status, and Ctrl-C or SIGTERM into status 130.

    A run that SIGTERM or SIGUSR1 has saved ends with status 75.

    What the system refuses is one line too: a full disk, a folder that is read-only.

    Paths among the command's arguments are checked first: those that the file system cannot have are bad input too.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        sigterm_interrupts()
        try:
            for name, value in inspect.signature(command).bind_partial(*args, **kwargs).arguments.items():
                for path in value if isinstance(value, list) else [value]:
                    if isinstance(path, Path):
                        check_path(path, name.rstrip("_"))
            with why_stopped_printed():
                return command(*args, **kwargs)
        except EdgesimError as error:
            _stop(f"error: {_as_typed(str(error), command)}", error.status)
        except BrokenPipeError:
            reader_left()
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            _stop(f"error: {place}{error.strerror or error}", EdgesimError.status)
        except Stopped as stopped:
            sys.exit(stopped.status)
        except KeyboardInterrupt:
            _stop("stopped; whatever had finished is kept", 130)

    return wrapped


def _as_typed(message: str, command: Callable[..., object]) -> str:
    """The message with the option that it begins with as it is typed, ``--by`` for ``by``; Python has arguments."""
    # Loaded here, since doctor imports this module where typer does not load.
    from typer.models import OptionInfo

    for name, parameter in inspect.signature(command).parameters.items():
        of = [extra for extra in getattr(parameter.annotation, "__metadata__", ()) if isinstance(extra, OptionInfo)]
        if of and (word := re.match(rf"{name.rstrip('_')}(?=:| [^:]+: )", message)):
            return f"--{word[0].replace('_', '-')}{message[word.end() :]}"
    return message


def say(what: object) -> None:
    """Print text with control characters, which names of strangers may have, as escapes."""
    print(printable(str(what)))


@contextmanager
def ends_with_its_reader() -> Iterator[None]:
    """End a command whose output is read no further (``| head``) without a message, within this context."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        reader_left()


def reader_left() -> NoReturn:
    """End with the status of SIGPIPE, as programs do whose reader has gone; output that is left is dropped."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(READER_LEFT)


def _stop(message: str, status: int) -> NoReturn:
    print(printable(message, keep=""), file=sys.stderr)
    sys.exit(status)
