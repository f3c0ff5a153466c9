"""Who uploads, and with how much of the band: admission of those that the policy offers, then an allocator."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgesim.channels import ALLOCATORS, Request, min_bandwidth_hz
from edgesim.engine.world import World
from edgesim.selection.column import Column
from edgesim.selection.view import RoundView, Selector

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

_SCAN = 64
"""Offers looked at in one scan, to begin with."""


@dataclass(frozen=True)
class Timeline:
    """When each candidate's upload can begin, as the scheduler knows it; seconds from the round's start."""

    ids: Integers
    """Candidates, ascending, [n]."""
    delay_s: Floats | Column
    """What is known of the compute delay, [n]."""
    download_s: float
    decided_s: float | None
    """When the decision falls; None when it falls at the round's start."""

    def ready_s(self, rows: Integers) -> Floats:
        """When the uploads of some candidates (positions) can begin."""
        if self.decided_s is not None:
            return np.full(len(rows), self.decided_s)
        return np.asarray(self.download_s + self.delay_s[rows])


def needs_hz(
    world: World, payload_bits: float, timeline: Timeline, round: int, rows: Integers, tmax_s: float
) -> Floats:
    """Least bandwidths that upload the payloads of some candidates (positions) by the deadline; inf where none does."""
    rx_power_w = world.rx_power_w(timeline.ids[rows], round)
    left_s = tmax_s - timeline.ready_s(rows)
    return min_bandwidth_hz(payload_bits, left_s, rx_power_w, world.environment.noise_w_per_hz)


def admit(selector: Selector, view: RoundView, band_hz: float, count: int | None) -> Integers:
    """Walk the selector's order and take who fits; positions in the view, in order.

    By band: whoever's least bandwidth still fits into ``band_hz``. By count: the first ``count``.
    """
    # A count is a band of that width in which everybody needs 1.
    needs_hz = view.need_hz if count is None else Column(len(view.ids), lambda rows: np.ones(len(rows)))
    limit = band_hz if count is None else float(count)
    taken: list[int] = []
    used = 0.0
    choice = selector.choose(view)
    try:
        offer = next(choice)
        while True:
            if isinstance(offer, np.ndarray):
                rows = np.searchsorted(view.ids, offer)
                fits, used = _fill(needs_hz, rows, used, limit)
                taken += rows[fits].tolist()
                answer: bool | Booleans = fits
            else:
                row = int(np.searchsorted(view.ids, offer))
                need_hz = float(needs_hz[row])
                answer = used + need_hz <= limit
                if answer:
                    taken.append(row)
                    used += need_hz
            if len(taken) == count:
                choice.close()
                break
            offer = choice.send(answer)
    except StopIteration:
        pass
    return np.array(taken, dtype=np.int64)


def _fill(needs_hz: Floats | Column, rows: Integers, used_hz: float, band_hz: float) -> tuple[Booleans, float]:
    """Who fits, walking down an order of rows [n]; and the band used then.

    Steps are as many as fit, not as many as are offered: those in between are passed over by array scans.
    """
    fits = np.zeros(len(rows), dtype=bool)
    start, length = 0, _SCAN
    while start < len(rows):
        ahead = needs_hz[rows[start : start + length]]
        first = 0
        while True:
            allowed = used_hz + ahead[first:] <= band_hz
            if not allowed.any():
                break
            first += int(np.argmax(allowed))
            fits[start + first] = True
            used_hz += float(ahead[first])
            first += 1
        start, length = start + length, 2 * length
    return fits, used_hz


def share(
    world: World,
    payload_bits: float,
    timeline: Timeline,
    need_hz: Column,
    taken: Integers,
    round: int,
    band_hz: float,
) -> Floats:
    """Bandwidths of the devices taken (positions), [S], that share ``band_hz`` by the allocator of the config."""
    if len(taken) == 0:
        return np.empty(0)
    knobs = world.config.round
    request = Request(
        payload_bits=np.full(len(taken), payload_bits),
        ready_s=timeline.ready_s(taken),
        rx_power_w=world.rx_power_w(timeline.ids[taken], round),
        need_hz=need_hz[taken],
        noise_w_per_hz=world.environment.noise_w_per_hz,
        bandwidth_hz=band_hz,
        deadline_s=knobs.tmax_s,
    )
    return ALLOCATORS["equal_finish" if knobs.leftover == "equal_finish" else knobs.allocator](request)
