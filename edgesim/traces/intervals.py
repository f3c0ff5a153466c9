"""Available periods of many devices as arrays, sorted, merged and clipped."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Floats, Integers
from edgesim.base.device_keys import Texts
from edgesim.base.errors import EdgesimError
from edgesim.base.table_facts import LONGEST_S, Unobserved


@dataclass(frozen=True)
class Intervals:
    """Half-open periods [start_s, end_s), one row each, by device and then by time; none touch or overlap."""

    device: Integers
    start_s: Floats
    end_s: Floats
    length_s: Floats
    """Length of each device's recording, [devices]; no period reaches beyond. ``inf`` for one that never ends."""
    name: str = "the trace"
    """Name in messages."""
    unobserved_s: Floats | None = None
    """Seconds in which each device was not observed, [devices]; None if the recording does not say."""
    unobserved_as: Unobserved = "absent"
    """Whether the periods count that time as absent or present."""
    keys: Texts | None = None
    """Key of each device in the recording, [devices], all different; None if it has no keys."""
    models: Texts | None = None
    """Model of each device, [devices], empty if not known; None if the recording has no models."""

    @property
    def device_count(self) -> int:
        """Devices of the recording, those that are never available included."""
        return len(self.length_s)

    @property
    def unobserved_share(self) -> float:
        """Share of the devices' time in which they were not observed."""
        return 0.0 if self.unobserved_s is None else float(np.sum(self.unobserved_s) / np.sum(self.length_s))

    @property
    def online_s(self) -> Floats:
        """Time for which each device is available, in s, [devices]."""
        online_s: Floats = np.bincount(self.device, self.end_s - self.start_s, self.device_count).astype(np.float64)
        return online_s


def counts_over_time(start_s: Floats, end_s: Floats) -> tuple[Floats, Integers]:
    """Instants at which the number of devices online changes, and that number from there on, [k] each.

    The periods, [n], come in any order. The first instant is 0; starts and ends of one instant are one change.
    """
    edges_s = np.concatenate([[0.0], start_s, end_s])
    steps = np.repeat([0, 1, -1], [1, len(start_s), len(end_s)])
    instants_s, place = np.unique(edges_s, return_inverse=True)
    counts = np.cumsum(np.bincount(place, steps, minlength=len(instants_s)).astype(np.int64))
    changes = np.append(True, np.diff(counts) != 0)
    return instants_s[changes], counts[changes]


def check_length(length_s: float | None) -> None:
    """Raise `EdgesimError` for a length, given by the user, that no recording has."""
    if length_s is not None and not 0 < length_s <= LONGEST_S:
        raise EdgesimError(f"length_s: expected seconds above 0, up to {LONGEST_S:g} (got {length_s:g})")


def joined(
    device: Integers, start_s: Floats, end_s: Floats, length_s: ArrayLike, device_count: int, name: str = "the trace"
) -> Intervals:
    """Periods in any order, overlapping or not, as `Intervals` of ``device_count`` devices.

    ``length_s`` is one number or [devices]. What lies outside of [0, ``length_s``) is cut off, empty periods go.
    """
    lengths_s = np.broadcast_to(np.asarray(length_s, dtype=np.float64), device_count)
    start_s = np.maximum(start_s, 0.0)
    end_s = np.minimum(end_s, length_s if np.ndim(length_s) == 0 else lengths_s[device])
    # Rows are taken by their numbers, in half the time that a mask of them takes; long recordings only if they must be.
    holds = end_s > start_s
    if not holds.all():
        rows = np.flatnonzero(holds)
        device, start_s, end_s = device[rows], start_s[rows], end_s[rows]
    return Intervals(*merged(device, start_s, end_s), lengths_s, name)


def merged(device: Integers, start_s: Floats, end_s: Floats) -> tuple[Integers, Floats, Floats]:
    """Periods in any order, overlapping or not but none of them empty, as the columns of `Intervals`."""
    # Rows mostly come by time for each device, and to sort by two keys is dear.
    if np.any(device[1:] < device[:-1]):
        rows = np.argsort(device, kind="stable")
        device, start_s, end_s = device[rows], start_s[rows], end_s[rows]
    continued = _continued(device, start_s, end_s)
    if np.any(start_s[continued + 1] < start_s[continued]):
        order = np.lexsort((start_s, device))
        start_s, end_s = start_s[order], end_s[order]
        continued = _continued(device, start_s, end_s)
    if np.any(start_s[continued + 1] < end_s[continued]):
        end_s = _latest_end_so_far_s(device, end_s)
        continued = _continued(device, start_s, end_s)
    if len(continued):
        return np.delete(device, continued + 1), np.delete(start_s, continued + 1), np.delete(end_s, continued)
    return device, start_s, end_s


def _continued(device: Integers, start_s: Floats, end_s: Floats) -> Integers:
    """Rows whose next row is of the same device and begins at or before their end, [k]."""
    return np.flatnonzero((device[1:] == device[:-1]) & (start_s[1:] <= end_s[:-1]))


def _latest_end_so_far_s(device: Integers, end_s: Floats) -> Floats:
    """Running maximum of the ends within each device, for rows by device and start."""
    # Ranks, not seconds, are shifted from device to device: shifted seconds would lose their last bits.
    sorted_s = np.unique(end_s)
    rank = np.searchsorted(sorted_s, end_s) + device * len(sorted_s)
    return np.asarray(sorted_s[np.maximum.accumulate(rank) - device * len(sorted_s)])


def cycles(start_s: Floats, stay_s: float, cycle_s: float) -> Intervals:
    """One cycle of devices that stay ``stay_s`` from their starts on; what passes its end continues at its start."""
    device = np.tile(np.arange(len(start_s), dtype=np.int64), 2)
    starts_s = np.concatenate([start_s, start_s - cycle_s])
    return joined(device, starts_s, starts_s + stay_s, cycle_s, len(start_s), "availability")


def complement(intervals: Intervals) -> Intervals:
    """Everything of [0, length) that the periods leave out; the lengths must be finite."""
    count = intervals.device_count
    devices = np.arange(count, dtype=np.int64)
    # A period of no length at either end of each recording stands for the bounds of the gaps there.
    device = np.concatenate([devices, intervals.device, devices])
    start_s = np.concatenate([np.zeros(count), intervals.start_s, intervals.length_s])
    end_s = np.concatenate([np.zeros(count), intervals.end_s, intervals.length_s])
    order = np.lexsort((end_s, start_s, device))
    device, start_s, end_s = device[order], start_s[order], end_s[order]
    same = device[1:] == device[:-1]
    return joined(device[1:][same], end_s[:-1][same], start_s[1:][same], intervals.length_s, count, intervals.name)


def first_devices(intervals: Intervals, count: int) -> Intervals:
    """The recordings of the devices 0 to ``count`` - 1 alone."""
    last = int(np.searchsorted(intervals.device, count))
    return _subset(intervals, intervals.device[:last], slice(last), slice(count))


def renumbered(intervals: Intervals, order: Integers) -> Intervals:
    """Recordings with new device numbers: device k was device ``order[k]``, a permutation."""
    number = np.argsort(order)[intervals.device]
    rows = np.argsort(number, kind="stable")
    return _subset(intervals, number[rows], rows, order)


def _subset(intervals: Intervals, device: Integers, rows: Integers | slice, devices: Integers | slice) -> Intervals:
    """Periods of some ``rows``, whose devices have the numbers ``device``, with the facts on some ``devices``."""
    of_devices = {name: getattr(intervals, name) for name in ("length_s", "unobserved_s", "keys", "models")}
    known: dict[str, Any] = {name: None if column is None else column[devices] for name, column in of_devices.items()}
    return replace(intervals, device=device, start_s=intervals.start_s[rows], end_s=intervals.end_s[rows], **known)
