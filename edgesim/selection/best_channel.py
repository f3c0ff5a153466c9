"""Best Channel: policy BC of Amiri et al., "Convergence of update aware device scheduling", IEEE TWC 2021.

The original picks a fixed number of devices; here the band is the limit, as in FedTeddi's comparison.
"""

import numpy as np
from typing_extensions import override

from edgesim.selection.stateless import Stateless
from edgesim.selection.ties import by_falling
from edgesim.selection.view import Choice, RoundView


class BestChannel(Stateless):
    """Devices by falling average power gain."""

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates, the strongest channel first."""
        return by_falling(view.ids, np.asarray(view.gain))
