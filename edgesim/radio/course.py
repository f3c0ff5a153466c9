"""The received power of uploads over time, in pieces, and what the bandwidth of each carries on them."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.radio.capacity import NEARLY
from edgesim.radio.link import ShannonLink


class Planned(NamedTuple):
    """An upload of a bandwidth from an instant on, worked out in advance together with others."""

    bandwidth_hz: float
    start_s: float
    bits: float
    end_s: float
    """Instant at which it has carried the bits, inf if not on the known part; nan where that is left open."""
    stop_s: float
    stop_bits: float
    """Bits that it carries until ``stop_s``; nan where they are left open."""


@dataclass(slots=True, eq=False)
class PowerPieces:
    """Received powers of some uploads, [n], worked out together: piece after piece, upload after upload, [k]."""

    begins_s: Floats
    """Begin of each piece, [k]; it ends where the next one of its upload begins."""
    rx_power_w: Floats
    """Power received on each piece, [k]."""
    first: Integers
    """First piece of each upload, and the number of pieces, [n + 1]."""
    last_s: Floats
    """End of the last piece of each upload, [n]; may be inf."""

    @property
    def since_s(self) -> list[float]:
        """Begin of the first piece of each upload, [n]."""
        begins_s: list[float] = self.begins_s[self.first[:-1]].tolist()
        return begins_s

    def plan(
        self, link: ShannonLink, bandwidth_hz: Floats, bits: Floats, start_s: Floats, stop_s: Floats
    ) -> list[Planned]:
        """Work out the first m uploads, of bandwidths above 0, [m], as their `Course` does one by one.

        ``stop_s`` is the instant until which each may be asked for its bits.
        """
        count = len(bits)
        first, counts = self.first[:count], self.first[1 : count + 1] - self.first[:count]
        upload = np.arange(count).repeat(counts)
        begins_s = self.begins_s[: len(upload)]
        ends_s = np.empty(len(upload))
        ends_s[:-1], ends_s[first + counts - 1] = begins_s[1:], self.last_s[:count]
        starts_s = start_s[upload]
        rates_bps = link.rates(bandwidth_hz[upload], self.rx_power_w[: len(upload)])
        carried = np.zeros((count, int(counts.max())))
        column = np.arange(len(upload)) - first[upload]
        carried[upload, column] = rates_bps * np.maximum(ends_s - np.maximum(begins_s, starts_s), 0.0)
        carried.cumsum(axis=1, out=carried)
        # Pieces of the begin, the end and the last instant; what lies on a single one is left to the course.
        piece = np.bincount(upload[ends_s <= starts_s], minlength=count)
        end_piece = np.add.reduce(carried < (bits * NEARLY)[:, None], axis=1, dtype=np.int64)
        stop_piece = np.bincount(upload[begins_s < stop_s[upload]], minlength=count) - 1
        planned_end_s, planned_bits = np.full((2, count), np.nan)
        ends, goes_on = end_piece > piece, end_piece >= counts
        planned_end_s[ends & goes_on] = np.inf
        rows = (ends & ~goes_on).nonzero()[0]
        at, before = first[rows] + end_piece[rows], carried[rows, end_piece[rows] - 1]
        planned_end_s[rows] = begins_s[at] + (bits[rows] - before) / rates_bps[at]
        rows = (stop_piece > piece).nonzero()[0]
        at, before = first[rows] + stop_piece[rows], carried[rows, stop_piece[rows] - 1]
        planned_bits[rows] = before + rates_bps[at] * (np.minimum(stop_s[rows], ends_s[at]) - begins_s[at])
        columns = bandwidth_hz, start_s, bits, planned_end_s, stop_s, planned_bits
        return list(map(Planned, *(column.tolist() for column in columns)))


@dataclass(slots=True, eq=False)
class Course:
    """Received power of one upload, constant from each edge to the next, as a row of `edgesim.radio.pieces.Pieces`.

    Its sums go by lists, made when they are needed: loops over the few pieces of an upload take a fraction of the time
    of calls of NumPy.
    """

    pieces: PowerPieces
    row: int
    """Position of the upload among the pieces."""
    station: int
    """Station that receives the upload."""
    since_s: float
    """Begin of the first piece."""
    until_s: float
    """Instant up to which all pieces are known."""
    planned: Planned | None = None
    _rated: tuple[float, list[float], list[float], list[float]] | None = None

    @property
    def rx_power_w(self) -> Floats:
        """Power received on each piece, [k]."""
        return self.pieces.rx_power_w[self._own]

    @property
    def edges_s(self) -> list[float]:
        """Begins of the pieces and the end of the last one, [k + 1]; they never fall, and the end may be inf."""
        return [*self.pieces.begins_s[self._own].tolist(), self.pieces.last_s.item(self.row)]

    @property
    def _own(self) -> slice:
        return slice(self.pieces.first.item(self.row), self.pieces.first.item(self.row + 1))

    def is_of(self, station: int, t_s: float) -> bool:
        """Whether this is the course to a station from an instant on."""
        return self.station == station and self.since_s <= t_s < self.until_s

    def bits(self, link: ShannonLink, bandwidth_hz: float, start_s: float, end_s: float) -> float:
        """Bits that the upload's bandwidth carries between two instants, the second one finite."""
        planned = self.planned
        is_planned = planned is not None and planned.stop_s == end_s and planned[:2] == (bandwidth_hz, start_s)
        if planned is not None and is_planned and not math.isnan(planned.stop_bits):
            return planned.stop_bits
        edges_s, rates_bps, piece_bits = self._sums(link, bandwidth_hz)
        piece = bisect_right(edges_s, start_s, 0, len(rates_bps)) - 1
        last = min(bisect_left(edges_s, end_s), len(rates_bps)) - 1
        if piece >= last:
            return link.bits(0, bandwidth_hz, self.rx_power_w.item(piece), start_s, min(end_s, edges_s[piece + 1]))
        carried = rates_bps[piece] * (edges_s[piece + 1] - start_s)
        # Not by `sum`, which from Python 3.12 on adds in another way.
        for bits in piece_bits[piece + 1 : last]:
            carried += bits
        return carried + rates_bps[last] * (min(end_s, edges_s[last + 1]) - edges_s[last])

    def end_s(self, link: ShannonLink, bandwidth_hz: float, bits: float, start_s: float) -> float:
        """Instant at which the upload's bandwidth has carried ``bits`` since ``start_s``.

        inf if the last piece ends before, and at 0 Hz.
        """
        planned = self.planned
        if planned is not None and planned[:3] == (bandwidth_hz, start_s, bits) and not math.isnan(planned.end_s):
            return planned.end_s
        edges_s, rates_bps, piece_bits = self._sums(link, bandwidth_hz)
        piece = bisect_right(edges_s, start_s, 0, len(rates_bps)) - 1
        first_bits = rates_bps[piece] * (edges_s[piece + 1] - start_s)
        if bits <= first_bits or not bandwidth_hz:
            return link.end_s(0, bandwidth_hz, self.rx_power_w.item(piece), bits, start_s)
        # Pieces behind the end change no bit of it: a run that goes on at another instant knows others.
        carried = list(accumulate(piece_bits[piece + 1 :], initial=first_bits))
        # Bits that a piece completes, up to rounding, are sent by its end, not only in a later piece.
        more = bisect_left(carried, bits * NEARLY)
        if more == len(carried):
            return math.inf
        from_s, before = (edges_s[piece + more], carried[more - 1]) if more else (start_s, 0.0)
        return from_s + (bits - before) / rates_bps[piece + more]

    def _sums(self, link: ShannonLink, bandwidth_hz: float) -> tuple[list[float], list[float], list[float]]:
        """Edges of the pieces, [k + 1], the bandwidth's rate on each piece and the bits that it carries there, [k]."""
        if self._rated is None or self._rated[0] != bandwidth_hz:
            edges_s = self.edges_s
            rates = link.rates(np.array(bandwidth_hz), self.rx_power_w) if bandwidth_hz else np.zeros(len(edges_s) - 1)
            rates_bps = rates.tolist()
            piece_bits = [bps * (edges_s[at + 1] - edges_s[at]) for at, bps in enumerate(rates_bps)]
            self._rated = bandwidth_hz, edges_s, rates_bps, piece_bits
        return self._rated[1:]
