"""The parts of one run that its server and its protocol share."""

from collections.abc import Callable
from dataclasses import dataclass

from edgesim.arrays import Integers
from edgesim.channels.link import RecordedLink, ShannonLink
from edgesim.devices.battery import Batteries, make_batteries
from edgesim.devices.energy import activity_energy_j
from edgesim.devices.topology import Backhaul
from edgesim.engine.clock import Clock
from edgesim.engine.evaluations import Evaluations, tests_by_time
from edgesim.engine.interruptions import Interruptions
from edgesim.engine.report import Report
from edgesim.engine.shared_band import SharedBand
from edgesim.engine.uplink import Band, ReservedBand
from edgesim.engine.work import Task
from edgesim.engine.world import World
from edgesim.learning.interface import Learner
from edgesim.runs.records import RunWriter
from edgesim.selection.view import Selector


@dataclass(frozen=True)
class RunParts:
    """The parts of one run."""

    clock: Clock
    world: World
    selector: Selector
    learner: Learner
    report: Report
    backhaul: Backhaul
    data_sizes: list[Integers]
    """Data-set sizes per frame, [devices]."""
    work_samples: list[Integers]
    """Samples that each device processes in a task, per frame, [devices]."""
    bands: list[Band]
    """One per station."""
    batteries: Batteries | None
    """None for devices on mains."""
    interruptions: Interruptions
    evaluations: Evaluations

    @property
    def empty_s(self) -> Callable[[Task], float] | None:
        """Told of each task that enters a phase, as `RoundSignals.empty_s` says; None for devices on mains."""
        return None if self.batteries is None else self._begin_draw

    def _begin_draw(self, task: Task) -> float:
        assert self.batteries is not None
        draw_w = activity_energy_j(self.world.population, task.device, task.phase, 1.0)
        return self.batteries.draw(task.device, draw_w, self.clock.now)


def make_parts(
    world: World,
    selector: Selector,
    learner: Learner,
    writer: RunWriter,
    backhaul: Backhaul,
    data_sizes: list[Integers],
    work_samples: list[Integers],
) -> RunParts:
    """The parts of a run that begins at t = 0, from those that are made outside the engine."""
    config, clock = world.config, Clock()
    batteries, interruptions = make_batteries(config.devices, world.streams), Interruptions(clock, world)
    report = Report(writer, world.population, batteries, interruptions, holds_rows=tests_by_time(config))
    return RunParts(
        clock,
        world,
        selector,
        learner,
        report,
        backhaul,
        data_sizes,
        work_samples,
        [_make_band(clock, world, station) for station in range(len(world.bands_hz))],
        batteries,
        interruptions,
        Evaluations(config, learner, report),
    )


def _make_band(clock: Clock, world: World, station: int) -> Band:
    link = world.links[station]
    if world.config.radio.sharing != "reshared":
        return ReservedBand(clock, link)
    assert isinstance(link, (ShannonLink, RecordedLink))
    return SharedBand(clock, float(world.bands_hz[station]), link)
