"""Stays longest: a control that goes by handovers alone."""

from functools import partial

import numpy as np
from typing_extensions import override

from edgesim.selection.stateless import Stateless
from edgesim.selection.ties import by_falling
from edgesim.selection.view import Choice, RoundView

_DEADLINES_AHEAD = 10.0
"""Deadlines from the round's start beyond which devices stay equally long."""


class StaysLongest(Stateless):
    """Devices by falling time that they stay in the cell of their station, ties in random order."""

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates, those that stay longest first."""
        horizon_s = _DEADLINES_AHEAD * view.tmax_s
        stays_s = np.minimum(view.estimates.leaves_cell_s(np.arange(len(view.ids)), horizon_s), horizon_s)
        draw = partial(view.streams.uniform, "selection/stays-longest", round=view.round)
        return by_falling(view.ids, stays_s, draw)
