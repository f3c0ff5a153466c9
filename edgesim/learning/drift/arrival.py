"""Samples that arrive: each device's data set grows by a Poisson process, or always holds the newest samples."""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.drift.law import Setting
from edgesim.learning.drift.moving import Drawn, Moving, PooledLaw
from edgesim.learning.drift.pools import Fleet, make_fleet, walks


class SampleArrival(PooledLaw):
    """Growth from ``data.samples_per_device`` samples, by a new one at each arrival until the pool is empty."""

    rate_per_s: float = Field(gt=0, le=1e6)
    """Mean number of samples that arrive at each device in a second."""
    keep: Literal["all", "newest"] = "all"
    """``all``: until the pool is empty data sets grow, and then they stay; ``newest``: for each sample that arrives the
    oldest one leaves, and an empty pool begins again."""

    @override
    def make(self, setting: Setting) -> Moving:
        fleet = make_fleet(setting, self.pool)
        least = int(fleet.sizes.min())
        if least < fleet.size:
            raise EdgesimError(
                f"data.samples_per_device: devices begin with {fleet.size} samples, and the pool of a device has "
                f"{least}; lower it, or set drift.pool = 'shared'",
                "data.samples_per_device",
                "drift.pool",
            )
        grows = self.keep == "all"
        # Of data sets that grow any size may be that of a job.
        ahead = np.arange(fleet.size, int(fleet.sizes.max()) + 1) if grows else np.array([fleet.size])
        stream, sizes = _Stream(fleet, self.rate_per_s, grows), partial(np.array, ahead)
        return Moving(lambda when: when.t_s, stream.at, sizes, held_out=fleet.held_out)


@dataclass(eq=False)
class _Stream:
    """Arrivals until the last instant asked for; an earlier instant starts again at t = 0."""

    fleet: Fleet
    rate_per_s: float
    grows: bool
    _t_s: float = np.inf
    _count: Integers = field(init=False)
    """Samples that have arrived, [N]."""
    _next_s: Floats = field(init=False)
    """Instant of each device's next arrival in simulated seconds, [N]."""
    _class_counts: Integers = field(init=False)
    """Samples held, [N, C]."""

    def __post_init__(self) -> None:
        fleet, devices = self.fleet, np.arange(self.fleet.device_count)
        pool = fleet.of(devices)
        self._first, self._size = fleet.firsts[pool], fleet.sizes[pool]
        self._begin, self._step = walks(fleet.streams, "drift/arrivals", devices, self._size)
        self._seen = np.flatnonzero(fleet.class_counts.any(axis=0))

    def at(self, t_s: float) -> Holdings:
        """Data sets of the devices at an instant."""
        if t_s < self._t_s:
            self._start()
        self._t_s = t_s
        while len(due := np.flatnonzero(self._next_s <= t_s)):
            self._arrive(due)
        count = self._count.copy()
        class_counts = self._class_counts.copy()
        return Drawn(class_counts.sum(axis=1), class_counts, self._seen, partial(self._samples, count))

    def _start(self) -> None:
        devices = np.arange(self.fleet.device_count)
        self._count = np.zeros(len(devices), dtype=np.int64)
        self._next_s = self._gap_s(devices)
        self._class_counts = np.zeros((len(devices), self.fleet.class_count), dtype=np.int64)
        for turn in range(self.fleet.size):
            self._class_counts[devices, self._labels(devices, np.full(len(devices), turn))] += 1

    def _arrive(self, due: Integers) -> None:
        """Let the next sample of each device ``due`` arrive."""
        turn = self.fleet.size + self._count[due]
        coming = due[turn < self._size[due]] if self.grows else due
        self._class_counts[coming, self._labels(coming, self.fleet.size + self._count[coming])] += 1
        if not self.grows:
            self._class_counts[due, self._labels(due, self._count[due])] -= 1
        self._count[due] += 1
        self._next_s[due] += self._gap_s(due)

    def _gap_s(self, devices: Integers) -> Floats:
        """Seconds from the last arrival to the next, [n]."""
        return self.fleet.streams.exponential("drift/gaps", devices, self._count[devices]) / self.rate_per_s

    def _places(self, devices: Integers, turn: Integers) -> Integers:
        """Place among the pools' samples of the ``turn``-th sample, from 0, that each device ever receives, [n]."""
        within = (self._begin[devices] + self._step[devices] * turn) % self._size[devices]
        return np.asarray(self._first[devices] + within)

    def _labels(self, devices: Integers, turn: Integers) -> Integers:
        fleet = self.fleet
        return np.asarray(fleet.labels[fleet.samples[self._places(devices, turn)]])

    def _samples(self, count: Integers, device: int) -> Integers:
        """Samples of a device after ``count`` [N] arrivals at each device; ascending."""
        size, arrived = self.fleet.size, int(count[device])
        first, last = (0, min(size + arrived, int(self._size[device]))) if self.grows else (arrived, arrived + size)
        turns = np.arange(first, last)
        return np.sort(self.fleet.samples[self._places(np.full(len(turns), device), turns)])
