"""Work of a round as arrays, where all of it is known in closed form once the band is shared.

So it is where uploads keep their reservations at constant rates, where devices draw from the mains, and where work ends
with its round. The phases are those of `edgesim.engine.phases.COURSE`, each played for all devices at once; the clock
gets one event, the arrival that closes the round.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import simpy

from edgesim.activities import ACTIVITIES, DOWNLOAD
from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.engine.clock import FIRST, Clock, EventKind
from edgesim.engine.ended_work import NUMBER_OF, Brought, EndedWork, ended_work
from edgesim.engine.phases import COURSE, Phase
from edgesim.engine.uplink import planned_end_s
from edgesim.engine.work import Outcome
from edgesim.learning.jobs import Arrived, Promise
from edgesim.radio.link import ReservedLink

OUTCOMES: tuple[Outcome, ...] = ("done", "dropped", "late", "unscheduled", "cancelled")
_DONE, _DROPPED, _LATE, _UNSCHEDULED, _ = range(len(OUTCOMES))


@dataclass
class Grants:
    """Grants of tasks that begin together, each a column [n]; 0 for devices that were not taken."""

    bandwidth_hz: Floats
    rx_power_w: Floats
    bits: Floats


@dataclass
class Tasks:
    """Tasks that begin together: as `edgesim.engine.work.Task`, but a column each, [n], by device."""

    device: Integers
    download_bits: Floats
    download_s: Floats
    station: Integers
    server: Integers
    broadcast_s: Floats
    compute_s: Floats
    leaves_s: Floats
    number: int
    taken: Booleans = field(init=False)
    grant: Grants = field(init=False)
    backhaul_s: Floats = field(init=False)
    silence_s = 0.0
    queued_s = None

    def __post_init__(self) -> None:
        count = len(self.device)
        self.taken = np.zeros(count, dtype=bool)
        self.grant = Grants(np.zeros(count), np.zeros(count), np.zeros(count))
        self.backhaul_s = np.zeros(count)


@dataclass
class Leg:
    """One phase of all tasks that have it, as it goes unless the round closes before."""

    phase: Phase
    has: Booleans
    """Which tasks have the phase if they come so far, [n]."""
    begin_s: Floats
    end_s: Floats
    order: Integers
    """Priority of the event that ends it, by which events of one instant are ordered, [n]."""
    breaks: Booleans
    """Which devices leave in the phase, [n]."""


class Rows(NamedTuple):
    """What one activity adds to the rows of all tasks, each [n]."""

    activity: int
    there: Booleans
    """Which tasks have the row."""
    begin_s: Floats
    end_s: Floats
    outcome: Integers
    bits: Floats
    bandwidth_hz: Floats


class KnownWork:
    """The work of a round's devices, played ahead when the band is shared, and cut off where the round closes."""

    def __init__(
        self, clock: Clock, links: Sequence[ReservedLink], tasks: Tasks, promises: Sequence[Promise], tolerance_s: float
    ) -> None:
        """Begin tasks now; the ``tolerance_s`` is that of `edgesim.engine.work.RoundSignals`."""
        self._clock, self._links, self._tolerance_s = clock, links, tolerance_s
        self.tasks, self.promises = tasks, promises
        self._begin_s = clock.now
        self._legs: list[Leg] = []
        self._closed_by: tuple[float, int] | None = None
        self._fate: Integers | None = None
        """Number of each task's end among `OUTCOMES`, [n], once the work is over."""
        self._rows: list[Rows] = []

    def share(self, rows: Integers, grant: Grants, backhaul_s: Floats, deadline_s: float) -> None:
        """Grant uploads to the devices at some positions, [S], and play all work as if the round never closed."""
        tasks = self.tasks
        tasks.taken[rows], tasks.backhaul_s[rows] = True, backhaul_s
        for name, column in vars(grant).items():
            getattr(tasks.grant, name)[rows] = column
        at_s, goes_on, nobody = np.full(len(tasks.device), self._begin_s), ~_nobody(tasks), _nobody(tasks)
        for phase in COURSE:
            amount = phase.amount(tasks)
            if not isinstance(amount, np.ndarray):
                continue
            has = goes_on if phase.is_reported else goes_on & (amount > 0)
            if not np.count_nonzero(has):
                continue
            leg = Leg(phase, has, at_s, at_s + amount, FIRST[phase.kind] + tasks.device, nobody)
            if phase.ends == "by the band":
                self._send(leg, deadline_s)
            else:
                if phase.kind == EventKind.ARRIVED:
                    due = np.abs(leg.end_s - deadline_s) <= self._tolerance_s
                    leg.end_s = np.where(due, np.maximum(deadline_s, at_s), leg.end_s)
                if phase.breaks:
                    leg.breaks = has & (tasks.leaves_s < leg.end_s - self._tolerance_s)
            if phase.breaks and np.count_nonzero(leg.breaks):
                leg.end_s = np.where(leg.breaks, np.maximum(tasks.leaves_s, at_s), leg.end_s)
                leg.order = np.where(leg.breaks, FIRST[EventKind.LEFT] + tasks.device, leg.order)
                goes_on = goes_on & ~leg.breaks
            at_s = leg.end_s if has.all() else np.where(has, leg.end_s, at_s)
            self._legs.append(leg)

    def _send(self, leg: Leg, deadline_s: float) -> None:
        """End the uploads of a leg, each by itself: functions of arrays round the last bit otherwise."""
        tasks, grant, leaves = self.tasks, self.tasks.grant, list[int]()
        leg.end_s, leg.order = leg.begin_s.copy(), FIRST[EventKind.ARRIVED] + tasks.device
        rows = leg.has.nonzero()[0]
        columns = tasks.device, tasks.station, grant.bandwidth_hz, grant.rx_power_w, grant.bits, leg.begin_s
        of_rows = zip(*(column[rows].tolist() for column in (*columns, tasks.backhaul_s, tasks.leaves_s)), strict=True)
        ends_s = []
        for row, (device, station, hz, power_w, bits, begin_s, wires_s, leaves_s) in enumerate(of_rows):
            link = self._links[station]
            end_s = link.end_s(device, hz, power_w, bits, begin_s)
            end_s = planned_end_s(end_s, deadline_s - wires_s, self._tolerance_s, begin_s)
            if (left_s := max(leaves_s, begin_s)) < end_s:
                sent = link.bits(device, hz, power_w, begin_s, left_s)
                if bits - sent > link.bits(device, hz, power_w, left_s, left_s + self._tolerance_s):
                    leaves.append(row)
            ends_s.append(end_s)
        leg.end_s[rows] = ends_s
        if leaves:
            leg.breaks = _nobody(tasks)
            leg.breaks[rows[leaves]] = True

    def close_with(self, count: int, deadline_s: float, close: Callable[[], None]) -> None:
        """Have ``close`` called at the arrival with a number, from 1, if it comes by the deadline."""
        device = self.tasks.device
        arrives, at_s, order = self.tasks.taken, np.full(len(device), self._begin_s), FIRST[0] + device
        for leg in self._legs:
            arrives = arrives & ~leg.breaks
            at_s, order = np.where(leg.has, leg.end_s, at_s), np.where(leg.has, leg.order, order)
        rows = (arrives & (at_s <= deadline_s)).nonzero()[0]
        if len(rows) < count:
            return
        last = rows[np.lexsort((order[rows], at_s[rows]))[count - 1]]
        by = float(at_s[last]), int(order[last])

        def happen(_: simpy.Event) -> None:
            self._closed_by = by
            close()

        self._clock.call_by_order(*by, happen)

    def end(self, outcome: Outcome | None = None) -> None:
        """End all work now: work that is cut off is late or was not taken, unless it has another ``outcome``."""
        if self._fate is not None:
            return
        tasks, (t_s, order) = self.tasks, self._closed_by or (self._clock.now, FIRST[EventKind.STOP])
        cut = np.where(tasks.taken, _LATE, _UNSCHEDULED)
        if outcome is not None:
            cut[:] = OUTCOMES.index(outcome)
        goes_on, fate = ~_nobody(tasks), cut
        for leg in self._legs:
            begun = goes_on & leg.has
            over = begun & ((leg.end_s < t_s) | ((leg.end_s == t_s) & (leg.order <= order)))
            ends, left = over & ~leg.breaks, over & leg.breaks
            goes_on, fate = goes_on & (ends | ~leg.has), np.where(left, _DROPPED, fate)
            if leg.phase.is_reported:
                for promise, is_due in zip(self.promises, ends.tolist(), strict=True):
                    promise.due = is_due
            if leg.phase.name in ACTIVITIES:
                end_s = np.where(over, leg.end_s, t_s)
                there = begun & (end_s > leg.begin_s)
                if leg.phase.ends == "at an instant":
                    there |= ends
                ended = np.where(ends, _DONE, np.where(left, _DROPPED, cut))
                sent = self._sent(leg, there, ends, end_s)
                self._rows.append(Rows(NUMBER_OF[leg.phase.name], there, leg.begin_s, end_s, ended, *sent))
        self._fate = np.where(goes_on, _DONE, fate)

    def _sent(self, leg: Leg, there: Booleans, ends: Booleans, end_s: Floats) -> tuple[Floats, Floats]:
        """Bits and mean bandwidths of a phase from its start to some instants, [n]."""
        phase, tasks, grant, lasted_s = leg.phase, self.tasks, self.tasks.grant, end_s - leg.begin_s
        bits = np.zeros(len(end_s))
        cut = (there & ~ends).nonzero()[0]
        if phase.bits is not None:
            whole, amount = np.asarray(phase.bits(tasks)), np.asarray(phase.amount(tasks))
            bits[ends] = whole[ends]
            bits[cut] = whole[cut] * lasted_s[cut] / amount[cut]
        if phase.ends != "by the band":
            return bits, np.zeros(len(end_s))
        bits[ends] = grant.bits[ends]
        columns = tasks.station, tasks.device, grant.bandwidth_hz, grant.rx_power_w, leg.begin_s, end_s
        for row, station, *span in zip(cut.tolist(), *(column[cut].tolist() for column in columns), strict=True):
            bits[row] = min(self._links[station].bits(*span), grant.bits[row])
        hertz_seconds = lasted_s * grant.bandwidth_hz
        return bits, np.divide(hertz_seconds, lasted_s, out=np.zeros(len(end_s)), where=there)

    # Answers once the work is over.

    @property
    def began(self) -> Integers:
        """Devices that began to work, [n]."""
        return self.tasks.device

    @property
    def fates(self) -> list[Outcome | None]:
        """Outcomes of the tasks of devices that were taken."""
        assert self._fate is not None
        return [OUTCOMES[number] for number in self._fate[self.tasks.taken].tolist()]

    @property
    def bandwidth_hz(self) -> float:
        """Sum of the bandwidths granted."""
        return float(sum(self.tasks.grant.bandwidth_hz.tolist()))

    @property
    def lost(self) -> list[Promise]:
        """Jobs that were computed, and whose updates did not arrive."""
        assert self._fate is not None
        rows = (self.tasks.taken & (self._fate != _DONE)).nonzero()[0].tolist()
        return [self.promises[row] for row in rows if self.promises[row].due]

    @property
    def computed(self) -> list[Promise]:
        """Jobs that were computed, in the order of their ends."""
        for leg in self._legs:
            if leg.phase.is_reported:
                rows = np.lexsort((leg.order, leg.end_s)).tolist()
                return [self.promises[row] for row in rows if self.promises[row].due]
        return []

    def arrived(self, selected: Integers) -> Integers:
        """Those of the devices taken whose updates arrived, in their order."""
        assert self._fate is not None
        arrived: Integers = selected[self._fate[self.tasks.device.searchsorted(selected)] == _DONE]
        return arrived

    def updates(self, arrived: Integers) -> list[tuple[Brought, Arrived]]:
        """Updates of devices that have arrived, in their order."""
        tasks, rows, number = self.tasks, self.tasks.device.searchsorted(arrived), self.tasks.number
        first_s = last_s = np.zeros(len(rows))
        for part in self._rows:
            last_s = np.where(part.there[rows], part.end_s[rows], last_s)
        for part in reversed(self._rows):
            first_s = np.where(part.there[rows], part.begin_s[rows], first_s)
        lasted_s = last_s + tasks.backhaul_s[rows] - (first_s - tasks.broadcast_s[rows])
        columns = arrived, tasks.server[rows], tasks.station[rows], tasks.grant.bits[rows], lasted_s
        return [
            (Brought((device, number), server, *of_task), Arrived(self.promises[row], server=server))
            for row, device, server, *of_task in zip(rows.tolist(), *(of.tolist() for of in columns), strict=True)
        ]

    @cached_property
    def ended(self) -> EndedWork:
        """All work, once it is over."""
        tasks, fate, parts = self.tasks, self._fate, self._rows
        assert fate is not None
        down_bits = np.where(tasks.download_s == 0, tasks.download_bits, 0.0)
        if not parts:
            return replace(ended_work([]), down_bits=sum(down_bits.tolist()))
        there = np.stack([part.there for part in parts], axis=1)
        outcome, rows = np.stack([part.outcome for part in parts], axis=1), there.sum(axis=1)
        # Before work was cut off, nothing may have been going on, and for work that is not used nothing follows: the
        # last row has the outcome of the task.
        last = len(parts) - 1 - there[:, ::-1].argmax(axis=1)
        marked = ((fate != _DROPPED) & (rows > 0)).nonzero()[0]
        outcome[marked, last[marked]] = np.where((fate == _DONE) & ~tasks.taken, _UNSCHEDULED, fate)[marked]
        if parts[0].activity == NUMBER_OF[DOWNLOAD]:
            down_bits += np.where(parts[0].there & (tasks.download_s != 0), parts[0].bits, 0.0)
        columns = zip(*(part[2:] for part in parts), strict=True)
        begin_s, end_s, _, bits, bandwidth_hz = (np.stack(column, axis=1)[there] for column in columns)
        worked = rows.nonzero()[0]
        return EndedWork(
            tasks.device[worked],
            np.full(len(worked), tasks.number),
            tasks.station[worked],
            rows[worked],
            np.broadcast_to([part.activity for part in parts], there.shape)[there],
            begin_s,
            end_s,
            [OUTCOMES[number] for number in outcome[there].tolist()],
            bits,
            bandwidth_hz,
            sum(down_bits.tolist()),
        )


def _nobody(tasks: Tasks) -> Booleans:
    return np.zeros(len(tasks.device), dtype=bool)
