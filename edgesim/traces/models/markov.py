"""Each device comes and goes as a two-state Markov chain over slots (the DPFL benchmark's Markovian participation)."""

from collections.abc import Callable
from typing import Annotated

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Integers
from edgesim.streams import Streams
from edgesim.traces.chains import Chains
from edgesim.traces.models.options import Slotted
from edgesim.traces.models.rates import one_each

_Rate = Annotated[float, Field(gt=0, lt=1)]
_Rates = _Rate | Annotated[list[_Rate], Field(min_length=1)]


class Markov(Slotted):
    """Draws: stream ``availability``, indexed by the slot; the first slot is drawn from the stationary law.

    Each probability is one number, or a list of one for each device; further numbers of a list are left out.
    """

    join_probability: _Rates = 0.2
    """Probability that an absent device is available in the next slot."""
    leave_probability: _Rates = 0.2
    """Probability that an available device is absent in the next slot."""

    @override
    def law(self, device_count: int, streams: Streams) -> Callable[[Integers, Integers], Booleans]:
        joins = one_each("join_probability", self.join_probability, device_count)
        return Chains(joins, one_each("leave_probability", self.leave_probability, device_count), streams)

    @override
    def remedy(self) -> str:
        least = np.min(self.join_probability)
        return f"raise availability.join_probability ({least:g}{' and up' if np.ndim(self.join_probability) else ''})"
