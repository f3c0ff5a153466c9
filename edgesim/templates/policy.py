"""Longest wait: the devices that were taken longest ago come first, those that never were before all others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field

from edgesim.arrays import Integers
from edgesim.quantities import Count
from edgesim.selection import view
from edgesim.selection.stateless import walk
from edgesim.selection.view import Choice, RoundReport, RoundView, Selector


class LongestWaitOptions(view.Options):
    """Options of the policy, keys of ``[selection]``."""

    rest: Count = Field(0, ge=0)
    """Rounds for which a device that was taken is not offered again."""


@dataclass
class LongestWaitState:
    """All that the policy remembers, so that a run can be saved and resumed."""

    taken: Integers
    """The round in which each device was taken last, [N]; 0 before it was."""


class LongestWait(Selector):
    """Offers devices by rising round of their last turn; equals stay in the order of their ids."""

    Options: ClassVar[type[view.Options]] = LongestWaitOptions

    def __init__(self, options: LongestWaitOptions, device_count: int, class_count: int) -> None:
        self.options = options
        self.state = LongestWaitState(np.zeros(device_count, dtype=np.int64))

    def choose(self, view: RoundView) -> Choice:
        """Offer the candidates in order; the simulator takes those for which there is a place."""
        taken = self.state.taken[view.ids]
        rested = (taken == 0) | (view.round - taken > self.options.rest)
        order = np.argsort(taken, kind="stable")
        yield from walk(view.ids[order[rested[order]]])

    def hear(self, report: RoundReport) -> None:
        """Note the turn of those that were taken."""
        self.state.taken[report.selected] = report.round
