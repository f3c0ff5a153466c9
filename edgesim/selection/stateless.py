"""What policies without memory have in common."""

from typing import Any, ClassVar

from edgesim.arrays import Integers
from edgesim.selection import view
from edgesim.selection.view import Choice, RoundReport


class Stateless:
    """A policy that carries nothing from round to round."""

    Options: ClassVar[type[view.Options]] = view.Options
    looks_at: ClassVar[frozenset[str]] = frozenset()
    state: None = None

    def __init__(self, options: Any, device_count: int, class_count: int) -> None:
        self.options = options

    def hear(self, report: RoundReport) -> None:
        """Take in the outcome of a round: nothing to remember."""


def walk(ids: Integers) -> Choice:
    """Offer every device in the order given: added if it fits the band, skipped if not."""
    if len(ids):
        yield ids
