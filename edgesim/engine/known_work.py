"""Work of a round as arrays, where all of it is known in closed form once the band is shared.

So it is where uploads keep their reservations in their cells, on links that are not recorded, where devices draw from
the mains, and where work ends with its round. The phases are those of `edgesim.engine.phases.COURSE`, each played for
all devices at once; the clock gets one event, the arrival that closes the round.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import simpy

from edgesim.activities import ACTIVITIES, DOWNLOAD, UPLOAD
from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.engine.clock import FIRST, Clock, EventKind
from edgesim.engine.courses import Courses, Sending
from edgesim.engine.ended_work import NUMBER_OF, Brought, EndedWork, ended_work
from edgesim.engine.moving_reserved_band import MovingReservedLink
from edgesim.engine.phases import COURSE, Phase
from edgesim.engine.uplink import Upload, planned_end_s
from edgesim.engine.work import Outcome
from edgesim.learning.jobs import Arrived, Promise
from edgesim.radio.grant import Grant
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


class Legs(NamedTuple):
    """The phases that any task has, as they go unless the round closes before: [L, n] but for the first, [L]."""

    phases: list[Phase]
    has: Booleans
    """Which tasks have the phase if they come so far."""
    begin_s: Floats
    end_s: Floats
    order: Integers
    """Priority of the event that ends the phase, by which events of one instant are ordered."""
    breaks: Booleans
    """Which devices leave in the phase."""


class Rows(NamedTuple):
    """Rows of ``activities`` that tasks may have: [A, n] by activity, but for the first, [A], and the last three."""

    activity: Integers
    there: Booleans
    """Which rows there are."""
    begin_s: Floats
    end_s: Floats
    outcome: Integers
    """Number among `OUTCOMES`."""
    bits: Floats
    bandwidth_hz: Floats
    of_task: Integers
    """How many rows each task has, [n]."""
    first: Integers
    """Place of each task's first row, [n]; so the last."""
    last: Integers


class KnownWork:
    """The work of a round's devices, played ahead when the band is shared, and cut off where the round closes."""

    def __init__(
        self,
        clock: Clock,
        links: Sequence[ReservedLink],
        courses: Courses | None,
        tasks: Tasks,
        promises: Sequence[Promise],
        tolerance_s: float,
    ) -> None:
        """Begin tasks now; ``links`` are those of the stations' bands, and ``tolerance_s`` is that of `RoundSignals`.

        ``courses`` are those of devices that move.
        """
        self._clock, self._links, self._courses, self._tolerance_s = clock, links, courses, tolerance_s
        self.tasks, self.promises = tasks, promises
        self._begin_s = clock.now
        self._legs: Legs | None = None
        self._closed_by: tuple[float, int] | None = None
        self._fate: Integers | None = None
        """Number of each task's end among `OUTCOMES`, [n], once the work is over."""

    def share(self, rows: Integers, grant: Grants, backhaul_s: Floats, deadline_s: float) -> None:
        """Grant uploads to the devices at some positions, [S], and play all work as if the round never closed."""
        tasks, count = self.tasks, len(self.tasks.device)
        tasks.taken[rows], tasks.backhaul_s[rows] = True, backhaul_s
        columns = vars(grant).items()
        for name, column in columns:
            getattr(tasks.grant, name)[rows] = column
        grants = map(Grant, *(column.tolist() for _, column in columns))
        for row, of_promise in zip(rows.tolist(), grants, strict=True):
            self.promises[row].grant = of_promise
        at_s, goes_on = np.full(count, self._begin_s), np.ones(count, dtype=bool)
        leave = tasks.leaves_s.min(initial=math.inf) < math.inf
        legs: list[tuple[Any, ...]] = []
        for phase in COURSE:
            amount = phase.amount(tasks)
            if not isinstance(amount, np.ndarray):
                continue
            has = goes_on if phase.is_reported else goes_on & (amount > 0)
            if not np.count_nonzero(has):
                continue
            if phase.ends == "by the band":
                end_s, breaks = self._send(has, at_s, deadline_s)
                kind = EventKind.ARRIVED
            else:
                end_s, breaks, kind = at_s + amount, None, phase.kind
                if kind == EventKind.ARRIVED:
                    due = np.abs(end_s - deadline_s) <= self._tolerance_s
                    end_s = np.where(due, np.maximum(deadline_s, at_s), end_s)
                if leave and phase.breaks:
                    breaks = has & (tasks.leaves_s < end_s - self._tolerance_s)
            order = FIRST[kind] + tasks.device
            if breaks is None:
                breaks = np.zeros(count, dtype=bool)
            elif np.count_nonzero(breaks):
                end_s = np.where(breaks, np.maximum(tasks.leaves_s, at_s), end_s)
                order = np.where(breaks, FIRST[EventKind.LEFT] + tasks.device, order)
                goes_on = goes_on & ~breaks
            legs.append((phase, has, at_s, end_s, order, breaks))
            at_s = np.where(has, end_s, at_s)
        if legs:
            phases, *others = zip(*legs, strict=True)
            self._legs = Legs(list(phases), *map(np.array, others))

    def _send(self, has: Booleans, at_s: Floats, deadline_s: float) -> tuple[Floats, Booleans | None]:
        """End the uploads that some tasks have, each by itself: functions of arrays round the last bit otherwise.

        Returns the ends, and which devices leave before.
        """
        tasks, grant, leaves, ends_s = self.tasks, self.tasks.grant, list[int](), list[float]()
        # The round is over before the others begin.
        rows = (has & (at_s <= deadline_s + self._tolerance_s)).nonzero()[0]
        granted = grant.bandwidth_hz[rows], grant.rx_power_w[rows], grant.bits[rows]
        sending = Sending(tasks.device[rows], tasks.station[rows], np.zeros_like(rows), *granted, at_s[rows])
        if self._courses is not None:
            self._links = [self._followed(self._courses, sending, deadline_s)] * len(self._links)
        columns = *sending, tasks.backhaul_s[rows], tasks.leaves_s[rows]
        of_rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, (device, station, _, hz, power_w, bits, begin_s, wires_s, leaves_s) in enumerate(of_rows):
            link = self._links[station]
            end_s = link.end_s(device, hz, power_w, bits, begin_s)
            end_s = planned_end_s(end_s, deadline_s - wires_s, self._tolerance_s, begin_s)
            if leaves_s < end_s:
                left_s = max(leaves_s, begin_s)
                sent = link.bits(device, hz, power_w, begin_s, left_s)
                if bits - sent > link.bits(device, hz, power_w, left_s, left_s + self._tolerance_s):
                    leaves.append(row)
            ends_s.append(end_s)
        end_s = np.where(has, math.inf, at_s)
        end_s[rows] = ends_s
        if not leaves:
            return end_s, None
        breaks = np.zeros(len(has), dtype=bool)
        breaks[rows[leaves]] = True
        return end_s, breaks

    def _followed(self, courses: Courses, sending: Sending, deadline_s: float) -> MovingReservedLink:
        """The link of uploads of devices that move, which have reservations until they end or the round does."""
        number, tolerance_s = self.tasks.number, self._tolerance_s
        courses.foresee(number, sending, (self._begin_s, deadline_s, tolerance_s), ())
        followed = {}
        for device, station, _, hz, power_w, bits, since_s in zip(*(of.tolist() for of in sending), strict=True):
            course = courses.foreseen.get((device, number, 0))
            # The end is inf beyond what is known of the course, and nan where it was left open.
            if course is None or course.planned is None or not course.planned.end_s < math.inf:
                upload = Upload(device, power_w, hz, bits, deadline_s, tolerance_s, since_s, number=number)
                course = courses.to_end(upload, station, deadline_s + tolerance_s)
            followed[device] = course
        return MovingReservedLink(courses.moving.link, followed)

    def close_with(self, count: int, deadline_s: float, close: Callable[[], None]) -> None:
        """Have ``close`` called at the arrival with a number, from 1, if it comes by the deadline."""
        if (legs := self._legs) is None:
            return
        everyone = np.arange(len(self.tasks.device))
        last = len(legs.phases) - 1 - legs.has[::-1].argmax(axis=0)
        at_s, order = legs.end_s[last, everyone], legs.order[last, everyone]
        rows = (self.tasks.taken & ~legs.breaks[last, everyone] & (at_s <= deadline_s)).nonzero()[0]
        if len(rows) < count:
            return
        closing = rows[np.lexsort((order[rows], at_s[rows]))[count - 1]]
        by = float(at_s[closing]), int(order[closing])

        def happen(_: simpy.Event) -> None:
            self._closed_by = by
            close()

        self._clock.call_by_order(*by, happen)

    def end(self, outcome: Outcome | None = None) -> None:
        """End all work now: work that is cut off is late or was not taken, unless it has another ``outcome``."""
        if self._fate is not None:
            return
        tasks, legs, (t_s, order) = self.tasks, self._legs, self._closed_by or (self._clock.now, FIRST[EventKind.STOP])
        cut = np.where(tasks.taken, _LATE, _UNSCHEDULED)
        if outcome is not None:
            cut[:] = OUTCOMES.index(outcome)
        self._cut = self._fate = cut
        if legs is None:
            return
        self._over = legs.has & ((legs.end_s < t_s) | ((legs.end_s == t_s) & (legs.order <= order)))
        self._ends = self._over & ~legs.breaks
        left = (self._over & legs.breaks).any(axis=0)
        self._fate = np.where(left, _DROPPED, np.where((self._ends | ~legs.has).all(axis=0), _DONE, cut))
        self._now_s = t_s
        (reported,) = (row for row, phase in enumerate(legs.phases) if phase.is_reported)
        for promise, is_due in zip(self.promises, self._ends[reported].tolist(), strict=True):
            promise.due = is_due

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
        for phase, _, _, end_s, order, _ in zip(*self._legs, strict=True) if self._legs is not None else ():
            if phase.is_reported:
                return [self.promises[row] for row in np.lexsort((order, end_s)).tolist() if self.promises[row].due]
        return []

    def arrived(self, selected: Integers) -> Integers:
        """Those of the devices taken whose updates arrived, in their order."""
        assert self._fate is not None
        arrived: Integers = selected[self._fate[self.tasks.device.searchsorted(selected)] == _DONE]
        return arrived

    def updates(self, arrived: Integers) -> list[tuple[Brought, Arrived]]:
        """Updates of devices that have arrived, in their order."""
        if not len(arrived):
            return []
        tasks, rows, written = self.tasks, self.tasks.device.searchsorted(arrived), self._rows
        first, last = written.first[rows], written.last[rows]
        last_s, first_s = written.end_s[last, rows], written.begin_s[first, rows]
        lasted_s = last_s + tasks.backhaul_s[rows] - (first_s - tasks.broadcast_s[rows])
        airtime_s = np.zeros(len(rows))
        for number, there, begin_s, end_s in zip(*written[:4], strict=True):
            if number == NUMBER_OF[UPLOAD]:
                airtime_s = np.where(there, end_s - begin_s, 0.0)[rows]
        columns = arrived, tasks.server[rows], tasks.station[rows], tasks.grant.bits[rows], lasted_s, airtime_s
        return [
            (Brought((device, tasks.number), server, *of_task), Arrived(self.promises[row], server=server))
            for row, device, server, *of_task in zip(rows.tolist(), *(of.tolist() for of in columns), strict=True)
        ]

    @cached_property
    def _rows(self) -> Rows:
        """The rows that the tasks have of their activities."""
        legs, tasks, fate = self._legs, self.tasks, self._fate
        assert legs is not None
        assert fate is not None
        places = [place for place, phase in enumerate(legs.phases) if phase.name in ACTIVITIES]
        phases = [legs.phases[place] for place in places]
        begin_s, over, ends = legs.begin_s[places], self._over[places], self._ends[places]
        end_s = np.where(over, legs.end_s[places], self._now_s)
        lasted_s = end_s - begin_s
        there = legs.has[places] & (lasted_s > 0)
        outcome = np.where(ends, _DONE, np.where(over, _DROPPED, self._cut))
        bits, bandwidth_hz = np.zeros(there.shape), np.zeros(there.shape)
        for place, phase in enumerate(phases):
            if phase.is_reported:
                # Also work that takes no time.
                there[place] |= ends[place]
            cut = (there[place] & ~ends[place]).nonzero()[0]
            if phase.ends == "by the band":
                hz = tasks.grant.bandwidth_hz
                np.divide(lasted_s[place] * hz, lasted_s[place], out=bandwidth_hz[place], where=there[place])
                bits[place, ends[place]] = tasks.grant.bits[ends[place]]
                columns = tasks.station, tasks.device, hz, tasks.grant.rx_power_w, begin_s[place], end_s[place]
                for row, station, *span in zip(cut.tolist(), *(of[cut].tolist() for of in columns), strict=True):
                    bits[place, row] = min(self._links[station].bits(*span), tasks.grant.bits[row])
            elif phase.bits is not None:
                whole, amount_s = np.asarray(phase.bits(tasks)), np.asarray(phase.amount(tasks))
                bits[place, ends[place]] = whole[ends[place]]
                bits[place, cut] = whole[cut] * lasted_s[place, cut] / amount_s[cut]
        count, first, last = there.sum(axis=0), there.argmax(axis=0), len(places) - 1 - there[::-1].argmax(axis=0)
        # Before work was cut off, nothing may have been going on, and nothing follows work that is not used: the last
        # row has the outcome of the task.
        marked = ((fate != _DROPPED) & (count > 0)).nonzero()[0]
        outcome[last[marked], marked] = np.where((fate == _DONE) & ~tasks.taken, _UNSCHEDULED, fate)[marked]
        activity = np.array([NUMBER_OF[phase.name] for phase in phases])
        return Rows(activity, there, begin_s, end_s, outcome, bits, bandwidth_hz, count, first, last)

    @cached_property
    def ended(self) -> EndedWork:
        """All work, once it is over."""
        tasks = self.tasks
        down_bits = np.where(tasks.download_s == 0, tasks.download_bits, 0.0)
        if self._legs is None:
            return ended_work([])._replace(down_bits=sum(down_bits.tolist()))
        rows = self._rows
        if rows.activity[0] == NUMBER_OF[DOWNLOAD]:
            down_bits += np.where(rows.there[0] & (tasks.download_s != 0), rows.bits[0], 0.0)
        there, worked = rows.there.T, rows.of_task.nonzero()[0]
        return EndedWork(
            tasks.device[worked],
            np.full(len(worked), tasks.number),
            tasks.station[worked],
            rows.of_task[worked],
            np.broadcast_to(rows.activity, there.shape)[there],
            rows.begin_s.T[there],
            rows.end_s.T[there],
            [OUTCOMES[number] for number in rows.outcome.T[there].tolist()],
            rows.bits.T[there],
            rows.bandwidth_hz.T[there],
            sum(down_bits.tolist()),
        )
