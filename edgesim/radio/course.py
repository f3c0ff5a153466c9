"""The received power of one upload over time, in pieces, and what its bandwidth carries on it."""

import math
from bisect import bisect_right
from dataclasses import dataclass

from edgesim.radio.capacity import NEARLY
from edgesim.radio.link import ShannonLink


@dataclass(slots=True, eq=False)
class Course:
    """Received power of one upload, constant from each edge to the next, as a row of `edgesim.radio.pieces.Pieces`.

    Its columns are lists: loops over the few pieces of an upload take a fraction of the time of calls of NumPy.
    """

    edges_s: list[float]
    """Begins of the pieces and the end of the last one, [k + 1]; they never fall, and the end may be inf."""
    rx_power_w: list[float]
    """Power received on each piece, [k]."""
    rates_bps: list[float]
    """Rate of the upload's bandwidth on each piece, [k]."""
    until_s: float
    """Instant up to which all pieces are known."""

    def bits(self, link: ShannonLink, bandwidth_hz: float, start_s: float, end_s: float) -> float:
        """Bits that the upload's bandwidth carries between two instants, the second one finite."""
        piece = bisect_right(self.edges_s, start_s, 0, len(self.rates_bps)) - 1
        if end_s <= self.edges_s[piece + 1]:
            return link.bits(0, bandwidth_hz, self.rx_power_w[piece], start_s, end_s)
        carried, from_s = 0.0, start_s
        for rate_bps, over_s in zip(self.rates_bps[piece:], self.edges_s[piece + 1 :], strict=True):
            if over_s >= end_s:
                return carried + rate_bps * (end_s - from_s)
            carried += rate_bps * (over_s - from_s)
            from_s = over_s
        return carried

    def end_s(self, link: ShannonLink, bandwidth_hz: float, bits: float, start_s: float) -> float:
        """Instant at which the upload's bandwidth has carried ``bits`` since ``start_s``.

        inf if the last piece ends before.
        """
        piece = bisect_right(self.edges_s, start_s, 0, len(self.rates_bps)) - 1
        if bits <= self.rates_bps[piece] * (self.edges_s[piece + 1] - start_s):
            return link.end_s(0, bandwidth_hz, self.rx_power_w[piece], bits, start_s)
        # Pieces behind the end change no bit of it: a run that goes on at another instant knows others.
        carried, from_s = 0.0, start_s
        for rate_bps, over_s in zip(self.rates_bps[piece:], self.edges_s[piece + 1 :], strict=True):
            by_then = carried + rate_bps * (over_s - from_s)
            # Bits that a piece completes, up to rounding, are sent by its end, not only in a later piece.
            if by_then >= bits * NEARLY:
                return from_s + (bits - carried) / rate_bps
            carried, from_s = by_then, over_s
        return math.inf
