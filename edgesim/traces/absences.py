"""Spans of time in which devices were absent from a run, for plots, by the availability of the run."""

from typing import NamedTuple

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.slots import Slots

MOST_DRAWS = 2**22
"""Devices times slots above which the absences of a run take too long to look up."""
_MOST_STAYS = 5_000
"""Most stays of one device that are followed."""
_AT_ONCE = 2**18


class Absences(NamedTuple):
    """Spans of time without a device, by device and start."""

    device: Integers
    t_start_s: Floats
    t_end_s: Floats


def absences(availability: Availability, device_count: int, end_s: float) -> Absences | None:
    """Spans of time from 0 to ``end_s`` in which devices are absent; None where looking them up would take long.

    Availability by rounds must know all slots that have begun. Raises `EdgesimError` as the availability does.
    """
    if isinstance(availability, ByRounds):
        edges_s = np.append(availability.starts_s, end_s)
    elif isinstance(availability, Slots):
        # At least one draw is made for each device.
        count = min(np.ceil(end_s / availability.slot_s), MOST_DRAWS)
        edges_s = np.minimum(availability.slot_s * np.arange(int(count) + 1), end_s)
    else:
        return _by_stays(availability, device_count, end_s)
    slots = len(edges_s) - 1
    if slots * device_count > MOST_DRAWS:
        return None
    block, ids = max(1, _AT_ONCE // device_count), np.arange(device_count, dtype=np.int64)
    present = [
        availability.in_slot(np.tile(ids, len(piece)), np.repeat(piece, device_count)).reshape(len(piece), device_count)
        for piece in np.split(np.arange(slots), range(block, slots, block))
    ]
    return _spans(~np.concatenate(present), edges_s)


def _spans(absent: Booleans, edges_s: Floats) -> Absences:
    """Spans of absence, True in a matrix [slots, devices], of slots between edges [slots + 1]."""
    none = np.zeros((1, absent.shape[1]), dtype=np.int8)
    change = np.diff(absent.astype(np.int8), axis=0, prepend=none, append=none)
    # Transposed, so that starts and ends are sorted by device and match.
    device, start = np.nonzero(change.T == 1)
    _, end = np.nonzero(change.T == -1)
    return Absences(device, edges_s[start], edges_s[end])


def _by_stays(availability: Availability, device_count: int, end_s: float) -> Absences | None:
    """Spans of absence between the stays of all devices, looked up stay by stay; None for too many stays."""
    ids, t_s = np.arange(device_count, dtype=np.int64), np.zeros(device_count)
    gaps: list[tuple[Integers, Floats, Floats]] = []
    for _ in range(_MOST_STAYS):
        back_s = np.minimum(availability.next_available(ids, t_s), end_s)
        gone = back_s > t_s
        gaps.append((ids[gone], t_s[gone], back_s[gone]))
        here = back_s < end_s
        ids, back_s = ids[here], back_s[here]
        t_s = availability.available_until(ids, back_s, end_s)
        on = t_s < end_s
        ids, t_s = ids[on], t_s[on]
        if not len(ids):
            device, start_s, stop_s = (np.concatenate(column) for column in zip(*gaps, strict=True))
            order = np.lexsort((start_s, device))
            return Absences(device[order], start_s[order], stop_s[order])
    return None
