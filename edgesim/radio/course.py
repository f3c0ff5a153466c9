"""The received power of one upload over time, in pieces, and what its bandwidth carries on it."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate

from edgesim.base.arrays import Floats
from edgesim.radio.capacity import NEARLY
from edgesim.radio.link import ShannonLink


@dataclass(slots=True, eq=False)
class Course:
    """Received power of one upload, constant from each edge to the next, as a row of `edgesim.radio.pieces.Pieces`.

    Its columns are lists: loops over the few pieces of an upload take a fraction of the time of calls of NumPy.
    """

    edges_s: list[float]
    """Begins of the pieces and the end of the last one, [k + 1]; they never fall, and the end may be inf."""
    rx_power_w: Floats
    """Power received on each piece, [k]."""
    rates_bps: list[float]
    """Rate of the upload's bandwidth on each piece, [k]."""
    piece_bits: list[float]
    """Bits that the upload's bandwidth carries on each whole piece, [k]."""
    until_s: float
    """Instant up to which all pieces are known."""

    def bits(self, link: ShannonLink, bandwidth_hz: float, start_s: float, end_s: float) -> float:
        """Bits that the upload's bandwidth carries between two instants, the second one finite."""
        piece = bisect_right(self.edges_s, start_s, 0, len(self.rates_bps)) - 1
        last = min(bisect_left(self.edges_s, end_s), len(self.rates_bps)) - 1
        if piece >= last:
            return link.bits(0, bandwidth_hz, self.rx_power_w.item(piece), start_s, min(end_s, self.edges_s[piece + 1]))
        carried = self.rates_bps[piece] * (self.edges_s[piece + 1] - start_s)
        # Not by `sum`, which from Python 3.12 on adds in another way.
        for bits in self.piece_bits[piece + 1 : last]:
            carried += bits
        return carried + self.rates_bps[last] * (min(end_s, self.edges_s[last + 1]) - self.edges_s[last])

    def end_s(self, link: ShannonLink, bandwidth_hz: float, bits: float, start_s: float) -> float:
        """Instant at which the upload's bandwidth has carried ``bits`` since ``start_s``.

        inf if the last piece ends before, and at 0 Hz.
        """
        piece = bisect_right(self.edges_s, start_s, 0, len(self.rates_bps)) - 1
        first_bits = self.rates_bps[piece] * (self.edges_s[piece + 1] - start_s)
        if bits <= first_bits or not bandwidth_hz:
            return link.end_s(0, bandwidth_hz, self.rx_power_w.item(piece), bits, start_s)
        # Pieces behind the end change no bit of it: a run that goes on at another instant knows others.
        carried = list(accumulate(self.piece_bits[piece + 1 :], initial=first_bits))
        # Bits that a piece completes, up to rounding, are sent by its end, not only in a later piece.
        more = bisect_left(carried, bits * NEARLY)
        if more == len(carried):
            return math.inf
        from_s, before = (self.edges_s[piece + more], carried[more - 1]) if more else (start_s, 0.0)
        return from_s + (bits - before) / self.rates_bps[piece + more]
