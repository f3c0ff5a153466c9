"""The errors that users are meant to read."""

import re
from collections.abc import Callable

from edgesim.base.plain_text import printable

_LONGEST_WORD, _LONGEST_MESSAGE = 200, 2_000


class EdgesimError(Exception):
    """Bad input or a run that cannot go on; the message is one line that names the place and the remedy.

    ``fields`` are the config fields that the message names (``round.tmax_s``), from which scenarios derive the names of
    their options. The command line and the scenarios print the message without a traceback and exit with ``status``.
    """

    status = 2

    def __init__(self, message: str | Exception, *fields: str) -> None:
        # Gymnasium raises the error of another process anew, from that error. What a message repeats of files and of
        # arguments may have line breaks.
        super().__init__(shortened(printable(str(message), keep="")))
        self.fields = fields


class Contradiction(EdgesimError, ValueError):  # noqa: N818 - reads as what it is
    """Values of a config that contradict each other, found during validation, which takes a ValueError."""


class ForeignOption(EdgesimError):  # noqa: N818 - reads as what it is
    """An option is given that only another policy, algorithm or model than the chosen one has."""


class OutOfReach(EdgesimError):  # noqa: N818 - reads as what it is
    """No device could upload by the deadline in any of a run's first rounds."""


class NoRunFinished(EdgesimError):  # noqa: N818 - reads as what happened
    """Every run of a study failed."""

    status = 1


class Diverged(EdgesimError):  # noqa: N818 - reads as what happened
    """A loss is no longer a finite number; the run stops and keeps every finished round."""


def refusals(act: Callable[..., object], *arguments: object) -> list[str]:
    """The message of the `EdgesimError` that a function raises; empty if it raises none."""
    try:
        act(*arguments)
    except EdgesimError as error:
        return [str(error)]
    return []


def shortened(message: str) -> str:
    """A message in which what it repeats of the input is not too long to be read."""
    words = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: _cut(word[0], 80, 40), message)
    return words if len(words) <= _LONGEST_MESSAGE else _cut(words, 1_000, 500)


def _cut(text: str, begin: int, end: int) -> str:
    return f"{text[:begin]}...({len(text):,} characters)...{text[-end:]}"
