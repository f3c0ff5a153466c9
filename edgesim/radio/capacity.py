"""Recorded capacity: bit/s as a step function of time, its exact integral (bits) and the inverse of that."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.errors import EdgesimError

NEARLY = 1.0 - 1e-12
"""Share of a number of bits that counts as all of them, since the integral is rounded."""

Beyond = Literal["refused", "planned", "unmet"]
"""Answers about time beyond the end of a link that does not wrap.

``refused``: with an error. ``planned``: as if the link carried nothing there, so that a run can plan; its clock must
not reach the end. ``unmet``: likewise, and the run is known to stop before the end.
"""


@dataclass(frozen=True, eq=False)
class CapacityTables:
    """Capacities of several links in steps: a row holds up to its link's next row, the last one to ``until_s``.

    Rows are ordered by link, from 0 on, and every link has at least one. The times of a link start at 0 and increase,
    its capacities are finite and not below 0, at least one is above 0.
    """

    name: str
    """Name in messages: the file that the table was read from."""
    link: Integers
    """Link of each row, [m]."""
    t_s: Floats
    """Start of each row, [m]."""
    bps: Floats
    """Capacity of each row, [m]."""
    until_s: Floats
    """End of the last row of each link, [links]; inf where it holds for ever."""
    wraps: bool
    """Whether each link is repeated from its ``until_s`` on; otherwise its capacity is unknown from there on."""
    beyond: Beyond = "refused"

    def bits_between(self, links: ArrayLike, t0_s: ArrayLike, t1_s: ArrayLike) -> Floats:
        """Bits that each link carries from one instant to another, the integral of bps dt.

        Instants are finite, 0 <= ``t0_s`` <= ``t1_s``; all arguments are scalars or arrays that broadcast, and the
        result has their shape. Beyond the end of a link the answer is as `Beyond` says; raises `EdgesimError` if it is
        ``refused``.
        """
        numbers, start_s, stop_s = _broadcast(links, t0_s, t1_s)
        if self.beyond == "refused":
            self._refuse_beyond(numbers, stop_s)
        elif not self.wraps:
            start_s, stop_s = (np.minimum(instants_s, self.until_s[numbers]) for instants_s in (start_s, stop_s))
        return np.asarray(self._bits_until(numbers, stop_s) - self._bits_until(numbers, start_s))[()]

    def end_s(self, links: ArrayLike, bits: ArrayLike, start_s: ArrayLike) -> Floats:
        """First instant at which each link has carried so many bits since ``start_s``.

        ``bits`` >= 0 and ``start_s`` >= 0 are finite; all arguments are scalars or arrays that broadcast. The result
        has their shape. It is ``start_s`` for 0 bits, and ``inf`` if a last row of 0 bit/s holds for ever or if the
        instant lies beyond the end of a link; raises `EdgesimError` for the latter if ``beyond`` is ``refused``.
        """
        numbers, payload, start = _broadcast(links, bits, start_s)
        if self.beyond == "refused":
            self._refuse_beyond(numbers, start)
        cycles, target = self._cycles_and_bits(numbers, start)
        target = target + payload
        if self.wraps:
            # A target of whole cycles is first met within the last of them, not at the start of the next.
            cycle_bits = self._cycle_bits[numbers]
            further = np.maximum(np.ceil(target * NEARLY / cycle_bits) - 1.0, 0.0)
            cycles, target = cycles + further, target - further * cycle_bits
        # Bits that a row completes, up to rounding, are sent by its end, not only when a later row carries more.
        row = self._row_before(self._bit_keys, numbers, target * NEARLY, "left")
        with np.errstate(divide="ignore", invalid="ignore"):
            within_s = (target - self._bits_at_row[row]) / self.bps[row]
        begin_s = cycles * self.until_s[numbers] if self.wraps else cycles
        end = begin_s + self.t_s[row] + within_s
        end = np.where(payload > 0, np.maximum(end, start), start)
        if self.beyond == "refused":
            self._refuse_beyond(numbers, end)
        else:
            end = np.where(self._is_beyond(numbers, end) & (payload > 0), np.inf, end)
        return np.asarray(end)[()]

    def for_run_until(self, stop_at_s: float | None) -> "CapacityTables":
        """Copy of the links for a run, which may plan beyond the end of the recording (`Beyond`).

        ``stop_at_s`` is when the run ends, if known; raises `EdgesimError` if the shortest link ends before it.
        """
        if self.wraps:
            return self
        if stop_at_s is not None:
            shortest = int(np.argmin(self.until_s))
            if stop_at_s > self.until_s[shortest]:
                raise self._unknown(shortest, f"up to {stop_at_s:.10g} s (stop_at_s)")
        return replace(self, beyond="planned" if stop_at_s is None else "unmet")

    def known_until_s(self, links: ArrayLike) -> Floats:
        """Instant that a run's clock must not reach while it uses each of ``links``; inf if there is none."""
        if self.wraps or self.beyond == "unmet":
            return np.full(np.shape(links), np.inf)[()]
        return np.asarray(self.until_s[np.asarray(links)])[()]

    def need_known(self, links: ArrayLike, now_s: float) -> None:
        """Raise `EdgesimError` if the run's clock, ``now_s``, has reached the end of the recording of a link."""
        numbers = np.atleast_1d(np.asarray(links, dtype=np.int64))
        ended = self.known_until_s(numbers) <= now_s
        if ended.any():
            raise self._unknown(int(numbers[np.argmax(ended)]), "later")

    @cached_property
    def _first_row(self) -> Integers:
        """Index of the first row of each link, and the number of rows, [links + 1]."""
        return np.searchsorted(self.link, np.arange(len(self.until_s) + 1))

    @cached_property
    def _bits_at_row(self) -> Floats:
        """Bits that the row's link carries from 0 s to the start of the row, [m]."""
        carried = np.append(np.diff(self.t_s) * self.bps[:-1], 0.0)
        bits = np.zeros(len(self.t_s))
        # Link by link: the difference of two running sums over all links would be dominated by rounding.
        for first, behind in pairwise(self._first_row.tolist()):
            np.cumsum(carried[first : behind - 1], out=bits[first + 1 : behind])
        return bits

    @cached_property
    def _cycle_bits(self) -> Floats:
        """Bits of one run through each link that wraps, [links]."""
        last = self._first_row[1:] - 1
        return np.asarray(self._bits_at_row[last] + (self.until_s - self.t_s[last]) * self.bps[last])

    @cached_property
    def _time_keys(self) -> NDArray[np.complex128]:
        return _keys(self.link, self.t_s)

    @cached_property
    def _bit_keys(self) -> NDArray[np.complex128]:
        return _keys(self.link, self._bits_at_row)

    def _row_before(
        self, keys: NDArray[np.complex128], links: Integers, values: Floats, side: Literal["left", "right"]
    ) -> Integers:
        """Index of the last row of each link with a key below (``left``) or not above (``right``) ``values``.

        The link's first row if it has no such row.
        """
        return np.maximum(np.searchsorted(keys, _keys(links, values), side) - 1, self._first_row[links])

    def _cycles_and_bits(self, links: Integers, t_s: Floats) -> tuple[Floats, Floats]:
        """Whole cycles of each link before ``t_s``, and the bits carried since the end of the last of them."""
        cycles, phase_s = np.divmod(t_s, self.until_s[links]) if self.wraps else (np.zeros(t_s.shape), t_s)
        row = self._row_before(self._time_keys, links, np.asarray(phase_s), "right")
        return np.asarray(cycles), self._bits_at_row[row] + (phase_s - self.t_s[row]) * self.bps[row]

    def _bits_until(self, links: Integers, t_s: Floats) -> Floats:
        cycles, bits = self._cycles_and_bits(links, t_s)
        return cycles * self._cycle_bits[links] + bits if self.wraps else bits

    def _is_beyond(self, links: Integers, t_s: Floats) -> Booleans:
        # The slack allows for rounding when the last bit ends together with the table.
        return np.zeros(np.shape(t_s), dtype=bool) if self.wraps else t_s > self.until_s[links] * (1.0 + 1e-12)

    def _refuse_beyond(self, links: Integers, t_s: Floats) -> None:
        beyond = self._is_beyond(links, t_s)
        if np.any(beyond):
            raise self._unknown(int(np.ravel(links)[np.argmax(beyond)]), "later")

    def _unknown(self, link: int, when: str) -> EdgesimError:
        whose = f"device {link}: " if len(self.until_s) > 1 else ""
        return EdgesimError(
            f"{self.name}: {whose}the capacity is known up to {self.until_s[link]:.10g} s, but needed {when}; "
            'end the run earlier (stop_at_s), or give a longer table or after_end = "wrap" or "hold"'
        )


def one_capacity_table(name: str, t_s: Floats, bps: Floats, until_s: float, wraps: bool) -> CapacityTables:
    """The table of a single link, number 0, whose rows are [m] each."""
    return CapacityTables(name, np.zeros(len(t_s), dtype=np.int64), t_s, bps, np.array([until_s]), wraps)


def _broadcast(links: ArrayLike, first: ArrayLike, second: ArrayLike) -> tuple[Integers, Floats, Floats]:
    numbers, first_values, second_values = np.broadcast_arrays(
        np.asarray(links, dtype=np.int64), np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    )
    return numbers, first_values, second_values


def _keys(links: Integers, values: Floats) -> NDArray[np.complex128]:
    """Sort keys by link and then value: complex numbers, which NumPy orders by real and then imaginary part.

    One binary search thus finds the rows of all links, exact to the last bit of the values.
    """
    keys = np.empty(np.shape(links), dtype=np.complex128)
    keys.real[...], keys.imag[...] = links, values
    return keys
