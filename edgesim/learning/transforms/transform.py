"""The base of what happens to updates on their way to the server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from edgesim.base.arrays import Floats, Integers
from edgesim.learning.torch_types import Tensor

Metrics = dict[tuple[str, str], float]
"""Rows of ``metrics`` by (name, key)."""


@dataclass(frozen=True)
class Passed:
    """Updates after a transform, and what there is to report of it."""

    received: list[Tensor]
    """[S] of [P]."""
    report: Callable[[Floats], Metrics] = lambda alpha: {}
    """Rows of ``metrics``, given the weights of the updates in the merge, [S]."""
    memories: Mapping[int, Tensor] = field(default_factory=dict)
    """What it is to remember of devices from then on, once the updates are merged."""


class Transform(ABC):
    """A change of updates; what it remembers of a device changes when an update of the device is merged."""

    stored: int = 0
    """Vectors of trainable parameters that it remembers of each device that was ever merged."""

    def __init__(self) -> None:
        self.state: dict[int, Tensor] = {}
        """What it remembers of each device; saved with a run."""

    @abstractmethod
    def apply(
        self, ids: Integers, tasks: Integers, updates: Sequence[Tensor], settings: Sequence[int] | None = None
    ) -> Passed:
        """Change the updates of a merge, [S] of [P], in order of arrival, in new tensors.

        ``ids`` are their devices and ``tasks`` the numbers of the tasks among each device's own, [S] each. A device may
        have several. ``settings`` are those with which each is coded, [S], as the codec's options say when absent. What
        it remembers stays as it is: the updates may not be merged yet.
        """

    def written_bits(self, ids: Integers, tasks: Integers, updates: Sequence[Tensor]) -> list[int] | None:
        """Bits of the message of each update, [S]; None for a transform that writes none."""
        return None

    def received(
        self, ids: Integers, tasks: Integers, updates: Sequence[Tensor], settings: Sequence[int] | None = None
    ) -> list[Tensor]:
        """What `apply` makes of updates, for callers that neither report nor remember anything."""
        return self.apply(ids, tasks, updates, settings).received

    def of_lost(self, ids: Integers, updates: Sequence[Tensor]) -> Mapping[int, Tensor]:
        """What it is to remember of devices whose updates, [S] of [P], got no further than here and are lost."""
        return {}
