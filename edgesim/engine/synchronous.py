"""The synchronous round: check-in is over; decide, work, close, aggregate, report."""

import math
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import simpy

from edgesim.arrays import Floats, Integers
from edgesim.devices.energy import activity_energy_j
from edgesim.engine.clock import Kind, rounding_s, succeed_once
from edgesim.engine.decision import Timeline, admit, exceed, needs_hz, share
from edgesim.engine.estimates import PlannedEstimates, feedback
from edgesim.engine.offers import Offers
from edgesim.engine.report import Origin, RoundRow, bits_down, bits_on_wires, standing
from edgesim.engine.rounds import RoundNumber, moved_deadline_s
from edgesim.engine.run_protocol import RunProtocol
from edgesim.engine.work import Outcome, RoundSignals, Task, meet, work
from edgesim.learning.interface import Evaluation, Merged, Stale, TrainingRound
from edgesim.selection.column import Column
from edgesim.selection.view import Drafter, RoundReport, RoundView


@dataclass
class OpenRound:
    """One round in flight: its tasks and what the server has heard so far."""

    number: RoundNumber
    t_start_s: float
    tmax_s: float
    """The deadline, from the round's start."""
    deadline_s: float
    candidates: Integers
    """Checked-in devices, ascending."""
    broadcast_s: Floats
    """What the model takes to each station from where it was merged, [M]."""
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
    picked: int = 0
    """How many of those arrived the policy picked for the merge."""
    infeasible_share: float | None = None
    """Share of the checked-in whose least bandwidth is above the band, or who have not reported in time; only
    worked out where the band decides who is taken."""
    wall_s: dict[str, float] = field(default_factory=dict)
    checked_in: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Candidates and those still at work for an earlier round, ascending."""
    over: list["Carried"] = field(default_factory=list)
    """Work of earlier rounds that ended in this one, from its close on."""
    fates: list[Outcome | None] = field(default_factory=list)
    """How it stood with the devices taken at the close."""

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
class Series:
    """Rounds of one deadline that began each where the one before was due.

    The clock's sum over them would drift from the multiples of the deadline, at which slots of availability have edges.
    """

    start_s: float
    tmax_s: float
    rounds: int = 0

    @property
    def due_s(self) -> float:
        """When the last of them is due."""
        return self.start_s + self.rounds * self.tmax_s


@dataclass
class Synchronous(RunProtocol):
    """The synchronous protocol; its state: who was selected how often, whose upload is still on the air, batteries."""

    times_selected: Integers
    tmax_s: float
    """Deadline of the next round; it moves with the rounds' lengths under REFL's rule (``round.moving_deadline``)."""
    carried: dict[int, Carried] = field(default_factory=dict)
    """Latecomers by device."""
    merged_in_cloud: bool = True
    """Whether the model to be broadcast comes from the cloud, not from the edge servers."""
    series: Series | None = None
    """The rounds up to the last one that began each where the one before was due."""
    apart: set[int] = field(default_factory=set)
    """Servers that have merged updates since the last average in the cloud."""
    open: OpenRound | None = None
    """The round in flight, until it has its rows."""

    def meet_slot(self) -> None:
        """A slot of availability by rounds begins: latecomers leave their work or go on with it."""
        late = [one for one in self.carried.values() if one.process.is_alive]
        if self.world.config.availability.interruption == "ignore" or not late:
            return
        here = self.world.availability.available(np.array([one.task.device for one in late]), self.clock.now)
        for one, is_here in zip(late, here.tolist(), strict=True):
            meet(self.clock, one.task, one.process, is_here)

    def _deadline_s(self, now_s: float) -> float:
        """When a round that begins now is due."""
        if self.series is None or self.series.due_s != now_s or self.series.tmax_s != self.tmax_s:
            self.series = Series(now_s, self.tmax_s)
        self.series.rounds += 1
        return self.series.due_s

    def round(
        self, number: RoundNumber, ids: Integers, samples: Integers, check_in_wall_s: float
    ) -> Generator[simpy.Event, Any, Evaluation | None]:
        """One round among the checked-in ``ids`` that process ``samples`` each; the last evaluation in its course.

        ``check_in_wall_s`` is the wall time that finding them took.
        """
        started = time.perf_counter() - check_in_wall_s
        knobs = self.world.config.round
        now_s = self.clock.now
        checked_in = ids
        if self.carried:
            at_work = [device for device, late in self.carried.items() if late.task.phase != "ended"]
            free = ~np.isin(ids, at_work)
            ids, samples = ids[free], samples[free]
        self.open = this = OpenRound(
            number,
            now_s,
            self.tmax_s,
            self._deadline_s(now_s),
            ids,
            self.backhaul.broadcast_s(self.merged_in_cloud),
            self.learner.open_round(number.round, number.frame),
            self.clock.event(),
            self.clock.event(),
            self.clock.event(),
            checked_in=checked_in,
        )
        self.clock.call_at(this.deadline_s, Kind.DEADLINE, lambda: succeed_once(this.closed))
        if knobs.delay_knowledge == "reported":
            yield from self._decide_on_reports(this, samples)
        else:
            self._decide_at_once(this, samples)
        yield this.closed
        this.over = self._end_or_carry(this)
        # The interrupts above are events of this instant; the rows are complete once they have run.
        yield self.clock.timeout(0)
        with this.timed("evaluate"):
            # The model is made when it has come together: until the cloud has averaged, the one before is in force.
            tested = self.evaluations.before_merge(self.clock.now + self._to_cloud_s(number))
        # Before time passes again: who is late now may have arrived when the cloud has averaged.
        this.fates = [task.fate for task in this.tasks.values() if task.taken]
        merged, origin = self._merge(this)
        yield from self._average_in_cloud(number)
        evaluation = self._conclude(this, merged, origin) or tested
        self.open = None
        if knobs.moving_deadline is not None:
            length_s = self.clock.now - this.t_start_s
            self.tmax_s = moved_deadline_s(knobs.moving_deadline, length_s, self.tmax_s)
        this.wall_s["round"] = time.perf_counter() - started
        self.report.timing(number.round, this.wall_s)
        return evaluation

    def _decide_at_once(self, this: OpenRound, samples: Integers) -> None:
        """`known` and `planned`: the band is shared at the round's start."""
        world, knobs, ids, number = self.world, self.world.config.round, this.candidates, this.number.round
        compute_s = Column(len(ids), lambda rows: world.compute_s(ids[rows], number, samples[rows]))
        delay_s = compute_s
        if knobs.delay_knowledge == "planned":
            quantile = knobs.plan_quantile
            assert quantile is not None
            delay_s = Column(len(ids), lambda rows: world.planned_compute_s(ids[rows], samples[rows], quantile))
        timeline = self._timeline(this, ids, delay_s, None)
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
        report_by_s = this.t_start_s + min(knobs.report_by_s, this.tmax_s)
        self.clock.call_at(report_by_s, Kind.DECISION, lambda: succeed_once(this.all_reported))
        yield this.all_reported
        reporters = np.isin(ids, list(this.reports))
        decided_s = self.clock.now - this.t_start_s
        timeline = self._timeline(this, ids[reporters], compute_s[reporters], decided_s)
        taken, bandwidth_hz = self._decide(this, timeline)
        self._grant(this, timeline.ids[taken], bandwidth_hz)
        this.decision.succeed()

    def _timeline(self, this: OpenRound, ids: Integers, delay_s: Floats | Column, decided_s: float | None) -> Timeline:
        due_s = this.tmax_s - self.backhaul.of_station_s
        return Timeline(ids, delay_s, this.t_start_s, this.broadcast_s, self.payload_bits, due_s, decided_s)

    def _start(self, this: OpenRound, ids: Integers, compute_s: Floats) -> None:
        """Devices begin to work: submit their training jobs, start their processes."""
        knobs = self.world.config.round
        signals = RoundSignals(
            self.bands,
            this.decision,
            this.deadline_s,
            rounding_s(this.tmax_s, this.deadline_s),
            lambda task: self._on_computed(this, task),
            lambda task: self._on_arrived(this, task),
            lambda _: None,
            self.interruptions.back_s,
            self._on_phase,
        )
        # Work that may go on after the deadline has to be told when its device leaves, however late that is.
        horizon_s = this.deadline_s - signals.tolerance_s if knobs.late == "drop" else math.inf
        leaves_s = self.interruptions.leaves_s(ids, self.clock.now, horizon_s)
        this.training.start(ids)
        station = self.world.population.station[ids]
        up_s, down_s = self.backhaul.of_station_s[station], this.broadcast_s[station]
        distribution = this.training.distribution
        own = np.zeros(len(ids), dtype=bool) if distribution is None else distribution.tolerable[ids]
        download_s = np.where(own, 0.0, self.world.download_s(ids, self.payload_bits))
        down_s = np.where(own, 0.0, down_s)
        columns = (ids, download_s, compute_s, leaves_s, station, up_s, down_s, own)
        for device, receive_s, delay_s, leave_s, at, to_server_s, from_server_s, has_own in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            task = Task(device, receive_s, delay_s, leave_s, self.payload_bits, at, to_server_s, from_server_s)
            task.own_model, task.number = has_own, this.number.round
            this.tasks[device] = task
            this.processes[device] = self.clock.process(work(self.clock, task, signals))

    def _decide(self, this: OpenRound, timeline: Timeline) -> tuple[Integers, Floats]:
        """Positions taken, in order, and their bandwidths."""
        with this.timed("decide"):
            config, number, world = self.world.config, this.number, self.world
            if config.round.admission == "band":
                this.infeasible_share = 1.0
            bands_hz = world.bands_hz.copy()
            for late in self.carried.values():
                # Links of their own take nothing of a band: latecomers on them hold no reservation.
                if late.task.phase not in ("backhaul", "ended"):
                    bands_hz[late.task.station] -= late.task.bandwidth_hz
            # Where latecomers hold a station's whole band, what rounding leaves of it is none.
            full = bands_hz <= 1e-9 * world.bands_hz
            all_ids, station = timeline.ids, world.population.station[timeline.ids]
            if full.any():
                timeline = replace(timeline, ids=all_ids[~full[station]], delay_s=timeline.delay_s[~full[station]])
                station = station[~full[station]]
            ids = timeline.ids
            if len(ids) == 0:
                return np.empty(0, dtype=np.int64), np.empty(0)
            need_hz = Column(len(ids), lambda rows: needs_hz(world, timeline, number.round, rows))
            count = config.round.count
            invited = None if count is None else math.ceil(config.round.over_commitment * count - 1e-9)
            view = RoundView(
                round=number.round,
                frame=number.frame,
                round_in_frame=number.round_in_frame,
                rounds_in_frame=number.rounds_in_frame,
                t_s=this.t_start_s,
                tmax_s=this.tmax_s,
                batch_size=config.learning.batch_size,
                ids=ids,
                gain=Column(len(ids), lambda rows: world.gain(ids[rows], number.round)),
                delay_s=timeline.delay_s,
                need_hz=need_hz,
                samples=self.data_sizes[number.frame][ids],
                work_samples=self.work_samples[number.frame][ids],
                times_selected=self.times_selected[ids],
                streams=world.streams,
                knowledge=this.training,
                estimates=PlannedEstimates(
                    world,
                    timeline,
                    need_hz,
                    Column(len(ids), lambda rows: world.planned_rx_power_w(ids[rows], number.round)),
                    station,
                    bands_hz,
                    invited,
                ),
            )
            if config.round.admission == "band":
                feasible = np.count_nonzero(np.asarray(need_hz) <= bands_hz[station])
                this.infeasible_share = 1.0 - feasible / len(this.candidates)
            taken = admit(config.selection.policy, self.selector, view, station, bands_hz, invited)
            self.report.totals.overfull += exceed(need_hz[taken], station[taken], bands_hz)
            shares_hz = share(world, timeline, need_hz, taken, number.round, bands_hz)
            return np.searchsorted(all_ids, ids[taken]) if full.any() else taken, shares_hz

    def _grant(self, this: OpenRound, ids: Integers, bandwidth_hz: Floats) -> None:
        """Tell every task whether it uploads, and on which reservation."""
        this.selected = ids
        rx_power_w = self.world.drawn_rx_power_w(ids, this.number.round)
        for task in this.tasks.values():
            task.taken = False
        for device, hz, power_w in zip(ids.tolist(), bandwidth_hz.tolist(), rx_power_w.tolist(), strict=True):
            task = this.tasks[device]
            task.taken, task.bandwidth_hz, task.rx_power_w = True, hz, power_w

    def _on_phase(self, task: Task) -> float:
        """What a device draws changes with its phase; when its battery will be empty."""
        if self.batteries is None:
            return math.inf
        draw_w = activity_energy_j(self.world.population, task.device, task.phase, 1.0)
        return self.batteries.draw(task.device, draw_w, self.clock.now)

    def _on_computed(self, this: OpenRound, task: Task) -> None:
        this.training.due(task.device)
        this.reports.add(task.device)
        # A silent drop-out never reports, so only the alarm at report_by_s ends the wait for it.
        if len(this.reports) == len(this.tasks):
            succeed_once(this.all_reported)

    def _on_arrived(self, this: OpenRound, task: Task) -> None:
        if task.carried:
            self.carried[task.device].arrived = True
            return
        this.arrived.add(task.device)
        knobs = self.world.config.round
        wanted = len(this.selected) if knobs.over_commitment == 1 else min(len(this.selected), knobs.count or 0)
        if knobs.close == "arrivals" and len(this.arrived) == wanted:
            succeed_once(this.closed)

    def _end_or_carry(self, this: OpenRound) -> list[Carried]:
        """Break off what is still at work, but for latecomers that are kept; returns those that are no longer."""
        over = [late for late in self.carried.values() if late.task.phase == "ended"]
        for late in over:
            del self.carried[late.task.device]
        keeps = self.world.config.round.late == "keep" and not this.number.last_of_frame
        for device, process in this.processes.items():
            task = this.tasks[device]
            if process.is_alive and keeps and task.taken and task.phase != "ended":
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

    def _merge(self, this: OpenRound) -> tuple[Merged, Origin]:
        """Merge what arrived and is picked, and tell the selector; also what was merged."""
        arrived = np.array([device for device in this.selected.tolist() if device in this.arrived], dtype=np.int64)
        limit = self.world.config.staleness.limit
        kept = [
            late for late in this.over if late.arrived and (limit is None or this.number.round - late.round <= limit)
        ]
        stale = [Stale(late.training, late.task.device, this.number.round - late.round) for late in kept]
        picked = arrived
        if isinstance(self.selector, Drafter):
            picked = self.selector.draft(self._by_arrival(this, arrived), len(this.candidates))
            policy = self.world.config.selection.policy
            Offers(policy, this.number.round, np.sort(arrived), "those whose updates arrived").rows(picked)
        this.picked = len(picked)
        with this.timed("train"):
            merged = this.training.merge(picked, stale, np.setdiff1d(arrived, picked))
        self.apart.update(self.backhaul.edge[self.world.population.station[merged.ids]].tolist())
        self.times_selected[this.selected] += 1
        with this.timed("feedback"):
            fresh = merged.ids[: len(merged.ids) - len(stale)]
            heard = feedback(merged, [this.tasks[device] for device in fresh.tolist()] + [late.task for late in kept])
            self.selector.hear(
                RoundReport(
                    this.number.round,
                    lambda: this.checked_in,
                    this.selected,
                    arrived,
                    heard,
                    this.training,
                    self.clock.now - this.t_start_s,
                )
            )
        ages = [0] * len(fresh) + [late.staleness for late in stale]
        return merged, Origin([this.number.round - age for age in ages], ages)

    def _by_arrival(self, this: OpenRound, ids: Integers) -> Integers:
        """Devices whose updates arrived, the first first, the lowest id at one instant."""
        tasks = [this.tasks[device] for device in ids.tolist()]
        arrived_s = np.array([task.spans[-1].t_end_s + task.backhaul_s for task in tasks])
        return ids[np.lexsort((ids, arrived_s))]

    def _averages(self, number: RoundNumber) -> bool:
        """Whether the edge servers' models are averaged in the cloud after a round."""
        every = self.world.config.topology.cloud_every
        return every is not None and (number.round_in_frame % every == 0 or number.last_of_frame)

    def _to_cloud_s(self, number: RoundNumber) -> float:
        """What the models take to the cloud after a round; 0 where they are not averaged there then."""
        return float(self.backhaul.to_cloud_s.max()) if self._averages(number) else 0.0

    def _average_in_cloud(self, number: RoundNumber) -> Generator[simpy.Event, Any, None]:
        """Every so many rounds, and at a frame's end, the edge servers' models travel to the cloud and are averaged."""
        if self.world.config.topology.cloud_every is None:
            return
        self.merged_in_cloud = self._averages(number)
        if self.merged_in_cloud:
            yield self.clock.timeout(self._to_cloud_s(number))
            self.learner.average_in_cloud()
            self.apart.clear()

    def _conclude(self, this: OpenRound, merged: Merged, origin: Origin) -> Evaluation | None:
        """Evaluate and write the rows."""
        with this.timed("evaluate"):
            evaluation = self.evaluations.of_row(this.number, self.clock.now)
        tasks, fates = list(this.tasks.values()), this.fates
        row = RoundRow(
            round=this.number.round,
            frame=this.number.frame,
            t_start_s=this.t_start_s,
            t_end_s=self.clock.now,
            candidates=len(this.candidates),
            selected=len(fates),
            arrived=fates.count("done"),
            late=fates.count("late"),
            dropped=fates.count("dropped"),
            jobs_trained=this.training.jobs_trained,
            bits_down=bits_down(tasks),
            bandwidth_hz=sum(task.bandwidth_hz for task in tasks),
            # Of several servers that went on by themselves, nobody has the mean.
            model_held=self.world.config.topology.cloud_every is None or len(self.apart) <= 1,
        )
        values = {} if this.infeasible_share is None else {("infeasible_share", ""): this.infeasible_share}
        station = self.world.population.station[merged.ids]
        values |= bits_on_wires(self.backhaul, station, self.payload_bits, self.merged_in_cloud)
        if this.training.distribution is not None:
            started = np.array([task.device for task in tasks], dtype=np.int64)
            values |= standing(this.training.distribution, started, this.picked, len(this.arrived))
        self.report.round(row, self._ended(this), merged, origin, evaluation, values)
        return evaluation

    def _ended(self, this: OpenRound) -> list[Task]:
        """Tasks whose rows are those of a round that is closed."""
        return [late.task for late in this.over] + [task for task in this.tasks.values() if not task.carried]

    def break_off(self) -> list[Task]:
        """End all work, since the run is over; tasks that have no rows yet, whose processes end at this instant."""
        this, late = self.open, list(self.carried.values())
        tasks = ([] if this is None else self._ended(this)) + [carried.task for carried in late]
        processes = [carried.process for carried in late]
        if this is not None:
            processes += [process for device, process in this.processes.items() if not this.tasks[device].carried]
        for process in processes:
            if process.is_alive:
                process.interrupt("cancelled")
        return tasks
