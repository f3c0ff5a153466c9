"""Availability-first: a control that goes by availability alone (FedDance, section 2.2)."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.selection.ties import by_falling
from edgesim.selection.view import Choice, RoundReport, RoundView, Selector


@dataclass
class CheckIns:
    """Check-ins of every device that the server has counted."""

    count: Floats
    """Rounds in which each device checked in, [devices]."""


class AvailabilityFirst(Selector):
    """Devices by falling number of check-ins so far, ties in random order."""

    def __init__(self, options: Any, device_count: int, class_count: int) -> None:
        self.state = CheckIns(np.zeros(device_count))

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates, the most present first."""
        draw = partial(view.streams.uniform, "selection/availability-first", round=view.round)
        return by_falling(view.ids, self.state.count[view.ids], draw)

    @override
    def hear(self, report: RoundReport) -> None:
        """Count the check-ins of a round."""
        self.state.count[report.checked_in] += 1
