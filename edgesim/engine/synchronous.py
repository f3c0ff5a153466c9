"""Rounds: check in, decide, work, close, merge, report."""

import math
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import simpy

from edgesim.base.arrays import Floats, Integers
from edgesim.base.saved import restore_attributes, saved_attributes
from edgesim.engine.at_work import Working
from edgesim.engine.candidates import Everyone, make_candidates
from edgesim.engine.check_in import check_in
from edgesim.engine.choose import choose
from edgesim.engine.clock import EventKind, drift_s, rounding_s, succeed_once
from edgesim.engine.deadlines import Deadlines, make_deadlines
from edgesim.engine.decision import exceed, make_timeline, share
from edgesim.engine.drafting import AllArrivals, make_drafting
from edgesim.engine.due_rounds import EveryRound, make_due_rounds
from edgesim.engine.ended_work import Brought, EndedWork, ended_work
from edgesim.engine.known_work import Grants, KnownWork, Tasks
from edgesim.engine.latecomers import Latecomers
from edgesim.engine.open_round import OpenRound
from edgesim.engine.process import RoundNumber, Step, Steps, Wanted, stopped, too_few_left
from edgesim.engine.report import Origin, RoundRow, bits_on_wires
from edgesim.engine.run_parts import RunParts
from edgesim.engine.servers import OneServer, make_servers
from edgesim.engine.watched import wanted_arrivals
from edgesim.engine.work import RoundSignals, Task, Work
from edgesim.learning.interface import Merged
from edgesim.learning.jobs import Arrived, build_jobs
from edgesim.selection.column import Column


@dataclass
class Rounds:
    """Process of protocols with rounds, and its state from round to round."""

    SAVED: ClassVar = ("times_selected",)
    PARTS: ClassVar = ("candidates", "deadlines", "due_rounds", "servers")
    """Parts of a round, each with a state of its own; that of the latecomers is made of records."""

    parts: RunParts
    wanted: Wanted
    times_selected: Integers = field(init=False)
    """Rounds in which each device was taken, [devices]."""
    candidates: Everyone = field(init=False)
    deadlines: Deadlines = field(init=False)
    due_rounds: EveryRound = field(init=False)
    servers: OneServer = field(init=False)
    latecomers: Latecomers = field(init=False)
    drafting: AllArrivals = field(init=False)
    open: OpenRound | None = None
    """The round in flight, until it has its rows."""

    def __post_init__(self) -> None:
        parts, config = self.parts, self.parts.world.config
        self.times_selected = np.zeros(config.devices.count, dtype=np.int64)
        self.candidates, self.deadlines = make_candidates(parts), make_deadlines(config.round)
        self.due_rounds, self.servers = make_due_rounds(parts), make_servers(parts)
        self.latecomers, self.drafting = Latecomers(parts), make_drafting(parts)

    def step(self, number: RoundNumber) -> Step:
        """One round, once enough devices have checked in."""
        parts, config = self.parts, self.parts.world.config
        # No round begins at the instant at which the run is to end, up to the clock's rounding.
        if config.stop_at_s is not None and parts.clock.now > config.stop_at_s - drift_s(config.round.tmax_s):
            return stopped(config)
        started = time.perf_counter()
        ids = yield from check_in(parts, self.latecomers.meet_slot)
        if ids is None:
            return too_few_left(config, parts.world.search)
        self.due_rounds.begin(number)
        self.open = this = self._open(number, ids)
        yield from self._decide(this)
        yield this.closed
        arrived, updates = self._close(this)
        merged, origin = yield from self._merge(this, arrived, updates)
        self._report(this, merged, origin)
        self.open = None
        self.deadlines.move(parts.clock.now - this.t_start_s)
        this.wall_s["round"] = time.perf_counter() - started
        parts.report.timing(number.round, this.wall_s)
        return None

    def _open(self, number: RoundNumber, checked_in: Integers) -> OpenRound:
        """Open a round among devices that have checked in, which closes at its deadline at the latest."""
        parts, clock = self.parts, self.parts.clock
        candidates = self.candidates.among(self.latecomers.without(checked_in), number.round)
        this = OpenRound(
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
        )
        clock.call_at(this.deadline_s, EventKind.DEADLINE, lambda _: succeed_once(this.closed))
        return this

    def _decide(self, this: OpenRound) -> Steps[None]:
        """Begin the work of devices and share the band, as soon as the delays are known that the decision goes by."""
        if self.parts.world.config.round.delay_knowledge == "reported":
            yield from self._decide_on_reports(this)
        else:
            yield from self._decide_at_once(this)

    def _decide_at_once(self, this: OpenRound) -> Steps[None]:
        """Share the band at the round's start, with ``known`` or ``planned`` delays."""
        world, knobs, ids, number = self.parts.world, self.parts.world.config.round, this.candidates, this.number
        begun_s = self._start(this, ids) if knobs.computes == "candidates" else None
        if begun_s is not None and knobs.delay_knowledge == "known":
            self._grant(this, *(yield from self._choose(this, ids, begun_s)))
            return
        samples = self.parts.learner.accounts.charged_samples(ids, number.round)
        compute_s = Column(len(ids), lambda rows: world.compute_s(ids[rows], number.round, samples[rows]))
        delay_s = compute_s
        if knobs.delay_knowledge == "planned":
            quantile = knobs.plan_quantile
            assert quantile is not None
            delay_s = Column(len(ids), lambda rows: world.planned_compute_s(ids[rows], samples[rows], quantile))
        decision = yield from self._choose(this, ids, delay_s)
        if knobs.computes == "selected":
            rows = np.searchsorted(ids, np.sort(decision[0]))
            self._start(this, ids[rows], compute_s[rows])
        self._grant(this, *decision)

    def _decide_on_reports(self, this: OpenRound) -> Steps[None]:
        """Share the band at the last report or at ``report_by_s``, among the devices that have reported."""
        clock, knobs, ids = self.parts.clock, self.parts.world.config.round, this.candidates
        compute_s = self._start(this, ids)
        assert knobs.report_by_s is not None
        report_by_s = this.t_start_s + min(knobs.report_by_s, this.tmax_s)
        clock.call_at(report_by_s, EventKind.DECISION, lambda _: succeed_once(this.all_reported))
        yield this.all_reported
        reporters = np.isin(ids, list(this.reports))
        decision = yield from self._choose(this, ids[reporters], compute_s[reporters], clock.now - this.t_start_s)
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
        horizon_s = self.latecomers.horizon_s(this.deadline_s - tolerance_s)
        leaves_s = parts.interruptions.leaves_s(ids, clock.now, horizon_s)
        if self._is_known_ahead(leaves_s):
            columns = Tasks(*parts.columns(ids, number, self.servers.in_cloud), compute_s, leaves_s, number)
            for promise, server in zip(promises, columns.server.tolist(), strict=True):
                promise.server = server
            this.known = KnownWork(clock, parts.world.links, parts.courses, columns, promises, tolerance_s)
            return compute_s
        signals = self._signals(this.decision, this.deadline_s, tolerance_s)
        numbers = [number] * len(ids)
        tasks = parts.tasks(ids, number, self.servers.in_cloud, numbers, compute_s.tolist(), leaves_s.tolist())
        versions = self.servers.models.tolist()
        for task, promise in zip(tasks, promises, strict=True):
            # The learner knows it where it trains.
            promise.server = task.server
            this.working[task.device] = Working(task, promise, Work(clock, task, signals), versions[task.server])
        if parts.cells is not None:
            parts.cells.watch(this.working[task.device].work for task in tasks)
        return compute_s

    def _is_known_ahead(self, leaves_s: Floats) -> bool:
        """Whether the work of devices that leave at some instants, [n], is known once the band is shared."""
        parts = self.parts
        if not parts.are_known_ahead or parts.world.config.round.delay_knowledge == "reported":
            return False
        # Of a pause it is not known ahead how long it lasts.
        is_lasting = parts.interruptions.back_s is None or not np.count_nonzero(leaves_s < math.inf)
        return is_lasting and type(self.drafting) is AllArrivals

    def _signals(self, decision: simpy.Event, deadline_s: float, tolerance_s: float) -> RoundSignals:
        callbacks = self._on_computed, self._on_arrived, lambda _: None
        return self.parts.signals(decision, deadline_s, tolerance_s, callbacks)

    def _choose(
        self, this: OpenRound, ids: Integers, delay_s: Floats | Column, decided_s: float | None = None
    ) -> Steps[tuple[Integers, Floats, Floats, list[int] | None]]:
        """Ask which of the devices ``ids`` are taken; returns them, in order, their bandwidths in Hz and their gains.

        Returns also the settings of their updates, where these are known with the band. ``delay_s`` and ``decided_s``
        as in `make_timeline`.
        """
        with this.timed("decide"):
            parts, number, world, knobs = self.parts, this.number, self.parts.world, self.parts.world.config.round
            if knobs.admission == "band":
                this.infeasible_share = 1.0
            bands_hz = self.latecomers.free_hz()
            station = None
            if parts.cells is not None:
                # Devices that have begun to work may have been handed over since.
                station = parts.cells.station[ids] if this.working else world.places.stations(ids, this.t_start_s)
                this.station_candidates = np.bincount(station, minlength=len(world.bands_hz)).tolist()
            # Where latecomers hold a station's whole band, the subtraction leaves a remainder of rounding, not a band.
            free = bands_hz > 1e-9 * world.bands_hz
            if np.count_nonzero(free) < len(free):
                rows = free[world.places.stations(ids, this.t_start_s) if station is None else station]
                ids, delay_s, station = ids[rows], delay_s[rows], None if station is None else station[rows]
            if len(ids) == 0:
                return ids, np.empty(0), np.empty(0), None
            instants_s = this.t_start_s, this.tmax_s, decided_s
            timeline = make_timeline(
                parts.planner, number.round, ids, delay_s, *instants_s, self.servers.in_cloud, station=station
            )
            invited = None if knobs.count is None else math.ceil(knobs.over_commitment * knobs.count - 1e-9)
            station, need_hz = timeline.station, timeline.need_hz
            if knobs.admission == "band":
                feasible = np.count_nonzero(np.asarray(need_hz) <= bands_hz[station])
                this.infeasible_share = 1.0 - feasible / len(this.candidates)
            before = self.times_selected[ids]
            taken, shares_hz = yield from choose(parts, number, timeline, before, this.training, bands_hz, invited)
            parts.report.totals.overfull += exceed(need_hz[taken], station[taken], bands_hz)
            hz = share(timeline, taken, bands_hz) if shares_hz is None else shares_hz
            settings = parts.sizing.at_plan and parts.sizing.at_plan(timeline, taken, hz)
            return ids[taken], hz, timeline.gain[taken], settings

    def _grant(
        self, this: OpenRound, ids: Integers, bandwidth_hz: Floats, gain: Floats, settings: list[int] | None
    ) -> None:
        """Set in every task whether its device uploads, on which reservation, at which average gain and how much."""
        this.selected, knobs = ids, self.parts.world.config.round
        this.closes_with = wanted_arrivals(self.wanted, len(ids), knobs) if len(ids) else None
        rx_power_w = self.parts.world.drawn_rx_power_w(ids, this.number.round, gain)
        if (known := this.known) is not None:
            rows, bits = known.began.searchsorted(ids), self.parts.learner.accounts.settle(ids, this.number.round)
            wires_s = self.parts.wires_s(known.tasks.station[rows], bits)
            known.share(rows, Grants(bandwidth_hz, rx_power_w, bits), wires_s, this.deadline_s)
            if this.closes_with is not None:
                known.close_with(this.closes_with, this.deadline_s, lambda: succeed_once(this.closed))
            return
        for working in this.working.values():
            working.task.taken = False
        taken = [this.working[device] for device in ids.tolist()]
        self.parts.grant(taken, ids, this.number.round, bandwidth_hz.tolist(), rx_power_w.tolist(), settings)

    def _on_computed(self, task: Task) -> None:
        if task.carried:
            promise = self.latecomers.at_work[task.key].promise
        else:
            this = self.open
            assert this is not None
            promise = this.working[task.device].promise
            this.reports.add(task.device)
            # A silent drop-out never reports, so only the alarm at report_by_s ends the wait for it.
            if len(this.reports) == len(this.working):
                succeed_once(this.all_reported)
        promise.due = True
        if self.parts.learner.accounts.measured is not None:
            self.candidates.unheard.append(promise)

    def _on_arrived(self, task: Task) -> None:
        if task.carried:
            self.latecomers.at_work[task.key].arrived = True
            return
        this = self.open
        assert this is not None
        this.arrived.add(task.device)
        if len(this.arrived) == this.closes_with:
            succeed_once(this.closed)

    def _close(self, this: OpenRound) -> tuple[Integers, list[tuple[Brought, Arrived]]]:
        """End the round's work; returns the devices whose updates arrived in time, and all updates in order of start.

        Updates that were not picked come last. In a skipped round these are the devices that have sent anything, and
        the work of all devices.
        """
        if (known := this.known) is not None:
            known.end()
            if self.parts.learner.accounts.measured is not None:
                self.candidates.unheard += known.computed
            arrived = known.arrived(this.selected)
            return arrived, known.updates(arrived)
        this.over, accounts = self.latecomers.close(this), self.parts.learner.accounts
        self.due_rounds.settle(this.working.values())
        if accounts.down is not None:
            for at in (*this.over, *this.working.values()):
                at.note_version(accounts.down)
        arrived = np.array([device for device in this.selected.tolist() if device in this.arrived], dtype=np.int64)
        if not accounts.is_due:
            trained = [this.working[device] for device in arrived.tolist()]
            updates = [(Brought.of(at.task), Arrived(at.promise)) for at in trained]
            return arrived[: len(arrived) * accounts.sends], updates
        limit = self.parts.world.config.staleness.limit
        late = [(at, int(self.servers.models[at.promise.server]) - at.version) for at in this.over if at.arrived]
        in_time, unpicked = ([this.working[id] for id in ids.tolist()] for ids in self.drafting.split(this, arrived))
        in_limit = [(at, age) for at, age in late if limit is None or age <= limit]
        updates = [(Brought.of(at.task), Arrived(at.promise, age, server=at.task.server)) for at, age in in_limit]
        # A device is remembered by its last row: of two updates by the one that began later.
        updates.sort(key=lambda update: update[0].key[1])
        updates += [(Brought.of(at.task), Arrived(at.promise, server=at.task.server)) for at in in_time]
        updates += [(Brought.of(at.task), Arrived(at.promise, picked=False, server=at.task.server)) for at in unpicked]
        return arrived, updates

    def _merge(
        self, this: OpenRound, arrived: Integers, updates: list[tuple[Brought, Arrived]]
    ) -> Steps[tuple[Merged, Origin]]:
        """Merge the picked updates, none in a skipped round, and wait until servers and cloud have computed.

        Returns also the origin of the merged updates.
        """
        parts, clock, accounts = self.parts, self.parts.clock, self.parts.learner.accounts
        brought = [update for _, update in updates]
        server_s = accounts.server_s(len(accounts.used(brought) if accounts.is_due else []))
        with this.timed("evaluate"):
            # Until the server has computed and the cloud averaged edge servers' models, the model before is in force.
            parts.evaluations.before_merge(clock.now + server_s + self.servers.to_cloud_s(this.number))
        # Noted before time passes again: an update that is late now may arrive while server or cloud compute.
        this.fates = this.fates_now
        with this.timed("train"):
            build_jobs([working.promise for working in self.latecomers.at_work.values()] + self.candidates.unheard)
            if accounts.adds_lost and accounts.sends:
                parts.learner.lose(this.lost)
            merged = parts.learner.merge(brought, this.began) if accounts.is_due else parts.learner.skip(brought)
            self.candidates.learn(parts.learner)
        if merged.server_wall_s:
            this.wall_s["train"] -= merged.server_wall_s
            this.wall_s["server"] = merged.server_wall_s
        # Updates that were not picked come last, and have rows where the algorithm merges them.
        tasks, merging = [task for task, _ in updates[: len(merged.ids)]], brought[: len(merged.ids)]
        self.servers.count(this.number, {task.server for task in tasks})
        self.times_selected[this.selected] += 1
        with this.timed("feedback"):
            whom, length_s = (this.selected, arrived, this.training), clock.now - this.t_start_s
            asked = lambda: this.checked_in, this.ended
            received = None
            if parts.sizing.receive is not None and accounts.sends:
                taken = [this.working[device].task for device in this.selected.tolist()]
                # Of a device that left its stream is as unknown as that of any work it left.
                left = [task.fate == "dropped" for task in taken]
                received = np.where(left, np.nan, parts.sizing.received(taken))
            parts.tell(this.number.round, merged, tasks, *whom, length_s, *asked, received)
        if server_s:
            yield clock.timeout(server_s)
        yield from self.servers.average(this.number)
        return merged, Origin(tasks, [update.staleness for update in merging])

    def _report(self, this: OpenRound, merged: Merged, origin: Origin) -> None:
        """Evaluate the model and write the round's rows."""
        parts, number, now_s = self.parts, this.number, self.parts.clock.now
        with this.timed("evaluate"):
            evaluation = parts.evaluations.of_row(number, now_s)
        fates, accounts = this.fates, parts.learner.accounts
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
            bandwidth_hz=this.bandwidth_hz,
            model_held=self.servers.model_held,
        )
        values = {} if this.infeasible_share is None else {("infeasible_share", ""): this.infeasible_share}
        values |= self.candidates.values()
        if parts.cells is not None:
            values |= parts.cells.write(number.round, parts.report.writer)
            counts = enumerate(this.station_candidates)
            values |= {("station_candidates", str(station)): float(count) for station, count in counts}
        crossed = origin.tasks
        if not accounts.is_due and accounts.sends:
            crossed = [Brought.of(at.task) for at in this.working.values() if at.task.fate == "done"]
        values |= bits_on_wires(parts.backhaul, crossed, accounts.model_bits if self.servers.in_cloud else 0.0)
        values |= merged.metrics
        if parts.sizing.receive is not None and accounts.sends:
            taken = [at.task for at in this.working.values() if at.task.taken]
            keys = [("received_share", f"{task.device}/{task.number}") for task in taken]
            values |= zip(keys, parts.sizing.received(taken), strict=True)
        with this.timed("evaluate"):
            values |= self.due_rounds.values(number, is_new=len(merged.ids) > 0)
        parts.report.round(row, this.ended(), merged, origin, evaluation, values)

    def snapshot(self) -> dict[str, Any]:
        """Snapshot of the state between two models."""
        of_parts = {name: saved_attributes(getattr(self, name)) for name in self.PARTS}
        return saved_attributes(self) | of_parts | {"latecomers": self.latecomers.snapshot()}

    def restore(self, remembered: dict[str, Any]) -> None:
        """Restore a snapshot, in a run whose clock stands at its instant."""
        records = remembered.pop("latecomers")
        for name in self.PARTS:
            restore_attributes(getattr(self, name), remembered.pop(name))
        restore_attributes(self, remembered)
        decided = self.parts.clock.event()
        self.latecomers.restore(records, lambda at: self._signals(decided, at.deadline_s, at.tolerance_s))
        self.parts.sizing.expect(self.latecomers.at_work.values())

    def break_off(self) -> EndedWork:
        """End all work, since the run is over; returns the work without rows."""
        this, late = self.open, list(self.latecomers.at_work.values())
        if this is not None and this.known is not None:
            this.known.end("cancelled")
            return this.known.ended
        here = [] if this is None else [at for at in this.working.values() if not at.task.carried]
        for working in late + here:
            working.work.break_off("cancelled")
        return ended_work([at.task for at in ([] if this is None else this.over) + here + late])
