"""Synchronous rounds: check in, decide, work, close, aggregate, report."""

import math
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import simpy

from edgesim.base.arrays import Floats, Integers
from edgesim.base.saved import restore_attributes, saved_attributes
from edgesim.engine.at_work import Working, restore, snapshot
from edgesim.engine.check_in import check_in
from edgesim.engine.choose import choose
from edgesim.engine.clock import EventKind, drift_s, rounding_s, succeed_once
from edgesim.engine.deadlines import Deadlines
from edgesim.engine.decision import exceed, make_timeline, share
from edgesim.engine.estimates import feedback
from edgesim.engine.offers import Offers
from edgesim.engine.open_round import OpenRound
from edgesim.engine.protocol import RoundNumber, Step, stopped, too_few_left
from edgesim.engine.report import Origin, RoundRow, bits_on_wires
from edgesim.engine.run_parts import RunParts
from edgesim.engine.stagnation import Stagnation
from edgesim.engine.work import ENDED, RoundSignals, Task, Work
from edgesim.learning.interface import Evaluation, Merged
from edgesim.learning.jobs import Arrived, Promise, build_jobs
from edgesim.selection.column import Column
from edgesim.selection.view import Drafter, RoundReport


@dataclass
class Synchronous:
    """The synchronous protocol, and its state from round to round."""

    SAVED: ClassVar = ("times_selected", "deadlines", "merged_in_cloud", "apart", "computed", "schedule", "models")

    parts: RunParts
    times_selected: Integers
    """Rounds in which each device was taken, [devices]."""
    deadlines: Deadlines
    schedule: Stagnation | None = None
    """Schedule of the rounds that make a model; all do when absent."""
    latecomers: dict[tuple[int, int], Working] = field(default_factory=dict)
    """Latecomers, whose work is kept past the close, by device and number of their task: while an update of a device
    travels by wire, the device may begin another task and be late with that as well."""
    merged_in_cloud: bool = True
    """Whether the model to be broadcast comes from the cloud, not from the edge servers."""
    apart: set[int] = field(default_factory=set)
    """Servers that have merged updates since the last average in the cloud."""
    open: OpenRound | None = None
    """The round in flight, until it has its rows."""
    computed: list[Promise] = field(default_factory=list)
    """Jobs whose computing has ended since the last merge, if devices join by how they train."""
    models: Integers = field(init=False)
    """Number of models that each server has sent or is to send after the first, [E]: at most one in a round."""

    def __post_init__(self) -> None:
        self.models = np.zeros(len(self.parts.backhaul.servers), dtype=np.int64)
        # Whether a policy drafts is asked once: to look whether it has all methods takes as long as many events.
        self._drafter = self.parts.selector if isinstance(self.parts.selector, Drafter) else None
        self._measures = self.parts.learner.accounts.measured is not None

    def step(self, number: RoundNumber) -> Step:
        """One round, once enough devices have checked in."""
        parts, config = self.parts, self.parts.world.config
        # No round begins at the instant at which the run is to end, up to the clock's rounding.
        if config.stop_at_s is not None and parts.clock.now > config.stop_at_s - drift_s(config.round.tmax_s):
            return stopped(config), None
        started = time.perf_counter()
        ids = yield from check_in(parts, self._meet_slot)
        if ids is None:
            return too_few_left(config, parts.world.search), None
        if self.schedule is not None:
            if number.round == 1:
                parts.report.write_metrics(0, self._hear_accuracy(0, is_new=True).items())
            parts.learner.accounts.is_due = self.schedule.is_due(number.round)
        evaluation = yield from self._round(number, ids, time.perf_counter() - started)
        return None, evaluation

    def _meet_slot(self) -> None:
        """Let latecomers leave their work or resume it, as a slot of availability by rounds begins."""
        world, clock = self.parts.world, self.parts.clock
        late = [working for working in self.latecomers.values() if working.task.phase != ENDED]
        if world.config.availability.interruption == "ignore" or not late:
            return
        here = world.availability.available(np.array([working.task.device for working in late]), clock.now)
        for working, is_here in zip(late, here.tolist(), strict=True):
            working.work.meet(is_here)

    def _round(
        self, number: RoundNumber, checked_in: Integers, check_in_wall_s: float
    ) -> Generator[simpy.Event, Any, Evaluation | None]:
        """Run one round among the devices ``checked_in``; returns the last evaluation on the way.

        ``check_in_wall_s`` is the wall time that their check-in took.
        """
        started = time.perf_counter() - check_in_wall_s
        parts, clock, knobs = self.parts, self.parts.clock, self.parts.world.config.round
        candidates = checked_in
        if self.latecomers:
            at_work = [late.task.device for late in self.latecomers.values() if late.task.needs_device]
            candidates = checked_in[~np.isin(checked_in, at_work)]
        answers = None if parts.joiners is None else parts.joiners.ask(candidates, number.round)
        candidates = candidates if answers is None else answers.joiners
        self.open = this = OpenRound(
            number,
            clock.now,
            self.deadlines.tmax_s,
            self.deadlines.next_due_s(clock.now),
            candidates,
            parts.learner.open_round(number.round, number.frame, t_s=clock.now),
            parts.learner.jobs_trained,
            simpy.Event(clock),
            simpy.Event(clock),
            simpy.Event(clock),
            checked_in=checked_in,
            answers=answers,
        )
        clock.call_at(this.deadline_s, EventKind.DEADLINE, lambda _: succeed_once(this.closed))
        if knobs.delay_knowledge == "reported":
            yield from self._decide_on_reports(this)
        else:
            self._decide_at_once(this)
        yield this.closed
        this.over = self._end_or_keep(this)
        accounts = parts.learner.accounts
        if self.schedule is not None:
            self._settle_work(this)
        arrived, updates = self._updates(this)
        merging = accounts.used([update for _, update in updates]) if accounts.is_due else []
        server_s = accounts.server_s(len(merging))
        with this.timed("evaluate"):
            # Until the server has computed and the cloud averaged edge servers' models, the model before is in force.
            tested = parts.evaluations.before_merge(clock.now + server_s + self._to_cloud_s(number))
        # Noted before time passes again: an update that is late now may arrive while server or cloud compute.
        this.fates = [working.task.fate for working in this.working.values() if working.task.taken]
        merged, origin = self._merge(this, arrived, updates)
        if server_s:
            yield clock.timeout(server_s)
        yield from self._average_in_cloud(number)
        evaluation = self._conclude(this, merged, origin) or tested
        self.open = None
        if knobs.moving_deadline is not None:
            self.deadlines.move(knobs.moving_deadline, clock.now - this.t_start_s)
        this.wall_s["round"] = time.perf_counter() - started
        parts.report.timing(number.round, this.wall_s)
        return evaluation

    def _decide_at_once(self, this: OpenRound) -> None:
        """Share the band at the round's start, with ``known`` or ``planned`` delays."""
        world, knobs, ids, number = self.parts.world, self.parts.world.config.round, this.candidates, this.number
        begun_s = self._start(this, ids) if knobs.computes == "candidates" else None
        if begun_s is not None and knobs.delay_knowledge == "known":
            self._grant(this, *self._decide(this, ids, begun_s))
            return
        samples = self.parts.learner.accounts.charged_samples(ids, number.round)
        compute_s = Column(len(ids), lambda rows: world.compute_s(ids[rows], number.round, samples[rows]))
        delay_s = compute_s
        if knobs.delay_knowledge == "planned":
            quantile = knobs.plan_quantile
            assert quantile is not None
            delay_s = Column(len(ids), lambda rows: world.planned_compute_s(ids[rows], samples[rows], quantile))
        taken, bandwidth_hz = self._decide(this, ids, delay_s)
        if knobs.computes == "selected":
            rows = np.searchsorted(ids, np.sort(taken))
            self._start(this, ids[rows], compute_s[rows])
        self._grant(this, taken, bandwidth_hz)

    def _decide_on_reports(self, this: OpenRound) -> Generator[simpy.Event, Any, None]:
        """Share the band at the last report or at ``report_by_s``, among the devices that have reported."""
        clock, knobs, ids = self.parts.clock, self.parts.world.config.round, this.candidates
        compute_s = self._start(this, ids)
        assert knobs.report_by_s is not None
        report_by_s = this.t_start_s + min(knobs.report_by_s, this.tmax_s)
        clock.call_at(report_by_s, EventKind.DECISION, lambda _: succeed_once(this.all_reported))
        yield this.all_reported
        reporters = np.isin(ids, list(this.reports))
        decision = self._decide(this, ids[reporters], compute_s[reporters], clock.now - this.t_start_s)
        self._grant(this, *decision)
        this.decision.succeed()

    def _start(self, this: OpenRound, ids: Integers, compute_s: Floats | None = None) -> Floats:
        """Submit the training jobs of devices and begin their tasks; returns their compute delays in seconds, [n].

        The delays are those drawn before, ``compute_s``, if there are any and the algorithm does not settle them later.
        """
        parts, clock, number = self.parts, self.parts.clock, this.number.round
        promises, accounts = this.training.start(ids), parts.learner.accounts
        if compute_s is None or accounts.settled_at_begin:
            compute_s = parts.world.compute_s(ids, number, accounts.charged_samples(ids, number))
        tolerance_s = rounding_s(this.tmax_s, this.deadline_s)
        signals = self._signals(this.decision, this.deadline_s, tolerance_s)
        # Work that may continue after the deadline needs the instant at which its device leaves, however late that is.
        horizon_s = this.deadline_s - tolerance_s if parts.world.config.round.late == "drop" else math.inf
        leaves_s = parts.interruptions.leaves_s(ids, clock.now, horizon_s)
        numbers = [number] * len(ids)
        tasks = parts.tasks(ids, number, self.merged_in_cloud, numbers, compute_s.tolist(), leaves_s.tolist())
        versions = self.models[parts.backhaul.edge[parts.world.population.station[ids]]].tolist()
        for task, promise, version in zip(tasks, promises, versions, strict=True):
            this.working[task.device] = Working(task, promise, Work(clock, task, signals), version)
        return compute_s

    def _signals(self, decision: simpy.Event, deadline_s: float, tolerance_s: float) -> RoundSignals:
        callbacks = self._on_computed, self._on_arrived, lambda _: None
        return self.parts.signals(decision, deadline_s, tolerance_s, callbacks)

    def _decide(
        self, this: OpenRound, ids: Integers, delay_s: Floats | Column, decided_s: float | None = None
    ) -> tuple[Integers, Floats]:
        """Choose among the devices ``ids``; returns those taken, in order, and their bandwidths in Hz.

        ``delay_s`` and ``decided_s`` as in `make_timeline`.
        """
        with this.timed("decide"):
            parts, number, world, knobs = self.parts, this.number, self.parts.world, self.parts.world.config.round
            if knobs.admission == "band":
                this.infeasible_share = 1.0
            bands_hz = world.bands_hz.copy()
            for late in self.latecomers.values():
                # Links of their own take nothing of a band: latecomers on them hold no reservation.
                if late.task.needs_device:
                    bands_hz[late.task.station] -= late.task.bandwidth_hz
            # Where latecomers hold a station's whole band, the subtraction leaves a remainder of rounding, not a band.
            free = bands_hz > 1e-9 * world.bands_hz
            if np.count_nonzero(free) < len(free):
                rows = free[world.population.station[ids]]
                ids, delay_s = ids[rows], delay_s[rows]
            if len(ids) == 0:
                return ids, np.empty(0)
            instants_s = this.t_start_s, this.tmax_s, decided_s
            timeline = make_timeline(parts.planner, number.round, ids, delay_s, *instants_s, self.merged_in_cloud)
            invited = None if knobs.count is None else math.ceil(knobs.over_commitment * knobs.count - 1e-9)
            station, need_hz = timeline.station, timeline.need_hz
            if knobs.admission == "band":
                feasible = np.count_nonzero(np.asarray(need_hz) <= bands_hz[station])
                this.infeasible_share = 1.0 - feasible / len(this.candidates)
            taken = choose(parts, number, timeline, self.times_selected[ids], this.training, bands_hz, invited)
            parts.report.totals.overfull += exceed(need_hz[taken], station[taken], bands_hz)
            return ids[taken], share(timeline, taken, bands_hz)

    def _grant(self, this: OpenRound, ids: Integers, bandwidth_hz: Floats) -> None:
        """Set in every task whether its device uploads, and on which reservation."""
        this.selected, knobs = ids, self.parts.world.config.round
        if knobs.close == "arrivals":
            this.closes_with = len(ids) if knobs.over_commitment == 1 else min(len(ids), knobs.count or 0)
        rx_power_w = self.parts.world.drawn_rx_power_w(ids, this.number.round)
        for working in this.working.values():
            working.task.taken = False
        for device, hz, power_w in zip(ids.tolist(), bandwidth_hz.tolist(), rx_power_w.tolist(), strict=True):
            task = this.working[device].task
            task.taken, task.bandwidth_hz, task.rx_power_w = True, hz, power_w

    def _on_computed(self, task: Task) -> None:
        if task.carried:
            self._is_due(self.latecomers[task.key].promise)
            return
        this = self.open
        assert this is not None
        self._is_due(this.working[task.device].promise)
        this.reports.add(task.device)
        # A silent drop-out never reports, so only the alarm at report_by_s ends the wait for it.
        if len(this.reports) == len(this.working):
            succeed_once(this.all_reported)

    def _is_due(self, promise: Promise) -> None:
        promise.due = True
        if self._measures:
            self.computed.append(promise)

    def _on_arrived(self, task: Task) -> None:
        if task.carried:
            self.latecomers[task.key].arrived = True
            return
        this = self.open
        assert this is not None
        this.arrived.add(task.device)
        if len(this.arrived) == this.closes_with:
            succeed_once(this.closed)

    def _end_or_keep(self, this: OpenRound) -> list[Working]:
        """Break off the work in flight but that of latecomers to be kept; returns the latecomers whose work is over."""
        over = [late for late in self.latecomers.values() if late.task.phase == ENDED]
        for late in over:
            del self.latecomers[late.task.key]
        keeps = self.parts.world.config.round.late == "keep" and not this.number.last_of_frame
        for working in this.working.values():
            task = working.task
            if keeps and task.taken and task.phase != ENDED:
                task.carried, task.fate = True, "late"
                self.latecomers[task.key] = working
            else:
                working.work.break_off()
        if this.number.last_of_frame:
            over += self.latecomers.values()
            for late in self.latecomers.values():
                late.work.break_off()
            self.latecomers.clear()
        return over

    def _updates(self, this: OpenRound) -> tuple[Integers, list[tuple[Task, Arrived]]]:
        """Devices whose updates arrived in time, and all updates that have arrived, in order of their start.

        Updates that were not picked come last. In a skipped round these are the devices that have sent anything, and
        the work of all devices.
        """
        world, number, accounts = self.parts.world, this.number, self.parts.learner.accounts
        arrived = np.array([device for device in this.selected.tolist() if device in this.arrived], dtype=np.int64)
        if not accounts.is_due:
            trained = [this.working[device] for device in arrived.tolist()]
            return arrived[: len(arrived) * accounts.sends], [(at.task, Arrived(at.promise)) for at in trained]
        limit = world.config.staleness.limit
        late = [(at, int(self.models[self._server(at.task)]) - at.version) for at in this.over if at.arrived]
        picked, unpicked = arrived, arrived[:0]
        if self._drafter is not None:
            picked = self._drafter.draft(self._by_arrival(this, arrived), len(this.candidates))
            policy = world.config.selection.policy
            Offers(policy, number.round, np.sort(arrived), "those whose updates arrived").rows(picked)
            unpicked = np.setdiff1d(arrived, picked)
        in_time, undrafted = ([this.working[device] for device in ids.tolist()] for ids in (picked, unpicked))
        updates = [(at.task, Arrived(at.promise, age)) for at, age in late if limit is None or age <= limit]
        # A device is remembered by its last row: of two updates by the one that began later.
        updates.sort(key=lambda update: update[0].number)
        updates += [(at.task, Arrived(at.promise)) for at in in_time]
        updates += [(at.task, Arrived(at.promise, picked=False)) for at in undrafted]
        return arrived, updates

    def _server(self, task: Task) -> int:
        """Position in `Backhaul.servers` of the server that merges the update of a task."""
        return int(self.parts.backhaul.edge[task.station])

    def _merge(self, this: OpenRound, arrived: Integers, updates: list[tuple[Task, Arrived]]) -> tuple[Merged, Origin]:
        """Merge the picked updates, none in a skipped round, and report to the selector; returns also their origin."""
        parts, number = self.parts, this.number
        with this.timed("train"):
            build_jobs([working.promise for working in self.latecomers.values()] + self.computed)
            began, brought = np.array(list(this.working), dtype=np.int64), [update for _, update in updates]
            is_due = parts.learner.accounts.is_due
            merged = parts.learner.merge(brought, began) if is_due else parts.learner.skip(brought)
            self._learn()
        if merged.server_wall_s:
            this.wall_s["train"] -= merged.server_wall_s
            this.wall_s["server"] = merged.server_wall_s
        # Updates that were not picked come last, and have rows where the algorithm merges them.
        tasks, merging = [task for task, _ in updates[: len(merged.ids)]], brought[: len(merged.ids)]
        servers = {self._server(task) for task in tasks}
        self.apart |= servers
        # Averaging in the cloud gives a new model to all, where any server has merged since the last time.
        self.models[slice(None) if self.apart and self._averages(number) else list(servers)] += 1
        self.times_selected[this.selected] += 1
        with this.timed("feedback"):
            answer, length_s = feedback(merged, tasks), parts.clock.now - this.t_start_s
            parts.selector.hear(
                RoundReport(
                    number.round, lambda: this.checked_in, this.selected, arrived, answer, this.training, length_s
                )
            )
        return merged, Origin(tasks, [update.staleness for update in merging])

    def _settle_work(self, this: OpenRound) -> None:
        """Note which devices have received the model, and the outcome of work that a skipped round does not use."""
        accounts, merging = self.parts.learner.accounts, self.parts.world.config.merging
        accounts.received([device for device, working in this.working.items() if working.task.has_received])
        if accounts.sends or merging is None:
            return
        for working in this.working.values():
            if working.task.fate == "done":
                working.task.spans[-1].outcome = "kept" if merging.skip == "carry" else "skipped"

    def _hear_accuracy(self, round: int, is_new: bool) -> dict[tuple[str, str], float]:
        """Pass the accuracy of the model after a round to the schedule; ``is_new`` is whether the round made the model.

        Returns rows of ``metrics`` by (name, key).
        """
        learner, merging = self.parts.learner, self.parts.world.config.merging
        assert self.schedule is not None
        assert merging is not None
        assert merging.signal is not None
        self.schedule.hear(round, learner.signal(merging.signal) if is_new else None)
        due = {("due", ""): float(learner.accounts.is_due)} if round else {}
        return due | {("schedule_accuracy", ""): self.schedule.accuracy}

    def _learn(self) -> None:
        """Let devices learn from their training accuracies, also those whose updates do not arrive."""
        joiners, promises = self.parts.joiners, self.computed
        if joiners is None or not promises:
            return
        for promise, accuracies in zip(promises, self.parts.learner.epoch_accuracies(promises), strict=True):
            joiners.learn(promise.device, accuracies)
        self.computed = []

    def _by_arrival(self, this: OpenRound, ids: Integers) -> Integers:
        """Devices whose updates arrived, in order of arrival, the lowest id first at one instant."""
        tasks = [this.working[device].task for device in ids.tolist()]
        arrived_s = np.array([task.spans[-1].t_end_s + task.backhaul_s for task in tasks])
        return ids[np.lexsort((ids, arrived_s))]

    def _averages(self, number: RoundNumber) -> bool:
        """Whether the edge servers' models are averaged in the cloud after a round."""
        every = self.parts.world.config.topology.cloud_every
        return every is not None and (number.round_in_frame % every == 0 or number.last_of_frame)

    def _to_cloud_s(self, number: RoundNumber) -> float:
        """Seconds that the models take to the cloud after a round; 0 if they are not averaged there then."""
        if not self._averages(number):
            return 0.0
        return float(self.parts.backhaul.to_cloud_s(self.parts.learner.accounts.model_bits).max())

    def _average_in_cloud(self, number: RoundNumber) -> Generator[simpy.Event, Any, None]:
        """Average the edge servers' models in the cloud, every so many rounds and at a frame's end."""
        if self.parts.world.config.topology.cloud_every is None:
            return
        self.merged_in_cloud = self._averages(number)
        if self.merged_in_cloud:
            yield self.parts.clock.timeout(self._to_cloud_s(number))
            self.parts.learner.average_in_cloud()
            self.apart.clear()

    def _conclude(self, this: OpenRound, merged: Merged, origin: Origin) -> Evaluation | None:
        """Evaluate the model and write the round's rows."""
        parts, number, now_s = self.parts, this.number, self.parts.clock.now
        with this.timed("evaluate"):
            evaluation = parts.evaluations.of_row(number, now_s)
        tasks, fates, accounts = [at.task for at in this.working.values()], this.fates, parts.learner.accounts
        row = RoundRow(
            round=number.round,
            frame=number.frame,
            t_start_s=this.t_start_s,
            t_end_s=now_s,
            candidates=len(this.candidates),
            selected=len(fates),
            arrived=fates.count("done") * accounts.sends,
            late=fates.count("late"),
            dropped=fates.count("dropped"),
            jobs_trained=parts.learner.jobs_trained - this.jobs_before,
            bandwidth_hz=sum([task.bandwidth_hz for task in tasks]),
            # Where several servers have models of their own, no server has the mean that is tested.
            model_held=parts.world.config.topology.cloud_every is None or len(self.apart) <= 1,
        )
        values = {} if this.infeasible_share is None else {("infeasible_share", ""): this.infeasible_share}
        values |= {} if this.answers is None else this.answers.values()
        model_bits = accounts.model_bits if self.merged_in_cloud else 0.0
        crossed = origin.tasks
        if not accounts.is_due and accounts.sends:
            crossed = [task for task in tasks if task.fate == "done"]
        values |= bits_on_wires(parts.backhaul, crossed, model_bits)
        values |= merged.metrics
        if self.schedule is not None:
            with this.timed("evaluate"):
                values |= self._hear_accuracy(number.round, is_new=len(merged.ids) > 0)
        parts.report.round(row, self._ended(this), merged, origin, evaluation, values)
        return evaluation

    def _ended(self, this: OpenRound) -> list[Task]:
        """Tasks whose rows are those of a round that is closed."""
        return [late.task for late in this.over] + [at.task for at in this.working.values() if not at.task.carried]

    def snapshot(self) -> dict[str, Any]:
        """Snapshot of the state between two models."""
        return saved_attributes(self) | {"carried": snapshot(self.parts.bands, self.latecomers.values())}

    def restore(self, remembered: dict[str, Any]) -> None:
        """Restore a snapshot, in a run whose clock stands at its instant."""
        clock, records = self.parts.clock, remembered.pop("carried")
        restore_attributes(self, remembered)
        works = restore(clock, records, lambda at: self._signals(clock.event(), at.deadline_s, at.tolerance_s))
        self.latecomers = {late.task.key: late for late in works}

    def break_off(self) -> list[Task]:
        """End all work, since the run is over; returns the tasks without rows."""
        this, late = self.open, list(self.latecomers.values())
        tasks = ([] if this is None else self._ended(this)) + [working.task for working in late]
        at_work = late + ([] if this is None else [at for at in this.working.values() if not at.task.carried])
        for working in at_work:
            working.work.break_off("cancelled")
        return tasks
