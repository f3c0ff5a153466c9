"""Top losses: how badly the model does on the samples that it does worst on."""

import numpy as np
from pydantic import Field

from edgesim.learning.measures import Metric, Tested


class TopLosses(Metric):
    """Options of the metric, its table in ``evaluation.metrics``."""

    share: float = Field(0.1, gt=0, le=1)
    """Share of the test samples that count, those with the highest losses."""

    def measure(self, tested: Tested) -> float:
        """Mean loss of these samples; a finite number, which becomes a row of the table ``metrics`` at each test."""
        count = max(1, round(self.share * len(tested.losses)))
        return float(np.sort(tested.losses)[-count:].mean())
