"""Who uploads, and with how much of the band: admission of those that the policy offers, then an allocator."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgesim.channels import ALLOCATORS, Request, min_bandwidth_hz
from edgesim.config import RoundConfig
from edgesim.engine.world import World
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
    delay_s: Floats
    """What is known of the compute delay, [n]."""
    ready_s: Floats
    """When the upload can begin, [n]."""
    decided_s: float
    """When the decision falls; inf when it falls with the last report, which is not known beforehand."""


def foresee(config: RoundConfig, ids: Integers, compute_s: Floats, planned_s: Floats | None) -> Timeline:
    """The timeline under `known` (the draws) or `planned` (``planned_s``, the quantiles): decided at the start."""
    delay_s = compute_s if planned_s is None else planned_s
    return Timeline(ids, delay_s, config.download_s + delay_s, 0.0)


def hear_reports(ids: Integers, compute_s: Floats, decided_s: float) -> Timeline:
    """The timeline under `reported`: those who reported by the decision upload from then on."""
    return Timeline(ids, compute_s, np.full(len(ids), decided_s), decided_s)


def needs_hz(world: World, payload_bits: float, timeline: Timeline, round: int) -> Floats:
    """Least bandwidth that uploads each candidate's payload by the deadline, [n]; inf where none does."""
    left_s = world.config.round.tmax_s - timeline.ready_s
    rx_power_w = world.rx_power_w(timeline.ids, round)
    return min_bandwidth_hz(payload_bits, left_s, rx_power_w, world.environment.noise_w_per_hz)


def admit(selector: Selector, view: RoundView, band_hz: float, count: int | None) -> Integers:
    """Walk the selector's order and take who fits; positions in the view, in order.

    By band: whoever's least bandwidth still fits into ``band_hz``. By count: the first ``count``.
    """
    # A count is a band of that width in which everybody needs 1.
    needs_hz, band_hz = (view.need_hz, band_hz) if count is None else (np.ones(len(view.ids)), float(count))
    taken: list[int] = []
    used_hz = 0.0
    choice = selector.choose(view)
    try:
        offer = next(choice)
        while True:
            if isinstance(offer, np.ndarray):
                rows = np.searchsorted(view.ids, offer)
                fits, used_hz = _fill(needs_hz[rows], used_hz, band_hz)
                taken += rows[fits].tolist()
                offer = choice.send(fits)
            else:
                row = int(np.searchsorted(view.ids, offer))
                alone = used_hz + float(needs_hz[row]) <= band_hz
                if alone:
                    taken.append(row)
                    used_hz += float(needs_hz[row])
                offer = choice.send(alone)
    except StopIteration:
        return np.array(taken, dtype=np.int64)


def _fill(needs_hz: Floats, used_hz: float, band_hz: float) -> tuple[Booleans, float]:
    """Who fits, walking down an order of needs [n]; and the band used then.

    Steps are as many as fit, not as many as are offered: those in between are passed over by array scans.
    """
    fits = np.zeros(len(needs_hz), dtype=bool)
    start, length = 0, _SCAN
    while start < len(needs_hz):
        ahead = needs_hz[start : start + length]
        first = int(np.argmax(used_hz + ahead <= band_hz))
        if used_hz + ahead[first] <= band_hz:
            fits[start + first] = True
            used_hz += float(ahead[first])
            start, length = start + first + 1, _SCAN
        else:
            start, length = start + length, 2 * length
    return fits, used_hz


def share(
    world: World, payload_bits: float, timeline: Timeline, need_hz: Floats, taken: Integers, round: int
) -> Floats:
    """Bandwidths of the devices taken (positions), [S], by the allocator of the config."""
    if len(taken) == 0:
        return np.empty(0)
    knobs = world.config.round
    request = Request(
        payload_bits=np.full(len(taken), payload_bits),
        ready_s=timeline.ready_s[taken],
        rx_power_w=world.rx_power_w(timeline.ids[taken], round),
        need_hz=need_hz[taken],
        noise_w_per_hz=world.environment.noise_w_per_hz,
        bandwidth_hz=world.config.radio.bandwidth_hz,
        deadline_s=knobs.tmax_s,
    )
    return ALLOCATORS["equal_finish" if knobs.leftover == "equal_finish" else knobs.allocator](request)
