"""The server of one run: what it owns, what it carries from round to round, and its outer loop."""

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import simpy

from edgesim.arrays import Integers
from edgesim.channels import RecordedLink, ShannonLink
from edgesim.config import RunConfig
from edgesim.devices.battery import Batteries, make_batteries
from edgesim.devices.topology import Backhaul
from edgesim.engine.check_in import check_in
from edgesim.engine.clock import Clock, drift_s
from edgesim.engine.evaluations import Evaluations
from edgesim.engine.interruptions import Interruptions
from edgesim.engine.report import Report
from edgesim.engine.rounds import RoundNumber
from edgesim.engine.shared_band import SharedBand
from edgesim.engine.synchronous import Synchronous
from edgesim.engine.unsynchronised import Unsynchronised
from edgesim.engine.uplink import Band, ReservedBand
from edgesim.engine.world import World
from edgesim.learning.interface import Evaluation, Learner
from edgesim.selection.view import Selector

ALL_DONE = "all rounds done"

Step = Generator[simpy.Event, Any, tuple[bool, Evaluation | None]]
"""One step of a run: whether it could be done at all, and the last evaluation in its course, if there was one."""


@dataclass(frozen=True)
class Progress:
    """What a display wants to know after each round."""

    round: int
    t_s: float
    accuracy: float | None
    """The last evaluated one."""


@dataclass
class Server:
    """Runs the rounds of one run on a clock."""

    clock: Clock
    world: World
    selector: Selector
    learner: Learner
    report: Report
    payload_bits: float
    backhaul: Backhaul
    data_sizes: list[Integers]
    """Data-set sizes per frame, [devices]."""
    work_samples: list[Integers]
    """Samples that each device processes in a round, per frame, [devices]."""
    on_round: Callable[[Progress], None]
    protocol: Synchronous | Unsynchronised | None = None
    """What makes the models, from the run's begin on."""

    @cached_property
    def evaluations(self) -> Evaluations:
        """When the model is tested."""
        return Evaluations(self.world.config, self.learner, self.report)

    def run(self, numbers: Iterator[RoundNumber]) -> Generator[simpy.Event, Any, str]:
        """Process of the server; returns why the run ended."""
        config = self.world.config
        self.report.batteries = batteries = make_batteries(config.devices, self.world.streams)
        self.report.interruptions = interruptions = Interruptions(self.clock, self.world)
        step = self._protocol(batteries, interruptions)
        accuracy = None
        for number in numbers:
            if config.round.protocol == "synchronous" and self._is_time_to_stop():
                return stopped(config)
            goes_on, evaluation = yield from step(number)
            if not goes_on:
                charged = "" if batteries is None else " and charged"
                return f"fewer than {config.round.min_candidates} devices are ever available{charged} again"
            if evaluation is not None:
                accuracy = evaluation.accuracy
            if number.last_of_frame:
                self.learner.end_frame()
            self.on_round(Progress(number.round, self.clock.now, accuracy))
        return ALL_DONE

    def _is_time_to_stop(self) -> bool:
        """Whether a round that began now would begin where the run is to end, up to the clock's rounding."""
        config = self.world.config
        return config.stop_at_s is not None and self.clock.now > config.stop_at_s - drift_s(config.round.tmax_s)

    def stop(self) -> Generator[simpy.Event, Any, None]:
        """Process that ends the run: breaks off the work in flight and writes down what has no rows yet."""
        self.evaluations.end(self.clock.now)
        tasks = self.protocol.break_off() if self.protocol else []
        # Broken off, work ends in an event of this instant.
        yield self.clock.timeout(0)
        self.report.end(self.clock.now, tasks)

    def _protocol(self, batteries: Batteries | None, interruptions: Interruptions) -> Callable[[RoundNumber], Step]:
        """What makes the next model: a round after a check-in, again and again, or a protocol without rounds."""
        config = self.world.config
        parts = (
            self.clock,
            self.world,
            self.selector,
            self.learner,
            self.report,
            self.payload_bits,
            self.data_sizes,
            self.work_samples,
            self._bands(),
            self.backhaul,
            batteries,
            interruptions,
            self.evaluations,
        )
        if config.round.protocol != "synchronous":
            self.protocol = without = Unsynchronised(*parts, next_task=np.ones(config.devices.count, dtype=np.int64))
            return without.next_model
        never = np.zeros(config.devices.count, dtype=np.int64)
        self.protocol = protocol = Synchronous(*parts, times_selected=never, tmax_s=config.round.tmax_s)

        def step(number: RoundNumber) -> Step:
            started = time.perf_counter()
            ids = yield from check_in(self.clock, self.world, batteries, protocol.meet_slot)
            if ids is None:
                return False, None
            samples = self.work_samples[number.frame][ids]
            evaluation = yield from protocol.round(number, ids, samples, time.perf_counter() - started)
            return True, evaluation

        return step

    def _bands(self) -> list[Band]:
        return [self._band(station, float(band_hz)) for station, band_hz in enumerate(self.world.bands_hz)]

    def _band(self, station: int, band_hz: float) -> Band:
        link = self.world.link(station)
        if self.world.config.radio.sharing != "reshared":
            return ReservedBand(self.clock, link)
        assert isinstance(link, (ShannonLink, RecordedLink))
        return SharedBand(self.clock, band_hz, link)


def stopped(config: RunConfig) -> str:
    """The reason of a run that ended at its ``stop_at_s``."""
    return f"stop_at_s = {config.stop_at_s:g}; a round in flight then has no row, its work is cancelled"
