"""Power-of-Choice: Cho et al., "Towards understanding biased client selection", AISTATS 2022."""

from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.quantities import Count
from edgesim.selection import view
from edgesim.selection.stateless import Stateless, walk
from edgesim.selection.ties import descending
from edgesim.selection.view import Choice, RoundView


class PowerOfChoiceOptions(view.Options):
    """Knobs of Power-of-Choice."""

    d: Count = Field(15, ge=1)
    """Devices drawn and asked for their loss; all candidates when there are fewer."""


class PowerOfChoice(Stateless):
    """Draw d devices in proportion to their data, then go by falling loss of the global model."""

    Options: ClassVar[type[view.Options]] = PowerOfChoiceOptions
    looks_at: frozenset[str] = frozenset({"losses"})
    options: PowerOfChoiceOptions

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield the d devices drawn, the highest loss first."""
        # First arrivals of Poisson processes of rates D_n: sampling without replacement with probability
        # proportional to D_n (Efraimidis and Spirakis, Information Processing Letters 97, 2006).
        arrivals = view.streams.exponential("selection/power-of-choice", view.ids, view.round) / view.samples
        drawn = view.ids[np.sort(np.argsort(arrivals, kind="stable")[: self.options.d])]
        return walk(drawn[descending(view.knowledge.losses(drawn))])
