"""Updates merged as they come, without rounds: FedBuff's buffer and FedAsync (`round.protocol`).

A number of places is always taken by devices at work, as far as there are any. Whoever finishes frees a place, which is
taken at once by the next device of the selector's order; the order is as long as there are places and is asked for anew
when it is used up. Every ``buffer`` updates (one, under FedAsync) make the next model: a row of ``rounds``.
"""

import math
import time
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from edgesim.arrays import Integers
from edgesim.devices.energy import activity_energy_j
from edgesim.engine.clock import Kind, succeed_once
from edgesim.engine.decision import Timeline, admit, needs_hz
from edgesim.engine.estimates import PlannedEstimates, feedback
from edgesim.engine.idle_devices import IdleDevices
from edgesim.engine.report import Origin, RoundRow, bits_down, bits_on_wires
from edgesim.engine.rounds import RoundNumber
from edgesim.engine.run_protocol import RunProtocol
from edgesim.engine.work import RoundSignals, Task, work
from edgesim.errors import EdgesimError
from edgesim.learning.interface import Evaluation, Merged, Stale, TrainingRound
from edgesim.selection.column import Column
from edgesim.selection.view import RoundReport, RoundView


@dataclass(slots=True)
class Chosen:
    """A device that the selector has put in line, with the draws of its next task."""

    device: int
    compute_s: float
    rx_power_w: float
    stays_until_s: float
    """When the stay ends in which it was chosen."""


@dataclass(slots=True)
class Working:
    """A device at work."""

    task: Task
    version: int
    """Models made before the one that it started from."""
    training: TrainingRound
    process: simpy.Process


@dataclass
class Unsynchronised(RunProtocol):
    """Both protocols without rounds; the draws of a device's tasks are numbered by the device's own tasks."""

    next_task: Integers
    """Number of each device's next task, from 1, [devices]."""
    line: deque[Chosen] = field(default_factory=deque)
    at_work: dict[int, Working] = field(default_factory=dict)
    arrived: list[Working] = field(default_factory=list)
    """The buffer."""
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

    def __post_init__(self) -> None:
        assert self.world.config.round.count is not None
        self._places = self.world.config.round.count
        self._wake = self.clock.event()
        self._alarm_s = -math.inf
        self._idle = IdleDevices(self.world.availability, self.batteries, np.ones(len(self.next_task), dtype=bool))
        tolerance_s = 1e-9 * self.world.config.round.tmax_s
        self._signals = RoundSignals(
            self.bands,
            self.clock.event(),
            math.inf,
            tolerance_s,
            lambda task: self.at_work[task.device].training.due(task.device),
            self._on_arrived,
            self._on_dropped,
            self.interruptions.back_s,
            self._on_phase,
        )

    def next_model(self, number: RoundNumber) -> Generator[simpy.Event, Any, tuple[bool, Evaluation | None]]:
        """Let devices work until the next model is made; False when no device is ever there again to make it."""
        started, t_start_s = time.perf_counter(), self.clock.now
        wanted = self.world.config.round.buffer or 1
        while len(self.arrived) < wanted:
            self._fill(number)
            if len(self.at_work) < self._places:
                back_s = self._idle.next_back_s(self.clock.now)
                if math.isinf(back_s) and not self.at_work:
                    self._need_nobody_declined()
                    return False, None
                if math.isfinite(back_s):
                    self._alarm(back_s)
            yield self._wake
            self._wake = self.clock.event()
        tested = self.evaluations.before_merge(self.clock.now)
        merged, origin = self._absorb(number, self.clock.now - t_start_s)
        if number.last_of_frame:
            # The next frame has other data.
            self.break_off()
            yield self.clock.timeout(0)
        evaluation = self._conclude(number, t_start_s, merged, origin) or tested
        self.report.timing(number.round, {"round": time.perf_counter() - started})
        return True, evaluation

    def _fill(self, number: RoundNumber) -> None:
        """Give the free places to whoever is next in line."""
        while len(self.at_work) < self._places:
            if not self.line:
                self._ask(number)
            if not self.line:
                return
            chosen = self.line.popleft()
            if chosen.device not in self.at_work and self._is_still_there(chosen):
                self._begin(number, chosen)

    def _is_still_there(self, chosen: Chosen) -> bool:
        """Whether a device is there and charged; where it has left and come again, its stay is now the present one."""
        now_s = self.clock.now
        if self.batteries is not None and not self.batteries.ready(np.array([chosen.device]), now_s)[0]:
            return False
        if now_s >= chosen.stays_until_s:
            ids = np.array([chosen.device])
            chosen.stays_until_s = float(self.world.availability.available_until(ids, now_s)[0])
        return now_s < chosen.stays_until_s

    def _need_nobody_declined(self) -> None:
        """Raise `EdgesimError` where devices are there but the policy takes none of them, now and for ever."""
        if there := len(self._idle.there(self.clock.now)):
            raise EdgesimError(
                f"selection.policy {self.world.config.selection.policy!r} takes none of the {there} devices that are "
                "there while nobody is at work; without rounds that never changes: loosen the policy's options"
            )

    def _ask(self, number: RoundNumber) -> None:
        """Ask the selector for as many devices as there are places, among those that are there and idle."""
        world, config = self.world, self.world.config
        ids = self._idle.there(self.clock.now)
        if len(ids) == 0:
            return
        tasks = self.next_task[ids]
        samples = self.work_samples[number.frame][ids]
        delay_s = Column(len(ids), lambda rows: world.compute_s(ids[rows], tasks[rows], samples[rows]))
        wires_s = self.backhaul.of_station_s
        due_s = config.round.tmax_s - wires_s
        timeline = Timeline(ids, delay_s, self.clock.now, wires_s, self.payload_bits, due_s, None)
        need_hz = Column(len(ids), lambda rows: needs_hz(world, timeline, tasks[rows], rows))
        station = world.population.station[ids]
        view = RoundView(
            round=number.round,
            frame=number.frame,
            round_in_frame=number.round_in_frame,
            rounds_in_frame=number.rounds_in_frame,
            t_s=self.clock.now,
            tmax_s=config.round.tmax_s,
            batch_size=config.learning.batch_size,
            ids=ids,
            gain=Column(len(ids), lambda rows: world.gain(ids[rows], tasks[rows])),
            delay_s=delay_s,
            need_hz=need_hz,
            samples=self.data_sizes[number.frame][ids],
            work_samples=samples,
            times_selected=tasks - 1,
            streams=world.streams,
            knowledge=self._open_training(number),
            estimates=PlannedEstimates(
                world,
                timeline,
                need_hz,
                Column(len(ids), lambda rows: world.planned_rx_power_w(ids[rows], tasks[rows])),
                station,
                world.bands_hz,
                self._places,
            ),
        )
        rows = admit(world.config.selection.policy, self.selector, view, station, world.bands_hz, self._places)
        rx_power_w = world.drawn_rx_power_w(ids[rows], tasks[rows])
        until_s = world.availability.available_until(ids[rows], self.clock.now)
        columns = (ids[rows], delay_s[rows], rx_power_w, until_s)
        self.line.extend(Chosen(*row) for row in zip(*(column.tolist() for column in columns), strict=True))

    def _open_training(self, number: RoundNumber) -> TrainingRound:
        self.training = self.learner.open_round(number.round, number.frame, self.next_task)
        self.in_training = set()
        return self.training

    def _begin(self, number: RoundNumber, chosen: Chosen) -> None:
        device, world = chosen.device, self.world
        # A second task from the same model is a job of its own.
        if self.training is None or device in self.in_training:
            self._open_training(number)
        assert self.training is not None
        self.in_training.add(device)
        self.training.start(np.array([device]))
        task_number = int(self.next_task[device])
        self.next_task[device] += 1
        self._idle.begin(device)
        station = int(world.population.station[device])
        wires_s = float(self.backhaul.of_station_s[station])
        task = Task(
            device,
            float(np.max(world.download_s(np.array([device]), self.payload_bits))),
            chosen.compute_s,
            self.interruptions.leaves_stay_s(chosen.stays_until_s),
            self.payload_bits,
            station,
            wires_s,
            wires_s,
            taken=True,
            bandwidth_hz=self._share_of(station),
            rx_power_w=chosen.rx_power_w,
            number=task_number,
        )
        process = self.clock.process(work(self.clock, task, self._signals))
        self.at_work[device] = Working(task, self.version, self.training, process)
        self.begun.append(device)

    def _share_of(self, station: int) -> float:
        """What one of the devices at work gets of a station's band; links of their own have no part in it."""
        return 0.0 if self.world.own_links is not None else float(self.world.bands_hz[station]) / self._places

    def _on_arrived(self, task: Task) -> None:
        working = self.at_work.pop(task.device)
        limit = self.world.config.staleness.limit
        if limit is None or self.version - working.version <= limit:
            self.arrived.append(working)
        self._leave_place(task)

    def _on_dropped(self, task: Task) -> None:
        del self.at_work[task.device]
        self._leave_place(task)

    def _leave_place(self, task: Task) -> None:
        self._idle.end(task.device)
        self.over.append(task)
        succeed_once(self._wake)

    def _on_phase(self, task: Task) -> float:
        """What a device draws changes with its phase; when its battery will be empty."""
        if self.batteries is None:
            return math.inf
        draw_w = activity_energy_j(self.world.population, task.device, task.phase, 1.0)
        return self.batteries.draw(task.device, draw_w, self.clock.now)

    def _alarm(self, t_s: float) -> None:
        """Look again at an instant, unless that is to happen at it or before it anyway."""
        if self.clock.now < self._alarm_s <= t_s:
            return
        self._alarm_s = t_s
        self.clock.call_at(t_s, Kind.WAKE, lambda: succeed_once(self._wake))

    def _absorb(self, number: RoundNumber, length_s: float) -> tuple[Merged, Origin]:
        """Make the next model of the buffer, which took ``length_s``, and tell the selector; also its origin."""
        updates = list(map(self._stale, self.arrived))
        tasks = [working.task.number for working in self.arrived]
        merged = self.learner.absorb(updates, self._being_sent)
        heard = feedback(merged, [working.task for working in self.arrived])
        self.arrived.clear()
        self.version += 1
        self.selector.hear(
            RoundReport(
                round=number.round,
                who_checked_in=self._checked_in,
                selected=np.array(self.begun, dtype=np.int64),
                arrived=merged.ids,
                feedback=heard,
                gradients=self._open_training(number),
                length_s=length_s,
            )
        )
        self.training = None
        return merged, Origin(tasks, [update.staleness for update in updates])

    def _stale(self, working: Working) -> Stale:
        return Stale(working.training, working.task.device, self.version - working.version)

    def _being_sent(self) -> list[Stale]:
        sending = ("upload", "backhaul")
        return [self._stale(working) for working in self.at_work.values() if working.task.phase in sending]

    def _checked_in(self) -> Integers:
        everyone = np.arange(len(self.next_task))
        return np.flatnonzero(self.world.availability.available(everyone, self.clock.now))

    def break_off(self) -> list[Task]:
        """End all work; tasks that have no rows yet, whose processes end at this instant."""
        for device, working in self.at_work.items():
            working.process.interrupt("cancelled")
            self._idle.end(device)
            self.over.append(working.task)
        self.at_work.clear()
        self.line.clear()
        return self.over

    def _conclude(self, number: RoundNumber, t_start_s: float, merged: Merged, origin: Origin) -> Evaluation | None:
        """Evaluate and write the rows."""
        evaluation = self.evaluations.of_row(number, self.clock.now)
        fates = [task.fate for task in self.over]
        bandwidth_hz = sum(map(self._share_of, range(len(self.world.bands_hz))))
        jobs, self.jobs_told = self.learner.jobs_trained - self.jobs_told, self.learner.jobs_trained
        row = RoundRow(
            round=number.round,
            frame=number.frame,
            t_start_s=t_start_s,
            t_end_s=self.clock.now,
            candidates=len(self.at_work) + len(self.over),
            selected=len(self.begun),
            arrived=fates.count("done"),
            late=0,
            dropped=fates.count("dropped"),
            jobs_trained=jobs,
            bits_down=bits_down(self.over),
            bandwidth_hz=bandwidth_hz * len(self.at_work),
        )
        station = self.world.population.station[merged.ids]
        values = bits_on_wires(self.backhaul, station, self.payload_bits, False)
        self.report.round(row, self.over, merged, origin, evaluation, values)
        self.over.clear()
        self.begun.clear()
        return evaluation
