"""The received power of one upload over time, in pieces, and what a bandwidth carries on it."""

from dataclasses import dataclass, field

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.radio.capacity import NEARLY
from edgesim.radio.link import ShannonLink


@dataclass(slots=True, eq=False)
class Course:
    """Received power of one upload, constant from each edge to the next, as a row of `edgesim.radio.pieces.Pieces`."""

    edges_s: Floats
    """Begins of the pieces and the end of the last one, [k + 1]; the end may be inf."""
    rx_power_w: Floats
    """Power received on each piece, [k]."""
    until_s: float
    """Instant up to which all pieces are known."""
    _hz: float = field(default=0.0, init=False)
    _rates: Floats = field(default_factory=lambda: np.empty(0), init=False)
    """Rates of the bandwidth that was asked about last, [k]."""

    def bits(self, link: ShannonLink, bandwidth_hz: float, start_s: float, end_s: float) -> float:
        """Bits that a bandwidth carries between two instants, the second one finite."""
        piece = self._piece(start_s)
        if end_s <= self.edges_s.item(piece + 1):
            return link.bits(0, bandwidth_hz, self.rx_power_w.item(piece), start_s, end_s)
        last = self._piece(end_s)
        edges_s = self.edges_s[piece : last + 2].copy()
        edges_s[0], edges_s[-1] = start_s, min(end_s, edges_s.item(-1))
        carried = np.cumsum(self._rates_of(link, bandwidth_hz)[piece : last + 1] * (edges_s[1:] - edges_s[:-1]))
        return carried.item(-1)

    def end_s(self, link: ShannonLink, bandwidth_hz: float, bits: float, start_s: float) -> float:
        """Instant at which a bandwidth has carried ``bits`` since ``start_s``; inf if the last piece ends before."""
        piece = self._piece(start_s)
        end_s = link.end_s(0, bandwidth_hz, self.rx_power_w.item(piece), bits, start_s)
        # A run that goes on at another instant knows other pieces behind this one; its answer has the same bits.
        if end_s <= self.edges_s.item(piece + 1):
            return end_s
        edges_s = self.edges_s[piece:].copy()
        edges_s[0] = start_s
        rates = self._rates_of(link, bandwidth_hz)[piece:]
        carried = np.cumsum(rates * (edges_s[1:] - edges_s[:-1]))
        # Bits that a piece completes, up to rounding, are sent by its end, not only in a later piece.
        ends_in = int(carried.searchsorted(bits * NEARLY))
        if ends_in == len(rates):
            return float("inf")
        before = carried.item(ends_in - 1) if ends_in else 0.0
        return edges_s.item(ends_in) + (bits - before) / rates.item(ends_in)

    def _piece(self, t_s: float) -> int:
        """Number of the piece at an instant; that of the last one at the very end."""
        return min(int(self.edges_s.searchsorted(t_s, "right")), len(self.rx_power_w)) - 1

    def _rates_of(self, link: ShannonLink, bandwidth_hz: float) -> Floats:
        if self._hz != bandwidth_hz:
            self._hz, self._rates = bandwidth_hz, link.rates(np.array(bandwidth_hz), self.rx_power_w)
        return self._rates
