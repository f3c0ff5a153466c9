"""In each slot each device is available with its own probability, independently of other slots and devices.

With rounds as slots this is the timed-random participation of the DPFL benchmark.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.device_keys import need_devices
from edgesim.base.needs import GIVEN, Rule
from edgesim.streams import Streams
from edgesim.traces.availability import Availability, KnownSlots
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.matrix_file import find_matrix, read_cells
from edgesim.traces.models.always import Always
from edgesim.traces.models.options import Slotted
from edgesim.traces.models.rates import one_each

_Rate = Annotated[float, Field(gt=0, le=1)]


class Bernoulli(Slotted):
    """Draws: stream ``availability``, indexed by the slot."""

    goes_with: ClassVar[tuple[Rule, ...]] = (
        *Slotted.goes_with,
        Rule({"file": GIVEN}, {"probability": 1.0, "slot_s": None}, "it has them for each round"),
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        *Slotted.rules,
        Rule({"availability.file": GIVEN}, {}, "it has a column for each round", ("rounds",)),
    )

    probability: _Rate | Annotated[list[_Rate], Field(min_length=1)] = 1.0
    """One number, or a list of one number for each device; further numbers of a list are left out."""
    file: str | None = None
    """Instead of ``probability`` a path, or name of a file under ``traces/``, CSV or Parquet, with the columns device,
    1, 2, ...: a probability from 0 to 1 for each device and round. Further devices of the file are left out."""

    @cached_property
    def _rates(self) -> Floats:
        """Probabilities [devices or 1, slots or 1]: one row is that of all devices, one column that of all slots."""
        if self.file is None:
            return np.atleast_1d(np.asarray(self.probability, dtype=np.float64))[:, np.newaxis]
        path = find_matrix(self.file)
        return read_cells(path, lambda cells: (cells >= 0) & (cells <= 1), "a probability from 0 to 1")

    @override
    def law(self, device_count: int, streams: Streams) -> Callable[[Integers, Integers], Booleans]:
        rates = self._rates
        last_row, last_column = rates.shape[0] - 1, rates.shape[1] - 1

        def in_slot(ids: Integers, slots: Integers) -> Booleans:
            chance = rates[np.minimum(ids, last_row), np.minimum(slots, last_column)]
            return np.asarray(streams.uniform("availability", ids, slots) < chance)

        return in_slot

    @override
    def remedy(self) -> str:
        if self.file is not None:
            return "change availability.file"
        return f"raise availability.probability ({self._rates.min():g}{' and up' if len(self._rates) > 1 else ''})"

    @override
    def make(self, device_count: int, streams: Streams) -> Availability:
        """Independent availability in every slot; raises `EdgesimError` for probabilities of too few devices."""
        if self.file is not None:
            need_devices(self.file, "trace", len(self._rates), device_count)
        one_each("probability", self.probability, device_count)
        # With probability 1 no stay ends, and every call would search for its end up to the limit.
        if self.file is None and self.probability == 1.0:
            return Always(device_count)
        availability = super().make(device_count, streams)
        if self.file is not None and isinstance(availability, ByRounds):
            availability.known = KnownSlots(self.file, self._rates.shape[1], "give more columns or fewer rounds")
        return availability
