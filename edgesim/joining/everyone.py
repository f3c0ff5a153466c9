"""The law without effect: every device that has checked in joins, as without ``[joining]``, and rows say so."""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.joining.law import Asked, Fleet, Law


class Everyone(Law):
    """Every device joins, with chance 1."""

    @override
    def chances(self, asked: Asked, fleet: Fleet) -> Floats:
        return np.ones(len(asked.ids))
