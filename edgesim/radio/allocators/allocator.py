"""The base of allocators, which share the band of a station among the uploads of a round, and what they are asked."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.radio.link import PlannedLink


@dataclass(frozen=True)
class Sizes:
    """Sizes among which the allocator may choose, where they follow the channel (``upload.size = "fit"``)."""

    bits: Callable[[int], Floats]
    """Bits of each upload with a setting of the codec, [S]."""
    weight: Floats
    """Weight of each update in their mean, up to a common factor, as it is expected, [S]."""


@dataclass(frozen=True)
class Request:
    """The uploads of one station and round, one row each, [S >= 1]; instants count from the round's start."""

    ids: Integers
    """Device of each upload, [S]."""
    payload_bits: Floats
    """Bits of each upload, [S]."""
    ready_s: Floats
    """Instant at which each upload can begin, [S], to the scheduler's knowledge."""
    rx_power_w: Floats
    """Received power that each upload is planned with, [S]."""
    need_hz: Floats
    """Least bandwidth that meets the deadline, [S]; inf where none does."""
    link: PlannedLink
    """Link by which uploads are planned."""
    t_start_s: float
    """The round's start on the run's clock."""
    bandwidth_hz: float
    """The band to share."""
    deadline_s: float
    """Instant by which uploads have to end."""
    sizes: Sizes | None = None
    """None where sizes are known: `payload_bits`; else these are the smallest ones."""

    def least_hz(self, finish_s: float, bits: float | Floats | None = None) -> Floats:
        """Least bandwidths that end the uploads by an instant, [S]; inf where none does.

        Uploads take so many ``bits``, each or all, [S]; `payload_bits` when absent.
        """
        sent = self.payload_bits if bits is None else np.broadcast_to(bits, self.payload_bits.shape)
        return self.link.least_hz(self.ids, sent, self.ready_s, finish_s, self.rx_power_w, self.t_start_s)

    def rows(self, which: Booleans) -> "Request":
        """Some of the uploads, without their sizes; the band is that of all."""
        names = "ids", "payload_bits", "ready_s", "rx_power_w", "need_hz"
        return replace(self, **{name: getattr(self, name)[which] for name in names}, sizes=None)


class Allocator(ABC):
    """A rule that shares a band; it has no options, and no state from round to round."""

    @abstractmethod
    def allocate(self, request: Request) -> Floats:
        """Bandwidth of each upload in Hz, [S]; together they are at most ``request.bandwidth_hz``."""
