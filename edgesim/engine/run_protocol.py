"""What every protocol of a run works with, with rounds or without."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgesim.devices.battery import Batteries
from edgesim.devices.topology import Backhaul
from edgesim.engine.clock import Clock
from edgesim.engine.evaluations import Evaluations
from edgesim.engine.presence import Presence
from edgesim.engine.report import Report
from edgesim.engine.uplink import Band
from edgesim.engine.world import World
from edgesim.learning.interface import Learner
from edgesim.selection.view import Selector


@dataclass
class RunProtocol:
    """The parts of one run that a protocol brings together."""

    clock: Clock
    world: World
    selector: Selector
    learner: Learner
    report: Report
    payload_bits: float
    data_sizes: list[NDArray[np.int64]]
    """Data-set sizes per frame, [devices]."""
    work_samples: list[NDArray[np.int64]]
    """Samples that each device processes in a task, per frame, [devices]."""
    bands: list[Band]
    """One per station."""
    backhaul: Backhaul
    batteries: Batteries | None
    """None for devices on mains."""
    presence: Presence
    evaluations: Evaluations
