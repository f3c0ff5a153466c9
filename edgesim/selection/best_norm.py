"""Best Norm: policies BN2, BN2-C and BC-BN2 of Amiri et al., "Convergence of update aware device scheduling for
federated learning at the wireless edge", IEEE TWC 2021.

The original picks a fixed number of devices; here the band is the limit, as in FedTeddi's comparison, or
``round.count``. BN2 is ``norm = "trained"``, BN2-C ``norm = "sent"``, and BC-BN2 is BN2 among ``channels`` devices.
"""

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.quantities import Count
from edgesim.selection import view
from edgesim.selection.stateless import Stateless, walk
from edgesim.selection.ties import descending
from edgesim.selection.view import Choice, RoundView


class BestNormOptions(view.Options):
    """Knobs of Best Norm."""

    norm: Literal["sent", "trained"] = "sent"
    """Whether norms are of updates as the server would receive them, with sizes that follow the channel by an equal
    share of the band for as many devices as the admission can take, or as they were trained."""
    channels: Count | None = Field(None, ge=1)
    """Devices of the best average channels among which norms are compared; all candidates when absent."""


class BestNorm(Stateless):
    """Devices by falling norm of this round's update, for which the devices that are compared train."""

    Options: ClassVar[type[view.Options]] = BestNormOptions
    looks_at: frozenset[str] = frozenset({"sent_norms"})
    options: BestNormOptions

    def __init__(self, options: Any, device_count: int, class_count: int) -> None:
        super().__init__(options, device_count, class_count)
        if self.options.norm == "trained":
            self.looks_at = frozenset({"update_norms"})

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield candidates, the largest update first."""
        rows = np.arange(len(view.ids), dtype=np.int64)
        if self.options.channels is not None:
            rows = np.sort(descending(np.asarray(view.gain))[: self.options.channels])
        ids = view.ids[rows]
        if self.options.norm == "trained":
            norms = view.knowledge.update_norms(ids)
        else:
            estimates = view.estimates
            norms = view.knowledge.sent_norms(ids, lambda: estimates.room_bits(rows, estimates.places()))
        return walk(ids[descending(norms)])
