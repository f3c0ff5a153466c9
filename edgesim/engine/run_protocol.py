"""What every protocol of a run works with, with rounds or without."""

from dataclasses import dataclass

from edgesim.arrays import Integers
from edgesim.devices.battery import Batteries
from edgesim.devices.topology import Backhaul
from edgesim.engine.clock import Clock
from edgesim.engine.evaluations import Evaluations
from edgesim.engine.interruptions import Interruptions
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
    data_sizes: list[Integers]
    """Data-set sizes per frame, [devices]."""
    work_samples: list[Integers]
    """Samples that each device processes in a task, per frame, [devices]."""
    bands: list[Band]
    """One per station."""
    backhaul: Backhaul
    batteries: Batteries | None
    """None for devices on mains."""
    interruptions: Interruptions
    evaluations: Evaluations
