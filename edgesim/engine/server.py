"""The server of one run: what it owns, what it carries from round to round, and its outer loop."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from edgesim.engine.check_in import check_in
from edgesim.engine.clock import Clock
from edgesim.engine.report import Report
from edgesim.engine.synchronous import RoundNumber, Synchronous
from edgesim.engine.uplink import Band
from edgesim.engine.world import World
from edgesim.learning.interface import Learner
from edgesim.selection.view import Selector


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
    data_sizes: list[NDArray[np.int64]]
    """Data-set sizes per frame, [devices]."""
    work_samples: list[NDArray[np.int64]]
    """Samples that each device processes in a round, per frame, [devices]."""
    on_round: Callable[[Progress], None]

    def run(self, numbers: Iterator[RoundNumber]) -> Generator[simpy.Event, Any, str]:
        """Process of the server; returns why the run ended."""
        config = self.world.config
        protocol = Synchronous(
            self.clock,
            self.world,
            self.selector,
            self.learner,
            self.report,
            self.payload_bits,
            self.data_sizes,
            Band(self.clock, config.radio.bandwidth_hz, self.world.environment.noise_w_per_hz, config.radio.sharing),
            times_selected=np.zeros(config.devices.count, dtype=np.int64),
        )
        accuracy = None
        for number in numbers:
            ids = yield from check_in(self.clock, self.world, config.round.min_candidates)
            if ids is None:
                return f"fewer than {config.round.min_candidates} devices are ever available again"
            evaluation = yield from protocol.round(number, ids, self.work_samples[number.frame][ids])
            if evaluation is not None:
                accuracy = evaluation.accuracy
            if number.last_of_frame:
                self.learner.end_frame()
            self.on_round(Progress(number.round, self.clock.now, accuracy))
        return "all rounds done"
