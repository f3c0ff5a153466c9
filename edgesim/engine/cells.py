"""Devices at work that change cells: their handovers on the clock, and bandwidth in the cells that they enter."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import simpy

from edgesim.base.arrays import Integers
from edgesim.config import HandoverConfig
from edgesim.devices.event_a3 import ROUNDING_S
from edgesim.devices.topology import Backhaul
from edgesim.engine.clock import Clock, EventKind
from edgesim.engine.decision import path_links
from edgesim.engine.handover_search import Handover, HandoverSearch
from edgesim.engine.moving_places import MovingPlaces
from edgesim.engine.phases import AWAY, QUEUE, SENDING, SILENCE
from edgesim.engine.work import Task, Work
from edgesim.engine.world import World
from edgesim.folder.records import TableWriter
from edgesim.folder.run_schema import SCHEMAS

_LEAST_S, _MOST_S, _AT_FIRST_S = 1e-3, 600.0, 2.0
"""Seconds that are looked ahead for handovers: at least, at most and to begin with."""
_FREE = 1e-9
"""Share of a band below which what is left of it is a remainder of rounding."""
_PING_PONG_S = 1.0

Row = tuple[Any, ...]
"""A row of the table ``handovers``, but for its round."""
_COLUMNS = [name for name in SCHEMAS["handovers"].names if name != "round"]


class HandoversAhead(NamedTuple):
    """The handovers of a device at work that lie ahead."""

    since_s: float
    """Instant from which on the condition of the first one counts."""
    ahead: list[Handover]
    until_s: float
    """Instant up to which they have been looked for."""


@dataclass
class Cells:
    """The cells of a run whose devices are handed over while they work."""

    SAVED: ClassVar[tuple[str, ...]] = ("rows", "written", "round")

    clock: Clock
    world: World
    moving: MovingPlaces
    knobs: HandoverConfig
    backhaul: Backhaul
    search: HandoverSearch = field(init=False)
    station: Integers = field(init=False)
    """Station of each device's last task, [devices]."""
    works: dict[tuple[int, int], Work] = field(default_factory=dict)
    """Devices at work, by the key of their task."""
    tasks: dict[tuple[int, int], Task] = field(default_factory=dict)
    """Their tasks, in the same order."""
    expected: dict[tuple[int, int], HandoversAhead] = field(default_factory=dict)
    """Their handovers, as far as they have been looked for last."""
    waiting: dict[tuple[int, int], Work] = field(default_factory=dict)
    """Those that wait for bandwidth, by the key of their task."""
    rows: list[Row] = field(default_factory=list)
    """Handovers that are not written yet, after those written that a device may have come back from since."""
    written: int = 0
    """How many of these are written."""
    round: int = 0
    """Number of the last round whose handovers are written."""

    def __post_init__(self) -> None:
        self.search = HandoverSearch(self.moving, self.world.handover_rule)
        self.station = np.zeros(len(self.world.population), dtype=np.int64)

    def watch(self, works: Iterable[Work]) -> None:
        """Put the next handovers of devices that begin to work, or of a resumed run, on the clock."""
        begun = list(works)
        for work in begun:
            task = work.task
            key = task.key
            if task.since_cell_s == -math.inf:
                task.since_cell_s = self.clock.now
            if task.needs_device:
                self.works[key], self.tasks[key] = work, task
            if task.queued_s is not None:
                self.waiting[key] = work
        until_s = self.clock.now + _AT_FIRST_S
        if begun:
            # Of a round that is over soon all at once.
            deadline_s, tolerance_s = begun[0].due
            due_s = deadline_s + 2.0 * tolerance_s
            until_s = due_s if self.clock.now < due_s < until_s + _AT_FIRST_S else until_s
        self._plan(begun, until_s)

    def ahead(self, task: Task) -> list[Handover]:
        """The handovers of a task that lie ahead, as far as they are known."""
        found = self.expected.get(task.key)
        return found.ahead if found is not None and found.since_s == task.since_cell_s else []

    def _plan(self, works: list[Work], until_s: float) -> None:
        """Look for all handovers up to an instant, each of which is one event, as the next look is for all together."""
        works = [work for work in works if work.task.needs_device and work.task.phase != AWAY]
        if not works or len(self.world.bands_hz) == 1:
            return
        tasks = [work.task for work in works]
        ids, station = np.array([task.device for task in tasks]), np.array([task.station for task in tasks])
        # A condition that has held for longer would have led to a handover before now.
        held_s = self.clock.now - self.knobs.trigger_s - ROUNDING_S
        since_s = np.maximum([task.since_cell_s for task in tasks], held_s)
        all_ahead = self.search.until(ids, station, since_s, until_s)
        for work, task, ahead in zip(works, tasks, all_ahead, strict=True):
            self._put(work, task, HandoversAhead(task.since_cell_s, ahead, until_s))
        self._look_again(works, until_s)

    def _look_again(self, works: list[Work], t_s: float) -> None:
        """Look on at an instant for devices for which nobody has looked anew meanwhile."""

        def look(_: simpy.Event) -> None:
            still = [work for work in works if (found := self.expected.get(work.task.key)) and found.until_s == t_s]
            length_s = max([t_s - work.task.since_cell_s for work in still], default=0.0)
            self._plan(still, t_s + min(max(2.0 * length_s, _LEAST_S), _MOST_S))

        self.clock.call_at(t_s, EventKind.HANDOVER, look)

    def _put(self, work: Work, task: Task, expected: HandoversAhead) -> None:
        """Put the first handover that a device expects on the clock; it puts the next one."""
        self.expected[task.key] = expected
        if not expected.ahead:
            return
        first, *later = expected.ahead

        def happen(_: simpy.Event) -> None:
            if task.since_cell_s == expected.since_s and task.needs_device and task.phase != AWAY:
                self._hand_over(work, first.station, [first.gain_from_db, first.gain_to_db])
                if task.needs_device:
                    self._put(work, task, HandoversAhead(task.since_cell_s, later, expected.until_s))

        self.clock.call_at(max(first.t_s, self.clock.now), EventKind.HANDOVER, happen, task.device)

    def _hand_over(self, work: Work, to: int, gains_db: list[float]) -> None:
        """Hand a device over to another station."""
        task, knobs, now_s = work.task, self.knobs, self.clock.now
        sends, phase, hz = task.phase in SENDING, task.phase, task.grant.bandwidth_hz
        if sends and knobs.upload == "lost" and task.upload is not None:
            work.lose()
        else:
            work.leave_cell("dropped" if knobs.upload == "restart" else "paused")
        if task.upload is not None and knobs.upload == "restart":
            task.upload.remaining_bits = task.grant.bits
        upload: tuple[float | None, ...] = (None,) * 3
        if sends:
            left_bits = task.grant.bits if task.upload is None else task.upload.remaining_bits
            silent_s = now_s + knobs.interruption_s - max(now_s, task.silent_until_s)
            upload = (hz, left_bits, silent_s) if task.needs_device else (hz, 0.0, 0.0)
        self.rows.append((task.device, now_s, task.number, task.station, to, phase, *gains_db, *upload))
        if not task.needs_device:
            return
        left, task.station, task.since_cell_s = task.station, to, now_s
        self.station[task.device] = to
        task.handovers += 1
        if not self.world.merges_where_started:
            task.server = int(self.backhaul.edge[to])
        if task.taken:
            self.set_wires(task)
            self._ask(task)
        work.enter_cell(knobs.interruption_s)
        self._serve(left)
        self._serve(to)

    def set_wires(self, task: Task) -> None:
        """Set the time that the update of a task takes on wires, from its station to the server that merges it."""
        if task.grant.bits:
            task.backhaul_s = self.backhaul.crossed_s(task.station, task.server, task.grant.bits)

    def _ask(self, task: Task) -> None:
        """Ask for bandwidth in the cell that a task has entered; it waits in line until `_serve` finds some."""
        radio, knobs = self.world.config.radio, self.world.config.round
        if math.isinf(self.works[task.key].due[0]):
            # Without rounds each place at work has an equal share of whatever band it is in.
            assert knobs.count is not None
            task.grant.bandwidth_hz = float(self.world.bands_hz[task.station]) / knobs.count
        elif radio.sharing == "reserved" and task.grant.bits:
            task.reserved_hz, task.grant.bandwidth_hz = task.grant.bandwidth_hz or task.reserved_hz, 0.0
            # An instant of 0 would count as none.
            task.queued_s = self.clock.now or math.ulp(0.0)
            self.waiting[task.key] = self.works[task.key]

    def write(self, round: int, writer: TableWriter) -> dict[tuple[str, str], float]:
        """Write the handovers since the last call as those of a ``round``; returns its `metrics` by (name, key)."""
        new, back = self.rows[self.written :], sum(map(self._is_ping_pong, range(self.written, len(self.rows))))
        silent_s = sum(row[-1] for row in new if row[-1] is not None)
        self._write(round, writer)
        self.round = round
        if new:
            self.rows = [row for row in self.rows if row[1] >= new[-1][1] - _PING_PONG_S]
        self.written = len(self.rows)
        return {("handovers", ""): float(len(new)), ("ping_pongs", ""): float(back), ("interrupted_s", ""): silent_s}

    def write_last(self, writer: TableWriter) -> None:
        """Write the handovers of the round that is open when the run ends."""
        self._write(self.round + 1, writer)

    def _write(self, round: int, writer: TableWriter) -> None:
        if new := self.rows[self.written :]:
            columns = dict(zip(_COLUMNS, zip(*new, strict=True), strict=True))
            writer.write("handovers", columns | {"round": [round] * len(new)})

    def _is_ping_pong(self, number: int) -> bool:
        """Whether a handover brings a device back to the station that it has left within the last second."""
        device, t_s, task, _, to, *_ = self.rows[number]
        for place in range(number - 1, -1, -1):
            before = self.rows[place]
            if before[1] < t_s - _PING_PONG_S:
                return False
            if (before[0], before[2]) == (device, task):
                return bool(before[3] == to)
        return False

    def left_cell(self, task: Task) -> None:
        """Give the bandwidth of a task that needs its device no more to those that wait in its cell."""
        key = task.key
        for kept in (self.works, self.tasks, self.expected, self.waiting):
            kept.pop(key, None)
        if self.waiting and self._waiting_in(task.station):
            self.clock.soon(lambda _: self._serve(task.station))

    def back_in_cell(self, task: Task) -> None:
        """Begin to look for handovers anew for a device that is back, and for bandwidth if it waits for some."""
        task.since_cell_s = self.clock.now

        def look(_: simpy.Event) -> None:
            if (work := self.works.get(task.key)) is not None:
                self._plan([work], self.clock.now + _AT_FIRST_S)
                self._serve(task.station)

        self.clock.soon(look)

    def _serve(self, station: int) -> None:
        """Give the free bandwidth of a cell to the devices that wait there, in order of (instant, device)."""
        waiting = [work for work in self._waiting_in(station) if work.task.phase != AWAY]
        if not waiting:
            return
        there = [task.grant.bandwidth_hz for task in self.tasks.values() if task.station == station and task.taken]
        band_hz = self.world.bands_hz.item(station)
        free_hz = band_hz - sum(there)
        for work in sorted(waiting, key=lambda work: (work.task.queued_s, work.task.device)):
            if free_hz <= _FREE * band_hz:
                return
            task = work.task
            task.grant.bandwidth_hz = min(self._wanted_hz(work), free_hz)
            task.queued_s = None
            del self.waiting[task.key]
            free_hz -= task.grant.bandwidth_hz
            work.take_place()

    def _waiting_in(self, station: int) -> list[Work]:
        """Devices that wait for bandwidth in a cell."""
        return [work for work in self.waiting.values() if work.task.station == station]

    def _wanted_hz(self, work: Work) -> float:
        """Least bandwidth of what is left by the due time on the gain planned there, or the old reservation."""
        task, now_s, ids = work.task, self.clock.now, np.array([work.task.device])
        number = np.array([task.number])
        bits = task.grant.bits if task.upload is None else task.upload.remaining_bits
        waits_s = max(0.0, task.silent_until_s - now_s)
        if task.phase not in (QUEUE, SILENCE):
            waits_s = max(waits_s, task.since_s + task.left_s - now_s)
        due_s = work.due[0] - task.backhaul_s
        gain = self.world.gain(ids, number, now_s, np.array([task.station]))
        power_w = self.world.rx_power_w(ids, gain) * self.world.outage_factor
        link = path_links(self.world, self.moving, now_s, ids, number)[task.station]
        need_hz = link.least_hz(ids, np.array([bits]), np.array([waits_s]), due_s - now_s, power_w, now_s)
        return float(need_hz[0]) if math.isfinite(need_hz[0]) else task.reserved_hz
