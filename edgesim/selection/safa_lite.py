"""SAFA as FedDance compares against it: favour devices with the least participation (FedDance, section 6.1)."""

from functools import partial

import numpy as np
from typing_extensions import override

from edgesim.selection.stateless import Stateless
from edgesim.selection.ties import by_falling
from edgesim.selection.view import Choice, RoundView


class SafaLite(Stateless):
    """Devices by rising number of times selected, ties in random order."""

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates, the least used first."""
        draw = partial(view.streams.uniform, "selection/safa-lite", round=view.round)
        return by_falling(view.ids, -view.times_selected.astype(np.float64), draw)
