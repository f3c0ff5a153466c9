"""Capacity that was recorded: a table of bit/s over time, integrated exactly and inverted."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgesim.errors import EdgesimError

Floats = NDArray[np.float64]

_NEARLY = 1.0 - 1e-12
"""Bits that a row completes up to rounding are through at its end, not at the next row that carries anything."""


@dataclass(frozen=True, eq=False)
class CapacityTable:
    """Capacity in steps: row k holds from ``t_s[k]`` to the next row, the last one to ``until_s``.

    The times start at 0 and increase, the capacities are finite and not below 0, at least one is above 0.
    """

    name: str
    """What messages call it: the file it was read from."""
    t_s: Floats
    """Start of each row, [m]."""
    bps: Floats
    """Capacity of each row, [m]."""
    until_s: float
    """End of the last row; inf where it holds for ever."""
    wraps: bool
    """Whether the table begins again at ``until_s``; otherwise nothing is known from there on."""

    def bits_between(self, t0_s: ArrayLike, t1_s: ArrayLike) -> Floats:
        """Bits that the capacity carries from one instant to another, the integral of bps dt.

        Instants are finite, 0 <= ``t0_s`` <= ``t1_s``, scalars or arrays that broadcast; the result has their
        shape. Raises `EdgesimError` where an instant lies beyond the end of a table that does not wrap.
        """
        start_s, stop_s = np.asarray(t0_s, dtype=np.float64), np.asarray(t1_s, dtype=np.float64)
        self._need_known(stop_s)
        return np.asarray(self._bits_until(stop_s) - self._bits_until(start_s))[()]

    def end_s(self, bits: ArrayLike, start_s: ArrayLike) -> Floats:
        """First instant at which the capacity has carried so many bits since ``start_s``.

        ``bits`` >= 0 and ``start_s`` >= 0 are finite scalars or arrays that broadcast; the result has their
        shape, ``start_s`` itself for 0 bits and ``inf`` where a last row of 0 bit/s holds for ever. Raises
        `EdgesimError` where the instant lies beyond the end of a table that does not wrap.
        """
        payload, start = np.broadcast_arrays(np.asarray(bits, dtype=np.float64), np.asarray(start_s, dtype=np.float64))
        self._need_known(start)
        cycles, target = self._cycles_and_bits(start)
        target = target + payload
        if self.wraps:
            # The first instant: a target of whole cycles is met within the last of them, not at the next's start.
            further = np.maximum(np.ceil(target * _NEARLY / self._cycle_bits) - 1.0, 0.0)
            cycles, target = cycles + further, target - further * self._cycle_bits
        row = np.maximum(np.searchsorted(self._bits_at_row, target * _NEARLY, "left") - 1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            within_s = (target - self._bits_at_row[row]) / self.bps[row]
        end = self._cycle_start_s(cycles) + self.t_s[row] + within_s
        end = np.where(payload > 0, np.maximum(end, start), start)
        self._need_known(end)
        return np.asarray(end)[()]

    @cached_property
    def _bits_at_row(self) -> Floats:
        """Bits carried from 0 s to the start of each row, [m]."""
        return np.append(0.0, np.cumsum(np.diff(self.t_s) * self.bps[:-1]))

    @cached_property
    def _cycle_bits(self) -> float:
        """Bits of one run through a table that wraps."""
        return float(self._bits_at_row[-1] + (self.until_s - self.t_s[-1]) * self.bps[-1])

    def _cycle_start_s(self, cycles: Floats) -> Floats:
        return cycles * self.until_s if self.wraps else cycles

    def _cycles_and_bits(self, t_s: Floats) -> tuple[Floats, Floats]:
        """Whole runs through the table before instants, and the bits since the last of them."""
        cycles, phase_s = np.divmod(t_s, self.until_s) if self.wraps else (np.zeros(t_s.shape), t_s)
        row = np.searchsorted(self.t_s, phase_s, "right") - 1
        return np.asarray(cycles), self._bits_at_row[row] + (phase_s - self.t_s[row]) * self.bps[row]

    def _bits_until(self, t_s: Floats) -> Floats:
        cycles, bits = self._cycles_and_bits(t_s)
        return cycles * self._cycle_bits + bits if self.wraps else bits

    def _need_known(self, t_s: Floats) -> None:
        # The slack is for the last bit that ends with the table, up to rounding.
        if not self.wraps and np.any(t_s > self.until_s * (1.0 + 1e-12)):
            raise EdgesimError(
                f"{self.name}: the capacity is known up to {self.until_s:g} s, but is asked for beyond; "
                'give a longer table or after_end = "wrap" or "hold"'
            )
