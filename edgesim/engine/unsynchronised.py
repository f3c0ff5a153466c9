"""Updates merged as they come, without rounds, such as FedBuff's buffer and FedAsync (`round.protocol`).

A number of places is always taken by devices at work, as long as there are enough devices. A device that finishes frees
its place, which the next device of the selector's order takes at once; the order is as long as there are places and is
asked for anew when it is used up. Every so many updates as the protocol says make the next model: a row of
``rounds``.
"""

import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import simpy

from edgesim.activities import ON_AIR
from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.saved import restore_attributes, saved_attributes
from edgesim.engine.at_work import Working, restore, snapshot
from edgesim.engine.choose import choose
from edgesim.engine.clock import EventKind, succeed_once
from edgesim.engine.decision import make_timeline
from edgesim.engine.ended_work import Brought, EndedWork, ended_work
from edgesim.engine.idle_devices import IdleDevices
from edgesim.engine.phases import BACKHAUL
from edgesim.engine.process import RoundNumber, Step, Steps, Wanted, too_few_left
from edgesim.engine.report import Origin, RoundRow, bits_on_wires
from edgesim.engine.run_parts import RunParts
from edgesim.engine.watched import refuse, wanted_arrivals
from edgesim.engine.work import Task, Work
from edgesim.learning.interface import Merged, TrainingRound
from edgesim.learning.jobs import Arrived, Promise, build_jobs
from edgesim.selection.column import Column

LOST_LIMIT = 3_000
"""Tasks that end without an update, from one model to the next, before the run is given up; a tenth more for each
update that a model is made of."""


@dataclass(slots=True)
class Chosen:
    """A device that the selector has chosen and that waits for a place, with the draws of its next task."""

    device: int
    compute_s: float
    rx_power_w: float
    stays_until_s: float
    """End of the stay in which the device was chosen, in s."""


@dataclass
class Unsynchronised:
    """Process of protocols without rounds; the draws of a device's tasks are numbered by the device's own tasks."""

    SAVED: ClassVar = ("next_task", "line", "version", "jobs_told", "_alarm_s")

    parts: RunParts
    wanted: Wanted
    next_task: Integers = field(init=False)
    """Number of each device's next task, from 1, [devices]."""
    line: deque[Chosen] = field(default_factory=deque)
    at_work: dict[int, Working] = field(default_factory=dict)
    arrived: list[Working] = field(default_factory=list)
    """Devices whose updates wait in the buffer."""
    version: int = 0
    over: list[Task] = field(default_factory=list)
    """Tasks that have ended since the last row."""
    begun: list[int] = field(default_factory=list)
    """Devices that have begun a task since the last row."""
    training: TrainingRound | None = None
    """Jobs that start from the current model."""
    in_training: set[int] = field(default_factory=set)
    jobs_told: int = 0
    """Jobs that had been trained by the last row."""
    _alarm_s: float = -math.inf
    _alarms_s: list[float] = field(default_factory=list)
    """Instants to come at which the server looks for devices again."""

    def __post_init__(self) -> None:
        parts, knobs = self.parts, self.parts.world.config.round
        assert knobs.count is not None
        self.next_task = np.ones(parts.world.config.devices.count, dtype=np.int64)
        self._places = knobs.count
        self._wake = parts.clock.event()
        idle = np.ones(len(self.next_task), dtype=bool)
        self._idle = IdleDevices(parts.world.availability, parts.batteries, idle, search_s=parts.world.search.limit_s)
        callbacks = self._on_computed, self._on_arrived, self._on_dropped
        self._signals = parts.signals(parts.clock.event(), math.inf, 1e-9 * knobs.tmax_s, callbacks)

    def step(self, number: RoundNumber) -> Step:
        """Let devices work until the next model is made."""
        parts, clock = self.parts, self.parts.clock
        started, t_start_s = time.perf_counter(), clock.now
        if (wanted := wanted_arrivals(self.wanted, self._places, parts.world.config.round)) is None:
            refuse(parts.world.config.round, "wants no number of arrivals, and has no rounds whose deadline would do")
        while len(self.arrived) < wanted:
            if (lost := len(self.over) - len(self.arrived)) > LOST_LIMIT * (1 + wanted / 10):
                raise EdgesimError(
                    f"from {t_start_s:g} s to {clock.now:g} s {lost} tasks ended without an update, since the devices "
                    "left or had no charge left before they had sent one; let them stay longer (availability) or be "
                    "charged faster, or lower learning.steps, learning.epochs or round.payload_bits"
                )
            yield from self._fill(number)
            if len(self.at_work) < self._places:
                back_s = self._idle.next_back_s(clock.now)
                if math.isinf(back_s) and not self.at_work:
                    return too_few_left(parts.world.config, parts.world.search)
                if math.isfinite(back_s):
                    self._alarm(back_s)
            yield self._wake
            self._wake = clock.event()
        parts.evaluations.before_merge(clock.now)
        merged, origin = self._absorb(number, clock.now - t_start_s)
        if number.last_of_frame:
            # The next frame has other data.
            self.break_off()
        self._conclude(number, t_start_s, merged, origin)
        wall_s = {"round": time.perf_counter() - started}
        if merged.server_wall_s:
            wall_s["server"] = merged.server_wall_s
        parts.report.timing(number.round, wall_s)
        return None

    def _fill(self, number: RoundNumber) -> Steps[None]:
        """Fill free places with the devices that are next in line."""
        while len(self.at_work) < self._places:
            if not self.line:
                yield from self._ask(number)
            if not self.line:
                return
            chosen = self.line.popleft()
            if chosen.device not in self.at_work and self._is_still_there(chosen):
                self._begin(number, chosen)

    def _is_still_there(self, chosen: Chosen) -> bool:
        """Whether a device is available and charged; if it left and returned, its stay is set to the present one."""
        now_s, batteries = self.parts.clock.now, self.parts.batteries
        if batteries is not None and not batteries.ready(np.array([chosen.device]), now_s)[0]:
            return False
        if now_s >= chosen.stays_until_s:
            ids = np.array([chosen.device])
            chosen.stays_until_s = float(self.parts.world.availability.available_until(ids, now_s)[0])
        return now_s < chosen.stays_until_s

    def _refusal_of_none(self, round: int, there: int) -> str:
        """Error where none of the devices that are there is taken and no event would change that; else empty."""
        if self.at_work or math.isfinite(self._idle.next_back_s(self.parts.clock.now)):
            return ""
        return (
            f"selection.policy {self.parts.world.config.selection.policy!r}, round {round}: takes none of the {there} "
            "devices that are there while no device is at work; without rounds that never changes: take at least one"
        )

    def _ask(self, number: RoundNumber) -> Steps[None]:
        """Ask for as many devices as there are places, among those that are available and idle."""
        parts, world, now_s = self.parts, self.parts.world, self.parts.clock.now
        ids = self._idle.there(now_s)
        if len(ids) == 0:
            return
        knowledge, bands_hz = self._open_training(number), world.bands_hz
        accounts, tmax_s, tasks = parts.learner.accounts, world.config.round.tmax_s, self.next_task[ids]
        samples = accounts.charged_samples(ids, number.round)
        delay_s = Column(len(ids), lambda rows: world.compute_s(ids[rows], tasks[rows], samples[rows]))
        timeline = make_timeline(parts.planner, number.round, ids, delay_s, now_s, tmax_s, draws=tasks)
        refusal = self._refusal_of_none(number.round, len(ids))
        rows, _ = yield from choose(parts, number, timeline, tasks - 1, knowledge, bands_hz, self._places, refusal)
        rx_power_w = world.drawn_rx_power_w(ids[rows], tasks[rows], timeline.gain[rows])
        until_s = world.availability.available_until(ids[rows], now_s)
        columns = (ids[rows], delay_s[rows], rx_power_w, until_s)
        self.line.extend(Chosen(*row) for row in zip(*(column.tolist() for column in columns), strict=True))

    def _open_training(self, number: RoundNumber) -> TrainingRound:
        learner, now_s = self.parts.learner, self.parts.clock.now
        self.training = learner.open_round(number.round, number.frame, self.next_task, now_s)
        self.in_training = set()
        return self.training

    def _begin(self, number: RoundNumber, chosen: Chosen) -> None:
        device, parts = chosen.device, self.parts
        # A second task from the same model is a job of its own, and one on other data than those it was opened on.
        accounts, compute_s = parts.learner.accounts, chosen.compute_s
        if self.training is None or device in self.in_training or accounts.have_moved(parts.clock.now):
            self._open_training(number)
        assert self.training is not None
        self.in_training.add(device)
        ids = np.array([device])
        (promise,) = self.training.start(ids)
        leaves_s, own_number = parts.interruptions.leaves_stay_s(chosen.stays_until_s), int(self.next_task[device])
        if accounts.settled_at_begin or accounts.data_move:
            samples = accounts.charged_samples(ids, number.round)
            compute_s = float(parts.world.compute_s(ids, own_number, samples)[0])
        (task,) = parts.tasks(ids, number.round, True, [own_number], [compute_s], [leaves_s])
        self.next_task[device] += 1
        self._idle.begin(device)
        self.at_work[device] = working = Working(task, promise, Work(parts.clock, task, self._signals), self.version)
        hz = self._share_of(task.station)
        settings = parts.sizing.at_plan and parts.sizing.of_task(task, number.round, hz)
        parts.grant([working], ids, number.round, [hz], [chosen.rx_power_w], settings)
        self.begun.append(device)
        if parts.cells is not None:
            parts.cells.watch([working.work])

    def _share_of(self, station: int) -> float:
        """Bandwidth in Hz that each device at work has of a station's band; 0 for devices with links of their own."""
        world = self.parts.world
        return 0.0 if world.own_links is not None else float(world.bands_hz[station]) / self._places

    def _on_computed(self, task: Task) -> None:
        self.at_work[task.device].promise.due = True

    def _on_arrived(self, task: Task) -> None:
        working = self.at_work.pop(task.device)
        limit = self.parts.world.config.staleness.limit
        if limit is None or self.version - working.version <= limit:
            self.arrived.append(working)
        self._leave_place(working)

    def _on_dropped(self, task: Task) -> None:
        self._leave_place(self.at_work.pop(task.device))

    def _leave_place(self, working: Working) -> None:
        if (down := self.parts.learner.accounts.down) is not None:
            working.note_version(down)
        self._idle.end(working.task.device)
        self.over.append(working.task)
        succeed_once(self._wake)

    def _alarm(self, t_s: float) -> None:
        """Wake the server at an instant, unless it will wake then or earlier anyway."""
        if self.parts.clock.now < self._alarm_s <= t_s:
            return
        self._alarm_s = t_s
        self._put_alarm(t_s)

    def _put_alarm(self, t_s: float) -> None:
        def ring(_: simpy.Event) -> None:
            self._alarms_s.remove(t_s)
            succeed_once(self._wake)

        self._alarms_s.append(t_s)
        self.parts.clock.call_at(t_s, EventKind.WAKE, ring)

    def _absorb(self, number: RoundNumber, length_s: float) -> tuple[Merged, Origin]:
        """Merge the buffer, filled in ``length_s``, and report to the selector; returns also the updates' origin."""
        tasks = [Brought.of(working.task) for working in self.arrived]
        begun = [self.at_work[device] for device in self.begun if device in self.at_work]
        build_jobs(working.promise for working in self.arrived + begun)
        ages = [self.version - working.version for working in self.arrived]
        updates = [Arrived(working.promise, age) for working, age in zip(self.arrived, ages, strict=True)]
        # The algorithm goes by the number of the model that is made, even if no device has begun since the last one.
        self._open_training(number)
        merged = self.parts.learner.merge(updates, np.array(self.begun, dtype=np.int64), self._being_sent)
        self.arrived.clear()
        self.version += 1
        whom = np.array(self.begun, dtype=np.int64), merged.ids, self._open_training(number)
        self.parts.tell(number.round, merged, tasks, *whom, length_s, self._checked_in, lambda: ended_work(self.over))
        self.training = None
        return merged, Origin(tasks, ages)

    def _being_sent(self) -> list[Promise]:
        return [working.promise for working in self.at_work.values() if working.task.phase in (*ON_AIR, BACKHAUL)]

    def _checked_in(self) -> Integers:
        everyone = np.arange(len(self.next_task))
        return np.flatnonzero(self.parts.world.availability.available(everyone, self.parts.clock.now))

    def snapshot(self) -> dict[str, Any]:
        """Snapshot of the state between two models."""
        # The buffer is empty then, and no training is open.
        at_work = snapshot(self.parts.bands, self.at_work.values())
        return saved_attributes(self) | {
            "at_work": at_work,
            "idle": saved_attributes(self._idle),
            "alarms_s": self._alarms_s,
        }

    def restore(self, remembered: dict[str, Any]) -> None:
        """Restore a snapshot, in a run whose clock stands at its instant."""
        at_work, idle, alarms_s = (remembered.pop(name) for name in ("at_work", "idle", "alarms_s"))
        restore_attributes(self, remembered)
        restore_attributes(self._idle, idle)
        works = restore(self.parts.clock, at_work, lambda _: self._signals)
        self.at_work = {working.task.device: working for working in works}
        self.parts.sizing.expect(works)
        if self.parts.cells is not None:
            self.parts.cells.watch(working.work for working in works)
        for t_s in alarms_s:
            self._put_alarm(t_s)

    def break_off(self) -> EndedWork:
        """End all work, since the run is over; returns the work without rows."""
        for device, working in self.at_work.items():
            working.work.break_off("cancelled")
            if (down := self.parts.learner.accounts.down) is not None:
                working.note_version(down)
            self._idle.end(device)
            self.over.append(working.task)
        self.at_work.clear()
        self.line.clear()
        return ended_work(self.over)

    def _conclude(self, number: RoundNumber, t_start_s: float, merged: Merged, origin: Origin) -> None:
        """Evaluate the model and write its rows."""
        parts, world, now_s = self.parts, self.parts.world, self.parts.clock.now
        evaluation = parts.evaluations.of_row(number, now_s)
        fates = [task.fate for task in self.over]
        bandwidth_hz = sum(map(self._share_of, range(len(world.bands_hz))))
        jobs, self.jobs_told = parts.learner.jobs_trained - self.jobs_told, parts.learner.jobs_trained
        row = RoundRow(
            round=number.round,
            frame=number.frame,
            t_start_s=t_start_s,
            t_end_s=now_s,
            candidates=len(self.at_work) + len(self.over),
            selected=len(self.begun),
            arrived=fates.count("done"),
            late=0,
            dropped=fates.count("dropped"),
            jobs_trained=jobs,
            bandwidth_hz=bandwidth_hz * len(self.at_work),
        )
        values = bits_on_wires(parts.backhaul, origin.tasks) | dict(merged.metrics)
        values |= {} if parts.cells is None else parts.cells.write(number.round, parts.report.writer)
        parts.report.round(row, ended_work(self.over), merged, origin, evaluation, values)
        self.over.clear()
        self.begun.clear()
