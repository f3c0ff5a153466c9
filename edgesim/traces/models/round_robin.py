"""Groups of devices are available in turn; each turn may overlap with the next."""

from math import gcd
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from edgesim.base.arrays import Booleans, Integers
from edgesim.base.needs import GIVEN, Rule
from edgesim.base.quantities import Count, Seconds
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.intervals import Intervals, cycles, joined
from edgesim.traces.models.options import Repeated, refuse_more

_GROUPS, _TURN_S = 5, 600.0


_OF_WINDOWS = ("at_once", "overlap_devices", "turn_rounds")


class RoundRobin(Repeated):
    """Device k belongs to group k mod ``groups``, and the groups overlap in time; or, with ``at_once``, a window of
    neighbouring ids moves on at each turn, and the turns overlap in devices, as in the DPFL benchmark. No draws.
    """

    goes_with: ClassVar[tuple[Rule, ...]] = (
        *(Rule({key: GIVEN}, {"groups": None, "overlap_s": 0}, "it is for a window") for key in _OF_WINDOWS),
        Rule({"turn_rounds": GIVEN}, {"turn_s": None, "order": "given", "after_end": "wrap"}),
    )

    groups: Count | None = Field(None, ge=1)
    """Number of groups; 5 when absent and there is no window."""
    turn_s: Seconds | None = Field(None, ge=1e-6)
    """Time from the start of one turn to the start of the next one; 600 when absent."""
    overlap_s: Seconds = Field(0.0, ge=0)
    """How long a group stays available in the turn of the next."""
    at_once: Count | None = Field(None, ge=1)
    """Devices in the window; 3 when absent and another key of windows is given."""
    overlap_devices: Count | None = Field(None, ge=0)
    """Devices of the window that stay for the next turn, which begins with them; 1 when absent."""
    turn_rounds: Count | None = Field(None, ge=1)
    """Rounds of a turn of the window, instead of ``turn_s``."""

    @property
    def _of_windows(self) -> bool:
        """Whether a key is given that is for a window."""
        return any(getattr(self, key) is not None for key in _OF_WINDOWS)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        window, overlap = self._window
        if self._of_windows and overlap >= window:
            raise ValueError(
                f"overlap_devices ({overlap}) must be below at_once ({window}), or the same devices stay for ever"
            )
        groups, turn_s = self.groups or _GROUPS, self.turn_s or _TURN_S
        if self.overlap_s > (groups - 1) * turn_s:
            raise ValueError(
                f"overlap_s ({self.overlap_s:g}) must not be above the turns of the other groups, "
                f"{(groups - 1) * turn_s:g} s"
            )
        return self

    @property
    def _window(self) -> tuple[int, int]:
        """Devices in the window, and those of them that stay for the next turn."""
        return self.at_once or 3, 1 if self.overlap_devices is None else self.overlap_devices

    @override
    def resolved(self, tmax_s: float, has_rounds: bool) -> Self:
        update: dict[str, float] = {}
        if self._of_windows:
            update["at_once"], update["overlap_devices"] = self._window
        elif self.groups is None:
            update["groups"] = _GROUPS
        if self.turn_rounds is None and self.turn_s is None:
            update["turn_s"] = _TURN_S
        return self.model_copy(update=update)

    @override
    def make(self, device_count: int, streams: Streams) -> Availability:
        """One cycle of turns, repeated; raises `EdgesimError` for a window of more devices than there are."""
        if self._of_windows:
            refuse_more("at_once", self._window[0], device_count)
        return super().make(device_count, streams) if self.turn_rounds is None else self._by_rounds(device_count)

    def _by_rounds(self, device_count: int) -> ByRounds:
        (window, overlap), turn_rounds = self._window, self.turn_rounds
        assert turn_rounds is not None

        def in_slot(ids: Integers, slots: Integers) -> Booleans:
            first = slots // turn_rounds * (window - overlap)
            return np.asarray((ids - first) % device_count < window)

        return ByRounds(device_count, in_slot, "raise availability.at_once")

    @override
    def intervals(self, device_count: int, streams: Streams) -> Intervals:
        """One cycle of turns; available time that passes its end continues at its start."""
        groups, turn_s = self.groups or _GROUPS, self.turn_s or _TURN_S
        if self._of_windows:
            return self._windows(device_count, turn_s)
        return cycles(np.asarray(np.arange(device_count) % groups * turn_s), turn_s + self.overlap_s, groups * turn_s)

    def _windows(self, device_count: int, turn_s: float) -> Intervals:
        window, overlap = self._window
        turns = np.arange(device_count // gcd(device_count, window - overlap))
        device = (turns[:, np.newaxis] * (window - overlap) + np.arange(window)) % device_count
        start_s, end_s = (np.repeat((turns + edge) * turn_s, window) for edge in (0, 1))
        return joined(device.ravel(), start_s, end_s, len(turns) * turn_s, device_count, "availability")
