"""Uploads over pieces of constant gain: bits, ends and least bandwidths as exact sums over the pieces."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.radio.bandwidth import min_bandwidth_hz
from edgesim.radio.capacity import NEARLY
from edgesim.radio.link import ShannonLink

_LN2 = float(np.log(2.0))
_NEWTON_STEPS, _NEWTON_TO = 200, 1e-13


@dataclass(frozen=True, eq=False)
class Pieces:
    """Received powers of some uploads over time, [n, k]: row by row, constant from each edge to the next.

    Uploads with fewer pieces than others end with pieces of no length.
    """

    edges_s: Floats
    """Begins of the pieces and the end of the last one, [n, k + 1]; they never fall, and the end may be inf."""
    rx_power_w: Floats
    """Power received on each piece, above 0, [n, k]."""

    @classmethod
    def of(cls, upload: Integers, begin_s: Floats, end_s: Floats, rx_power_w: Floats) -> Self:
        """Pieces that are given one after another, [m], of the ``upload`` 0, then 1, and so on, in order of time.

        Those of an upload follow without gaps. Neighbours of equal power become one piece.
        """
        kept, first, last = without_repeats(upload, rx_power_w)
        counts = first[1:] - first[:-1]
        row, column = upload[kept], np.arange(len(kept)) - np.repeat(first[:-1], counts)
        most = counts.max()
        edges_s = np.repeat(end_s[last], most + 1).reshape(-1, most + 1)
        power_w = np.repeat(rx_power_w[last], most).reshape(-1, most)
        edges_s[row, column], power_w[row, column] = begin_s[kept], rx_power_w[kept]
        return cls(edges_s, power_w)

    @classmethod
    def together(cls, parts: Sequence[tuple[Sequence[float], Floats]]) -> Self:
        """Pieces of several uploads from the edges and powers of each."""
        most = max((len(power_w) for _, power_w in parts), default=1)
        all_edges_s, all_power_w = np.empty((len(parts), most + 1)), np.ones((len(parts), most))
        for row, (edges_s, power_w) in enumerate(parts):
            count = len(power_w)
            all_edges_s[row, : count + 1], all_edges_s[row, count + 1 :] = edges_s, edges_s[-1]
            all_power_w[row, :count] = power_w
        return cls(all_edges_s, all_power_w)

    def rows(self, rows: Sequence[int]) -> Self:
        """Pieces of some of the uploads, in the order of ``rows``."""
        return type(self)(self.edges_s[rows], self.rx_power_w[rows])

    def joined(self, others: "Pieces") -> Self:
        """Pieces of these uploads, then of others."""
        most = max(self.rx_power_w.shape[1], others.rx_power_w.shape[1])
        parts = self._of_length(most), others._of_length(most)
        edges_s, rx_power_w = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return type(self)(edges_s, rx_power_w)

    def _of_length(self, most: int) -> tuple[Floats, Floats]:
        """Edges and powers with pieces of no length at the end, ``most`` in all."""
        more = most - self.rx_power_w.shape[1]
        if not more:
            return self.edges_s, self.rx_power_w
        ends_s, last_w = self.edges_s[:, -1:], self.rx_power_w[:, -1:]
        longer = np.repeat(ends_s, more, axis=1), np.repeat(last_w, more, axis=1)
        return np.hstack([self.edges_s, longer[0]]), np.hstack([self.rx_power_w, longer[1]])

    def bits(self, link: ShannonLink, bandwidth_hz: Floats, start_s: Floats, end_s: Floats) -> Floats:
        """Bits that bandwidths [n], above 0, carry between two instants, the second one finite, [n]."""
        return self.bits_at(self.rates(link, bandwidth_hz), start_s, end_s)

    def rates(self, link: ShannonLink, bandwidth_hz: Floats) -> Floats:
        """Rates of bandwidths [n], above 0, on each piece, in bit/s, [n, k]."""
        return link.rates(bandwidth_hz[:, None], self.rx_power_w)

    def bits_at(self, rates: Floats, start_s: Floats | float, end_s: Floats | float) -> Floats:
        """Bits carried at `rates` between two instants, the second one finite, [n]."""
        return _sum(rates * self._within_s(start_s, end_s))

    def mean_bps(self, link: ShannonLink, bandwidth_hz: Floats, start_s: Floats, end_s: Floats) -> Floats:
        """Mean rates of bandwidths [n], above 0, between two instants, the second one finite, [n]."""
        return self.bits(link, bandwidth_hz, start_s, end_s) / (end_s - start_s)

    def ends_s(self, link: ShannonLink, bandwidth_hz: Floats, bits: Floats, start_s: Floats) -> Floats:
        """Instants at which bandwidths [n], above 0, have carried ``bits`` since ``start_s``, [n].

        inf where the last piece ends before.
        """
        return self.ends_at(self.rates(link, bandwidth_hz), bits, start_s)

    def ends_at(self, rates: Floats, bits: Floats, start_s: Floats | float) -> Floats:
        """As `ends_s`, at `rates`, [n]."""
        carried = np.cumsum(rates * self._within_s(start_s, np.inf), axis=1)
        # Bits that a piece completes, up to rounding, are sent by its end, not only in a later piece.
        piece = np.count_nonzero(carried < bits[:, None] * NEARLY, axis=1)
        rows, at = np.arange(len(bits)), np.minimum(piece, carried.shape[1] - 1)
        before = np.where(at > 0, carried[rows, np.maximum(at - 1, 0)], 0.0)
        from_s = np.maximum(self.edges_s[rows, at], start_s)
        return np.where(piece < carried.shape[1], from_s + (bits - before) / rates[rows, at], np.inf)

    def least_power_w(self, start_s: Floats, end_s: Floats) -> Floats:
        """Least power received between two instants, [n]."""
        return np.asarray(np.where(self._within_s(start_s, end_s) > 0, self.rx_power_w, np.inf).min(axis=1))

    def changes(self, start_s: Floats, end_s: Floats) -> Booleans:
        """Whether the power changes between two instants, [n]."""
        powers_w = np.where(self._within_s(start_s, end_s) > 0, self.rx_power_w, np.nan)
        return np.asarray(np.fmin.reduce(powers_w, axis=1) < np.fmax.reduce(powers_w, axis=1))

    def least_hz(self, link: ShannonLink, bits: Floats, start_s: Floats, end_s: Floats) -> Floats:
        """Least bandwidths that carry ``bits`` between two instants, the second one finite, [n]; inf where none does.

        They are the roots of f(B) = sum of w r(B, p) over the pieces - bits, w their seconds between the instants and r
        the rate. f rises and is concave, so Newton's method rises to the root and never passes it, begun at the
        bandwidth that would do at the greatest power.
        """
        within_s = self._within_s(start_s, end_s)
        present = within_s > 0
        best_w = np.where(present, self.rx_power_w, 0.0).max(axis=1)
        best_w = np.where(best_w > 0, best_w, self.rx_power_w[:, 0])
        need_hz = np.array(min_bandwidth_hz(bits, end_s - start_s, best_w, link.noise_w_per_hz, link.max_bps_per_hz))
        limit = _sum(within_s * self.rx_power_w) / (link.noise_w_per_hz * _LN2)
        need_hz[limit <= bits] = np.inf
        changes = np.where(present, self.rx_power_w, np.inf).min(axis=1) < best_w
        rows = np.flatnonzero(changes & np.isfinite(need_hz))
        for _ in range(_NEWTON_STEPS):
            if not len(rows):
                break
            power_w, over_s, band_hz = self.rx_power_w[rows], within_s[rows], need_hz[rows, None]
            snr = power_w / (band_hz * link.noise_w_per_hz)
            slopes = (np.log1p(snr) - snr / (1.0 + snr)) / _LN2
            rates, cap_bps = band_hz * np.log1p(snr) / _LN2, link.max_bps_per_hz * band_hz
            slopes = np.where(rates <= cap_bps, slopes, link.max_bps_per_hz)
            step_hz = (bits[rows] - _sum(over_s * np.minimum(rates, cap_bps))) / _sum(over_s * slopes)
            need_hz[rows] += np.maximum(step_hz, 0.0)
            rows = rows[step_hz > _NEWTON_TO * need_hz[rows]]
        return need_hz

    def _within_s(self, start_s: Floats | float, end_s: Floats | float) -> Floats:
        """Seconds of each piece between two instants, [n, k]."""
        begin_s = np.maximum(self.edges_s[:, :-1], np.asarray(start_s)[..., None])
        over_s = np.minimum(self.edges_s[:, 1:], np.asarray(end_s)[..., None])
        # Pieces of no length behind the end of time have no difference.
        return np.asarray(np.subtract(over_s, begin_s, out=np.zeros(begin_s.shape), where=over_s > begin_s))


def without_repeats(upload: Integers, rx_power_w: Floats) -> tuple[Integers, Integers, Integers]:
    """Rows of the pieces [m] of ``upload`` 0, 1, ... that have another power than the one before, [k].

    Returns also where each upload begins among these, and their number, [n + 1], and the last row of each upload, [n].
    """
    begins = np.ones(len(upload) + 1, dtype=bool)
    np.not_equal(upload[1:], upload[:-1], out=begins[1:-1])
    changes = begins.copy()
    changes[1:-1] |= rx_power_w[1:] != rx_power_w[:-1]
    kept = changes.nonzero()[0]
    return kept[:-1], begins[kept].nonzero()[0], begins.nonzero()[0][1:] - 1


def _sum(values: Floats) -> Floats:
    """Sums over the last axis, term by term, so that pieces of no length at the end change no bit."""
    return np.asarray(np.cumsum(values, axis=-1)[..., -1])
