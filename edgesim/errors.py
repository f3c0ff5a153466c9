"""The one kind of error that a user is meant to read."""


class EdgesimError(Exception):
    """Bad input or a run that cannot go on; the message is one line that names the place and the remedy.

    The command line and the scenarios print the message without a traceback and end with ``status``.
    """

    status = 2


class NoRunFinished(EdgesimError):  # noqa: N818 - reads as what happened
    """Every run of a study failed."""

    status = 1


class Diverged(EdgesimError):  # noqa: N818 - reads as what happened
    """A loss is no longer a finite number; the run stops and keeps every finished round."""
