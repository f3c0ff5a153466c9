"""Availability-first: a control that goes by availability alone (FedDance, section 2.2)."""

from functools import partial
from typing import Any, ClassVar

import numpy as np

from edgesim.selection import view
from edgesim.selection.ties import by_falling
from edgesim.selection.view import Choice, RoundReport, RoundView


class AvailabilityFirst:
    """Devices by falling number of check-ins so far, ties in random order."""

    Options: ClassVar[type[view.Options]] = view.Options
    looks_at: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, options: Any, device_count: int, class_count: int) -> None:
        self.check_ins = np.zeros(device_count)
        """State: rounds in which each device checked in, [devices]."""

    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates, the most present first."""
        draw = partial(view.streams.uniform, "selection/availability-first", round=view.round)
        return by_falling(view.ids, self.check_ins[view.ids], draw)

    def hear(self, report: RoundReport) -> None:
        """Count those who checked in."""
        self.check_ins[report.checked_in] += 1
