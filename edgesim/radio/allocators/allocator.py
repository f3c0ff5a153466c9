"""The base of allocators, which share the band of a station among the uploads of a round, and what they are asked."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from edgesim.base.arrays import Floats, Integers
from edgesim.radio.link import Link


@dataclass(frozen=True)
class Request:
    """The uploads of one station and round, one row each, [S >= 1]; instants count from the round's start."""

    ids: Integers
    payload_bits: Floats
    ready_s: Floats
    """Instant at which each upload can begin, in s, to the scheduler's knowledge."""
    rx_power_w: Floats
    """Received power that each upload is planned with."""
    need_hz: Floats
    """Least bandwidth that meets the deadline; inf where none does."""
    link: Link
    t_start_s: float
    """The round's start on the run's clock."""
    bandwidth_hz: float
    """The band to share."""
    deadline_s: float

    def least_hz(self, finish_s: float) -> Floats:
        """Least bandwidths that end the uploads by an instant, [S]; inf where none does."""
        return self.link.least_hz(self.ids, self.payload_bits, self.ready_s, finish_s, self.rx_power_w, self.t_start_s)


class Allocator(ABC):
    """A rule that shares a band; it has no options, and no state from round to round."""

    @abstractmethod
    def allocate(self, request: Request) -> Floats:
        """Bandwidth of each upload in Hz, [S]; together they are at most ``request.bandwidth_hz``."""
