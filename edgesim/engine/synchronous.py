"""The synchronous round: check-in is over; decide, work, close, aggregate, report."""

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from edgesim.engine.clock import Clock, Kind
from edgesim.engine.decision import Timeline, admit, needs_hz, share
from edgesim.engine.report import Report
from edgesim.engine.uplink import Band
from edgesim.engine.work import RoundSignals, Task, work
from edgesim.engine.world import World
from edgesim.learning.interface import Evaluation, Learner, TrainingRound
from edgesim.selection.column import Column
from edgesim.selection.view import RoundReport, RoundView, Selector

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LONGEST_ROUNDS = 1000
"""How many deadlines ahead a latecomer's availability is looked up."""


@dataclass(frozen=True)
class RoundNumber:
    """Where a round stands in the run."""

    round: int
    """Over the whole run, from 1."""
    frame: int
    round_in_frame: int
    rounds_in_frame: int
    """FedTeddi's K_l: the configured rounds, or floor(stop_at_s / tmax_s) when only the time is given."""
    last_of_frame: bool


@dataclass
class OpenRound:
    """One round in flight: its tasks and what the server has heard so far."""

    number: RoundNumber
    t_start_s: float
    deadline_s: float
    candidates: Integers
    """Checked-in devices, ascending."""
    training: TrainingRound
    closed: simpy.Event
    decision: simpy.Event
    all_reported: simpy.Event
    tasks: dict[int, Task] = field(default_factory=dict)
    processes: dict[int, simpy.Process] = field(default_factory=dict)
    reports: set[int] = field(default_factory=set)
    """Devices whose computing is done."""
    selected: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Devices taken, in the order of the decision."""
    arrived: set[int] = field(default_factory=set)
    infeasible_share: float | None = None
    """Share of the checked-in whose least bandwidth is above the band, or who have not reported in time; only
    worked out where the band decides who is taken."""
    wall_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add the wall time of a block to a part of this round."""
        started = time.perf_counter()
        yield
        self.wall_s[part] = self.wall_s.get(part, 0.0) + time.perf_counter() - started


@dataclass
class Carried:
    """An upload that goes on after the close of the round in which it began."""

    task: Task
    round: int
    training: TrainingRound
    process: simpy.Process
    arrived: bool = False


@dataclass
class Synchronous:
    """The synchronous protocol; its state is who was selected how often, and whose upload is still on the air."""

    clock: Clock
    world: World
    selector: Selector
    learner: Learner
    report: Report
    payload_bits: float
    data_sizes: list[Integers]
    """Data-set sizes per frame, [devices]."""
    band: Band
    times_selected: Integers
    carried: dict[int, Carried] = field(default_factory=dict)
    """Latecomers by device."""

    def round(
        self, number: RoundNumber, ids: Integers, samples: Integers
    ) -> Generator[simpy.Event, Any, Evaluation | None]:
        """One round among the checked-in ``ids`` that process ``samples`` each; its evaluation, if there was one."""
        started = time.perf_counter()
        knobs = self.world.config.round
        now_s = self.clock.now
        if self.carried:
            free = ~np.isin(ids, list(self.carried))
            ids, samples = ids[free], samples[free]
        this = OpenRound(
            number,
            now_s,
            now_s + knobs.tmax_s,
            ids,
            self.learner.open_round(number.round, number.frame),
            self.clock.event(),
            self.clock.event(),
            self.clock.event(),
        )
        self._alarm(this.closed, this.deadline_s, Kind.DEADLINE)
        if knobs.delay_knowledge == "reported":
            yield from self._decide_on_reports(this, samples)
        else:
            self._decide_at_once(this, samples)
        yield this.closed
        over = self._end_or_carry(this)
        # The interrupts above are events of this instant; the rows are complete once they have run.
        yield self.clock.timeout(0)
        evaluation = self._learn(this, over)
        this.wall_s["round"] = time.perf_counter() - started
        self.report.timing(number.round, this.wall_s)
        return evaluation

    def _alarm(self, event: simpy.Event, t_s: float, kind: Kind) -> None:
        callbacks = self.clock.at(t_s, kind).callbacks
        assert callbacks is not None
        callbacks.append(lambda _: _succeed_once(event))

    def _decide_at_once(self, this: OpenRound, samples: Integers) -> None:
        """`known` and `planned`: the band is shared at the round's start."""
        world, knobs, ids, number = self.world, self.world.config.round, this.candidates, this.number.round
        compute_s = Column(len(ids), lambda rows: world.compute_s(ids[rows], number, samples[rows]))
        delay_s = compute_s
        if knobs.delay_knowledge == "planned":
            delay_s = Column(
                len(ids), lambda rows: world.planned_compute_s(ids[rows], samples[rows], knobs.plan_quantile)
            )
        timeline = Timeline(ids, delay_s, knobs.download_s, None)
        if knobs.computes == "candidates":
            self._start(this, ids, np.asarray(compute_s))
        taken, bandwidth_hz = self._decide(this, timeline)
        if knobs.computes == "selected":
            rows = np.sort(taken)
            self._start(this, ids[rows], compute_s[rows])
        self._grant(this, ids[taken], bandwidth_hz)

    def _decide_on_reports(self, this: OpenRound, samples: Integers) -> Generator[simpy.Event, Any, None]:
        """`reported`: the band is shared at the last report or at ``report_by_s``, among those who reported."""
        knobs, ids = self.world.config.round, this.candidates
        compute_s = self.world.compute_s(ids, this.number.round, samples)
        self._start(this, ids, compute_s)
        assert knobs.report_by_s is not None
        self._alarm(this.all_reported, this.t_start_s + knobs.report_by_s, Kind.DECISION)
        yield this.all_reported
        reporters = np.isin(ids, list(this.reports))
        decided_s = self.clock.now - this.t_start_s
        timeline = Timeline(ids[reporters], compute_s[reporters], knobs.download_s, decided_s)
        taken, bandwidth_hz = self._decide(this, timeline)
        self._grant(this, timeline.ids[taken], bandwidth_hz)
        this.decision.succeed()

    def _start(self, this: OpenRound, ids: Integers, compute_s: Floats) -> None:
        """Devices begin to work: submit their training jobs, start their processes."""
        knobs = self.world.config.round
        signals = RoundSignals(
            self.band,
            this.decision,
            this.deadline_s,
            1e-9 * knobs.tmax_s + 4 * float(np.spacing(this.deadline_s)),
            lambda task: self._on_computed(this, task),
            lambda task: self._on_arrived(this, task),
        )
        leaves_s = self.world.availability.available_until(ids, self.clock.now, this.deadline_s)
        this.training.start(ids)
        for device, delay_s, leave_s in zip(ids.tolist(), compute_s.tolist(), leaves_s.tolist(), strict=True):
            task = Task(device, knobs.download_s, delay_s, leave_s, self.payload_bits)
            this.tasks[device] = task
            this.processes[device] = self.clock.process(work(self.clock, task, signals))

    def _decide(self, this: OpenRound, timeline: Timeline) -> tuple[Integers, Floats]:
        """Positions taken, in order, and their bandwidths."""
        with this.timed("decide"):
            config, number, ids, world = self.world.config, this.number, timeline.ids, self.world
            if config.round.admission == "band":
                this.infeasible_share = 1.0
            band_hz = config.radio.bandwidth_hz - sum(late.task.bandwidth_hz for late in self.carried.values())
            # Where latecomers hold the whole band, what rounding leaves of it is none.
            if len(ids) == 0 or band_hz <= 1e-9 * config.radio.bandwidth_hz:
                return np.empty(0, dtype=np.int64), np.empty(0)
            need_hz = Column(
                len(ids),
                lambda rows: needs_hz(world, self.payload_bits, timeline, number.round, rows, config.round.tmax_s),
            )
            view = RoundView(
                round=number.round,
                frame=number.frame,
                round_in_frame=number.round_in_frame,
                rounds_in_frame=number.rounds_in_frame,
                batch_size=config.learning.batch_size,
                ids=ids,
                gain=Column(len(ids), lambda rows: world.gain(ids[rows], number.round)),
                delay_s=timeline.delay_s,
                need_hz=need_hz,
                samples=self.data_sizes[number.frame][ids],
                times_selected=self.times_selected[ids],
                streams=world.streams,
                knowledge=this.training,
            )
            if config.round.admission == "band":
                feasible = np.count_nonzero(np.asarray(need_hz) <= band_hz)
                this.infeasible_share = 1.0 - feasible / len(this.candidates)
            taken = admit(self.selector, view, band_hz, config.round.count)
            return taken, share(world, self.payload_bits, timeline, need_hz, taken, number.round, band_hz)

    def _grant(self, this: OpenRound, ids: Integers, bandwidth_hz: Floats) -> None:
        """Tell every task whether it uploads, and on which reservation."""
        this.selected = ids
        rx_power_w = self.world.drawn_rx_power_w(ids, this.number.round)
        for task in this.tasks.values():
            task.taken = False
        for device, hz, power_w in zip(ids.tolist(), bandwidth_hz.tolist(), rx_power_w.tolist(), strict=True):
            task = this.tasks[device]
            task.taken, task.bandwidth_hz, task.rx_power_w = True, hz, power_w

    def _on_computed(self, this: OpenRound, task: Task) -> None:
        this.training.due(task.device)
        this.reports.add(task.device)
        # A silent drop-out never reports, so only the alarm at report_by_s ends the wait for it.
        if len(this.reports) == len(this.tasks):
            _succeed_once(this.all_reported)

    def _on_arrived(self, this: OpenRound, task: Task) -> None:
        if task.carried:
            self.carried[task.device].arrived = True
            return
        this.arrived.add(task.device)
        if self.world.config.round.close == "arrivals" and len(this.arrived) == len(this.selected):
            _succeed_once(this.closed)

    def _end_or_carry(self, this: OpenRound) -> list[Carried]:
        """Break off what is still at work, but for latecomers that are kept; returns those that are no longer."""
        over = [late for late in self.carried.values() if late.task.phase == "ended"]
        for late in over:
            del self.carried[late.task.device]
        keeps = self.world.config.round.late == "keep" and not this.number.last_of_frame
        for device, process in this.processes.items():
            task = this.tasks[device]
            if process.is_alive and task.phase == "upload" and keeps:
                self._carry(this, task)
            elif process.is_alive and task.phase != "ended":
                process.interrupt()
        if this.number.last_of_frame:
            over += self.carried.values()
            for late in self.carried.values():
                late.process.interrupt()
            self.carried.clear()
        return over

    def _carry(self, this: OpenRound, task: Task) -> None:
        task.carried, task.fate = True, "late"
        late = Carried(task, this.number.round, this.training, this.processes[task.device])
        self.carried[task.device] = late
        assert task.upload is not None
        # So far nobody asked beyond this round's deadline whether the device stays.
        now_s, horizon_s = self.clock.now, self.clock.now + _LONGEST_ROUNDS * self.world.config.round.tmax_s
        leaves_s = self.world.availability.available_until(np.array([task.device]), now_s, horizon_s)[0]
        if np.isfinite(leaves_s):
            self.band.leave_at(task.upload, float(leaves_s))

    def _learn(self, this: OpenRound, over: list[Carried]) -> Evaluation | None:
        """Aggregate what arrived, evaluate, tell the selector, write the rows."""
        arrived = np.array([device for device in this.selected.tolist() if device in this.arrived], dtype=np.int64)
        stale = [late for late in over if late.arrived]
        with this.timed("train"):
            merged = this.training.merge(arrived, [(late.training, late.task.device) for late in stale])
        self.times_selected[this.selected] += 1
        with this.timed("feedback"):
            self.selector.hear(RoundReport(this.number.round, this.selected, arrived, this.training))
        evaluation = None
        if this.number.round % self.world.config.evaluation.every == 0 or this.number.last_of_frame:
            with this.timed("evaluate"):
                evaluation = self.learner.evaluate(this.number.frame)
        staleness = [0] * len(arrived) + [this.number.round - late.round for late in stale]
        self.report.round(this, [late.task for late in over], merged, staleness, evaluation, self.clock.now)
        return evaluation


def _succeed_once(event: simpy.Event) -> None:
    if not event.triggered:
        event.succeed()
