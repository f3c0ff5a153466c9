"""The base of policies without memory."""

from typing import Any

from edgesim.base.arrays import Integers
from edgesim.selection.view import Choice, Selector


class Stateless(Selector):
    """A policy that remembers nothing from round to round."""

    state: None = None

    def __init__(self, options: Any, device_count: int, class_count: int) -> None:
        self.options = options


def walk(ids: Integers) -> Choice:
    """Offer every device in the order given: added if it fits the band, skipped if not."""
    if len(ids):
        yield ids
