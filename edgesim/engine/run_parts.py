"""The parts of one run that its server and its protocol share."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat

import numpy as np
import simpy

from edgesim.activities import ACTIVITIES
from edgesim.base.arrays import Floats, Integers
from edgesim.devices.battery import Batteries, make_batteries
from edgesim.devices.topology import Backhaul
from edgesim.engine.at_work import Working
from edgesim.engine.cells import Cells
from edgesim.engine.clock import Clock
from edgesim.engine.courses import Courses, Sending
from edgesim.engine.decision import Planner
from edgesim.engine.decisions import Answerer, ByPolicy
from edgesim.engine.ended_work import Brought, EndedWork
from edgesim.engine.evaluations import Evaluations, tests_by_time
from edgesim.engine.interruptions import Interruptions
from edgesim.engine.moving_reserved_band import MovingReservedBand, MovingReservedLink
from edgesim.engine.moving_shared_band import MovingSharedBand, MovingSharedLink
from edgesim.engine.report import Report
from edgesim.engine.shared_band import SharedBand
from edgesim.engine.sizing import Sizing
from edgesim.engine.uplink import Band, ReservedBand
from edgesim.engine.work import Hear, RoundSignals, Task
from edgesim.engine.world import World
from edgesim.folder.records import TableWriter
from edgesim.joining.joiners import Joiners
from edgesim.learning.interface import Learner, Merged
from edgesim.radio.grant import Grant
from edgesim.selection.view import Feedback, Gradients, RoundReport, Selector


@dataclass
class RunParts:
    """The parts of a run that begins at t = 0: those that are made outside the engine, and then its own."""

    world: World
    selector: Selector
    learner: Learner
    writer: TableWriter
    backhaul: Backhaul
    joiners: Joiners | None = None
    """None where all devices that have checked in join, without being asked."""
    clock: Clock = field(init=False)
    bands: list[Band] = field(init=False)
    """One per station."""
    courses: Courses | None = field(init=False)
    """Received powers of uploads over time; None where devices stand still."""
    cells: Cells | None = field(init=False)
    """None where tasks keep their stations."""
    batteries: Batteries | None = field(init=False)
    """None for devices on mains."""
    interruptions: Interruptions = field(init=False)
    report: Report = field(init=False)
    evaluations: Evaluations = field(init=False)
    answerer: Answerer = field(init=False)
    """Answers the run's decisions; the policy, unless it is set to somebody else before the run begins."""

    def __post_init__(self) -> None:
        world, config = self.world, self.world.config
        self.clock = Clock()
        self.courses = None if world.moving is None else Courses(world, world.moving)
        self.bands = [_make_band(self.clock, world, station, self.courses) for station in range(len(world.bands_hz))]
        self.cells = None
        if config.handover is not None and world.moving is not None:
            self.cells = Cells(self.clock, world, world.moving, config.handover, self.backhaul)
        self.batteries = make_batteries(config.devices, world.streams)
        self.interruptions = Interruptions(self.clock, world)
        holds_rows = tests_by_time(config)
        self.report = Report(self.writer, world.population, self.batteries, self.interruptions, holds_rows)
        self.report.writes_stations = world.moving is not None and len(self.bands) > 1
        self.evaluations = Evaluations(config, self.learner, self.report)
        self.answerer = ByPolicy(self.selector)

    def columns(
        self, ids: Integers, round: int, from_cloud: bool
    ) -> tuple[Integers, Floats, Floats, Integers, Integers, Floats]:
        """First columns of the tasks of devices that begin to work, [n] each, up to `Task.broadcast_s`.

        The ``round`` decides how many bits each receives; ``from_cloud`` is whether the broadcast comes from the cloud,
        not from the edge servers.
        """
        world, accounts, station = self.world, self.learner.accounts, self.world.places.stations(ids, self.clock.now)
        bits = accounts.download_bits(ids, round)
        broadcast_s = self.backhaul.download_s(station, bits, from_cloud)
        down_s = world.download_s(ids, bits, accounts.model_bits)
        return ids, bits, down_s, station, self.backhaul.edge[station], broadcast_s

    def tasks(
        self,
        ids: Integers,
        round: int,
        from_cloud: bool,
        numbers: Sequence[int],
        compute_s: Sequence[float],
        leaves_s: Sequence[float],
    ) -> list[Task]:
        """Make the tasks of devices that begin to work, [n], with the ``numbers`` of their draws, [n].

        Other arguments are as those of `columns`.
        """
        columns = self.columns(ids, round, from_cloud)
        if self.cells is not None:
            self.cells.station[ids] = columns[3]
        rows = zip(*[column.tolist() for column in columns], compute_s, leaves_s, numbers, strict=True)
        return [Task(*row) for row in rows]

    def grant(
        self,
        working: Sequence[Working],
        ids: Integers,
        round: int,
        hz: Sequence[float],
        rx_power_w: Sequence[float],
        settings: Sequence[int] | None = None,
    ) -> None:
        """Grant uploads to devices ``ids`` that are ``working``, by bandwidths ``hz`` and received powers, [n].

        ``settings`` are those of their updates, [n], where they are known with the band.
        """
        accounts, station = self.learner.accounts, np.array([at.task.station for at in working], dtype=np.int64)
        bits = accounts.settle(ids, round)
        of_codec: Iterable[int] = repeat(0)
        if (charges := accounts.up) is not None and charges.rule.known != "before the run":
            of_codec, bits = charges.granted(bits, settings)
        granted = list(map(Grant, hz, rx_power_w, bits.tolist(), of_codec))
        backhaul_s = self.wires_s(station, bits)
        for at, grant, wires_s in zip(working, granted, backhaul_s.tolist(), strict=True):
            at.promise.grant = at.task.grant = grant
            at.task.taken, at.task.backhaul_s = True, wires_s
        if self.cells is not None and self.world.merges_where_started:
            for at in working:
                self.cells.set_wires(at.task)
        if charges is not None:
            self.sizing.expect(working)
        if self.courses is not None and len(working):
            tasks, due = [at.task for at in working], working[0].work.due
            ahead = [] if self.cells is None else [self.cells.ahead(task) for task in tasks]
            now_s, handovers = self.clock.now, np.array([task.handovers for task in tasks])
            columns = np.array(hz), np.array(rx_power_w), bits
            # Phase by phase, as the clock adds them up.
            starts_s = np.array([now_s + task.broadcast_s + task.download_s + task.compute_s for task in tasks])
            sending = Sending(ids, station, handovers, *columns, starts_s)
            self.courses.foresee(tasks[0].number, sending, (now_s, *due), ahead)

    def wires_s(self, station: Integers, bits: Floats) -> Floats:
        """Seconds that updates of some bits take from stations to their servers, [n] each."""
        # Wires delay even a message of 0 bits, but there is none in a round in which nothing is sent.
        return self.backhaul.upload_s(station, bits) * self.learner.accounts.sends

    @cached_property
    def are_known_ahead(self) -> bool:
        """Whether `KnownWork` can play what devices do, but for those that leave and come back."""
        accounts, config = self.learner.accounts, self.world.config
        is_free = self.cells is None and self.batteries is None
        is_whole = accounts.up is None and accounts.down is None and config.merging is None
        bands = [band.link.is_endless for band in self.bands if isinstance(band, ReservedBand)]
        return is_free and is_whole and config.round.late == "drop" and bands == [True] * len(self.bands)

    def tell(
        self,
        round: int,
        merged: Merged,
        tasks: Sequence[Brought],
        selected: Integers,
        arrived: Integers,
        gradients: Gradients,
        length_s: float,
        checked_in: Callable[[], Integers],
        ended: Callable[[], EndedWork],
        received: Floats | None = None,
    ) -> None:
        """Tell the answerer of the decisions what became of them, once a model is made of ``merged`` updates.

        The finished ``tasks`` of these come in the same order; ``ended`` answers with all work that has ended since the
        model before. The others are as in `RoundReport`.
        """
        duration_s, airtime_s = ([getattr(task, name) for task in tasks] for name in ("duration_s", "airtime_s"))
        times_s = np.array(duration_s, dtype=np.float64), np.array(airtime_s, dtype=np.float64)
        measured = merged.loss, merged.loss_rms, merged.accuracy, merged.loss_drop
        feedback = Feedback(merged.ids, *times_s, *measured)
        of_devices, now = (selected, arrived, feedback, gradients), (self.clock.now, self.evaluations.accuracy)
        report = RoundReport(
            round, checked_in, *of_devices, length_s, *now, lambda: self.report.spending(ended()), received
        )
        self.answerer.hear(report)

    @cached_property
    def sizing(self) -> Sizing:
        """Decides how much is sent where that follows the channel."""
        return Sizing(self.world, self.backhaul, self.clock, self.courses, self.learner)

    @cached_property
    def planner(self) -> Planner:
        """Basis of the plans of all rounds."""
        return Planner(self.world, self.learner.accounts, self.backhaul)

    def signals(
        self, decision: simpy.Event, deadline_s: float, tolerance_s: float, callbacks: tuple[Hear, Hear, Hear]
    ) -> RoundSignals:
        """Connect devices at work with the server; ``callbacks`` are ``computed``, ``arrived`` and ``dropped``."""
        changes = self.interruptions.back_s, None if self.batteries is None else self._begin_draw
        sizes = self.sizing.at_start, self.sizing.receive
        cells = (None, None) if self.cells is None else (self.cells.left_cell, self.cells.back_in_cell)
        return RoundSignals(self.bands, decision, deadline_s, tolerance_s, *callbacks, *changes, *sizes, *cells)

    def _begin_draw(self, task: Task) -> float:
        assert self.batteries is not None
        draw_w = 0.0
        if task.phase in ACTIVITIES:
            power_w, efficiency = self.report.drawn[task.phase]
            draw_w = power_w.item(task.device) / efficiency.item(task.device)
        return self.batteries.draw(task.device, draw_w, self.clock.now)


def _make_band(clock: Clock, world: World, station: int, courses: Courses | None) -> Band:
    band_hz = float(world.bands_hz[station])
    if courses is not None:
        link = courses.moving.link
        if world.config.radio.sharing == "reshared":
            return MovingSharedBand(clock, band_hz, MovingSharedLink(link), courses=courses, station=station)
        return MovingReservedBand(clock, MovingReservedLink(link), courses=courses, station=station)
    if world.config.radio.sharing == "reshared":
        return SharedBand(clock, band_hz, world.band_links[station])
    return ReservedBand(clock, world.links[station])
