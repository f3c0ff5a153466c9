"""The base of allocators, which share the band of a station among the uploads of a round."""

from abc import ABC, abstractmethod

from edgesim.base.arrays import Floats
from edgesim.radio.allocators.request import Request


class Allocator(ABC):
    """A rule that shares a band; it has no options, and no state from round to round."""

    @abstractmethod
    def allocate(self, request: Request) -> Floats:
        """Bandwidth of each upload in Hz, [S]; together they are at most ``request.bandwidth_hz``."""
