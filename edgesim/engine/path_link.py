"""Plans of uploads along paths, by what the scheduler knows of them (``round.path_knowledge``)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.engine.moving_places import MovingPlaces
from edgesim.radio.link import ShannonLink
from edgesim.radio.pieces import Pieces

PathKnowledge = Literal["present", "straight", "known", "worst"]


@dataclass(frozen=True, eq=False)
class PathLink:
    """The uplink of a station as a plan has it for devices that move, decided at one instant.

    ``straight``: each device keeps its present velocity for ever; ``known``: its path is known; ``worst``: of its path
    the least gain. An upload whose gain does not change is planned as that of a device that stands still.
    """

    moving: MovingPlaces
    station: int
    knowledge: PathKnowledge
    decided_s: float
    draws: Callable[[Integers], int | Integers]
    """Numbers of the draws of devices, by their ids."""
    power_w: Callable[[Integers, Floats], Floats]
    """Received powers that devices are planned on, by their ids and their gains."""

    @property
    def _link(self) -> ShannonLink:
        return self.moving.link

    def least_hz(
        self, ids: Integers, bits: Floats, start_s: Floats, end_s: float, rx_power_w: Floats, origin_s: float
    ) -> Floats:
        """Least bandwidths along the paths, [n]; inf where none does."""
        need_hz = self._link.least_hz(ids, bits, start_s, end_s, rx_power_w, origin_s)
        rows = np.flatnonzero(np.less(start_s, end_s))
        if not len(rows):
            return need_hz
        begins_s, ends_s = start_s[rows], np.full(len(rows), end_s)
        pieces = self._pieces(ids[rows], begins_s, ends_s, origin_s)
        # One gain all along may be another than that at the decision.
        least_w = pieces.least_power_w(begins_s, ends_s)
        least_hz = self._link.least_hz(ids[rows], bits[rows], begins_s, end_s, least_w, origin_s)
        if self.knowledge != "worst":
            changes = pieces.changes(begins_s, ends_s)
            least_hz = np.where(changes, pieces.least_hz(self._link, bits[rows], begins_s, ends_s), least_hz)
        need_hz[rows] = least_hz
        return need_hz

    def mean_bps(self, ids: Integers, bandwidth_hz: float, rx_power_w: Floats, start_s: float, end_s: float) -> Floats:
        """Mean rates along the paths, [n]."""
        begins_s, ends_s = np.full(len(ids), 0.0), np.full(len(ids), end_s - start_s)
        pieces = self._pieces(ids, begins_s, ends_s, start_s)
        least_w = pieces.least_power_w(begins_s, ends_s)
        least_bps = self._link.mean_bps(ids, bandwidth_hz, least_w, start_s, end_s)
        if self.knowledge == "worst":
            return least_bps
        band_hz = np.full(len(ids), bandwidth_hz)
        mean_bps = pieces.mean_bps(self._link, band_hz, begins_s, ends_s)
        return np.where(pieces.changes(begins_s, ends_s), mean_bps, least_bps)

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """Mean rate times airtime."""
        ids, power_w = np.array([device]), np.array([rx_power_w])
        return float(self.mean_bps(ids, bandwidth_hz, power_w, start_s, end_s)[0]) * (end_s - start_s)

    def _pieces(self, ids: Integers, start_s: Floats, end_s: Floats, origin_s: float) -> Pieces:
        """Powers planned on between two instants that count from ``origin_s``, as the pieces do, [n, k]."""
        station, draws = np.full(len(ids), self.station), self.draws(ids)
        between = origin_s + start_s, np.maximum(origin_s + end_s, np.nextafter(origin_s + start_s, np.inf))
        if self.knowledge == "straight":
            along = self.moving.gains_ahead(ids, draws, station, self.decided_s, *between)
        else:
            along = self.moving.gains_along(ids, draws, station, *between)
        power_w = self.power_w(ids[along.place], along.gain)
        return Pieces.of(along.place, along.begin_s - origin_s, along.end_s - origin_s, power_w)
