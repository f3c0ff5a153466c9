"""Recorded or programmed availability: a file of intervals, or a matrix of devices and slots."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Integers
from edgesim.base.content import find
from edgesim.base.device_keys import need_devices
from edgesim.base.errors import EdgesimError
from edgesim.base.needs import GIVEN, Rule
from edgesim.base.quantities import Seconds
from edgesim.streams import Streams
from edgesim.traces.availability import Availability, KnownSlots
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.forced import Forced
from edgesim.traces.interval_file import read_intervals
from edgesim.traces.interval_table import AfterEnd
from edgesim.traces.intervals import Intervals, first_devices, joined
from edgesim.traces.matrix_file import find_matrix, is_matrix, read_matrix
from edgesim.traces.models.options import IfEmpty, Repeated
from edgesim.traces.slots import Slots

_MORE_SLOTS = 'give more columns, fewer rounds, or availability.after_end = "wrap"'


class TableModel(Repeated):
    """Device k of the run is device k of the file; further devices of the file are left out.

    With ``slots`` or ``slot_s`` the file is a matrix of zeros and ones (`edgesim.traces.matrix_file`). Draws: those of
    `Forced`.
    """

    goes_with: ClassVar[tuple[Rule, ...]] = (
        Rule({"slots": "rounds"}, {"slot_s": None}),
        Rule({"length_s": GIVEN}, {"slots": None, "slot_s": None}, "it is for a file of periods"),
        Rule(
            {"if_empty": GIVEN, "slots": None}, {"slot_s": GIVEN}, "it is for a matrix; slots = 'rounds' will do, too"
        ),
    )

    file: str
    """Path, or name of a file under ``traces/``: CSV or Parquet with the columns device, start_s, end_s, or with device
    and one column per slot."""
    after_end: AfterEnd = "raise"
    length_s: Seconds | None = Field(None, ge=1e-6)
    """When the recording ends, if the file does not say; the default is the last end in the file."""
    slots: Literal["rounds"] | None = None
    """``rounds``: the file has one column for each round."""
    slot_s: Seconds | None = Field(None, ge=1e-6)
    """The file has one column for each so many seconds."""
    if_empty: IfEmpty | None = None
    """Fate of a slot of a matrix in which nobody is available: ``force`` or ``wait``, as in `Slotted`."""

    @override
    def make(self, device_count: int, streams: Streams) -> Availability:
        """The file's devices, with numbers by ``order``; raises `EdgesimError` for a bad file."""
        if self.slots is None and self.slot_s is None:
            return super().make(device_count, streams)
        matrix = self._matrix(device_count)
        there = matrix
        if self.order != "given":
            sign = 1 if self.order == "rising" else -1
            there = matrix[np.argsort(sign * matrix.sum(axis=1), kind="stable")]
        end = there.shape[1]

        def in_slot(ids: Integers, slots: Integers) -> Booleans:
            columns = slots % end if self.after_end == "wrap" else np.minimum(slots, end - 1)
            return np.asarray(there[ids, columns] & ((slots < end) | (self.after_end == "wrap")))

        forces, remedy = self.if_empty == "force", "change availability.file"
        law = Forced(device_count, in_slot, streams) if forces else in_slot
        if self.slot_s is not None:
            until_s = end * self.slot_s if self.after_end == "raise" else np.inf
            slots = Slots(device_count, self.slot_s, law, remedy, name=self.file, known_until_s=until_s)
            if forces:
                return slots
            # The table answers without a search, also of devices that never come; the slots only count.
            table = self.table_of(self._periods(matrix))
            table.slots = slots
            return table
        availability = ByRounds(device_count, law, remedy)
        if self.after_end == "raise":
            availability.known = KnownSlots(self.file, end, _MORE_SLOTS)
        if self.after_end == "absent" and not forces:
            availability.settled_from = end
        return availability

    @override
    def intervals(self, device_count: int, streams: Streams) -> Intervals:
        """The periods of a file of them; raises `EdgesimError` for a bad file or one of too few devices."""
        path = find("traces", self.file, ".parquet", "availability.file", "start_s")
        if is_matrix(path):
            raise EdgesimError(
                f"{path}: has a column for each slot; give availability.slots = 'rounds', or availability.slot_s, the "
                "length of a slot in s"
            )
        intervals = read_intervals(path, self.length_s)
        need_devices(intervals.name, "trace", intervals.device_count, device_count)
        return first_devices(intervals, device_count)

    def _periods(self, there: Booleans) -> Intervals:
        """The available periods of a matrix, [devices, slots], of slots in seconds."""
        device, slot = np.nonzero(there)
        edges_s = np.arange(there.shape[1] + 1) * np.float64(self.slot_s or 0.0)
        return joined(device, edges_s[slot], edges_s[slot + 1], edges_s[-1], len(there), self.file)

    def _matrix(self, device_count: int) -> Booleans:
        """Whether each device is available in each slot, [devices, slots]."""
        path = find_matrix(self.file)
        there = read_matrix(path)
        need_devices(str(path), "trace", len(there), device_count)
        if not there[:device_count].any() and self.if_empty != "force":
            raise EdgesimError(
                f"{path}: every cell of the first {device_count} devices is 0, so no device is ever available; "
                "expected a 1 somewhere"
            )
        return there[:device_count]
