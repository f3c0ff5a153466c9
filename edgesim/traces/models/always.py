"""Every device is available all the time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers, repeated
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.models.options import Model


@dataclass(frozen=True)
class Always(Availability):
    """The `Availability` of devices that are always available."""

    device_count: int

    @override
    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """True everywhere, [n]."""
        return np.ones(len(ids), dtype=bool)

    @override
    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float = np.inf) -> Floats:
        """``inf`` everywhere, [n]."""
        return repeated(np.inf, len(ids))

    @override
    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """``t_s`` everywhere, [n]."""
        return np.broadcast_to(np.asarray(t_s, dtype=np.float64), len(ids))

    @override
    def next_time_with(self, count: int, t_s: float) -> float:
        """``t_s``; inf if there are fewer than ``count`` devices at all."""
        return t_s if count <= self.device_count else np.inf

    @override
    def next_change(self, t_s: float) -> float:
        """``inf``: no device comes or leaves."""
        return np.inf


class AlwaysModel(Model):
    """No options."""

    @override
    def make(self, device_count: int, streams: Streams) -> Availability:
        """`Always` for ``device_count`` devices."""
        return Always(device_count)
