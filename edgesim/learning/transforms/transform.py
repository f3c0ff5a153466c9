"""The base of what happens to updates on their way to the server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgesim.base.arrays import Floats, Integers
from edgesim.learning.torch_types import Tensor

Metrics = dict[tuple[str, str], float]
"""Rows of ``metrics`` by (name, key)."""


@dataclass(frozen=True)
class Updates:
    """Updates on their way to the server, in order of arrival, in which a device may have several."""

    ids: Integers
    """Devices, [S]."""
    tasks: Integers
    """Numbers of the tasks among each device's own, [S]."""
    vectors: Sequence[Tensor]
    """[S] of [P]."""
    settings: Sequence[int] | None = None
    """Settings with which each is coded, [S]; as the codec's options say when absent."""

    def having(self, vectors: Sequence[Tensor]) -> Updates:
        """The same updates with other numbers, [S] of [P]."""
        return replace(self, vectors=vectors)


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
    def apply(self, updates: Updates) -> Passed:
        """Change the updates of a merge, in new tensors.

        What it remembers stays as it is: the updates may not be merged yet.
        """

    def written_bits(self, updates: Updates, numbers: int) -> list[int] | None:
        """Bits of the message of each update if it had so many numbers, [S]; None for a transform that writes none."""
        return None

    def received(self, updates: Updates) -> list[Tensor]:
        """What `apply` makes of updates, for callers that neither report nor remember anything."""
        return self.apply(updates).received

    def of_lost(self, updates: Updates) -> Mapping[int, Tensor]:
        """What it is to remember of devices whose updates got no further than here and are lost."""
        return {}
