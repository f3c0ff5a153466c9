"""Samples of its own on which each device measures how well it trains, and never trains itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Integers

ONE_IN = 10
"""One of so many samples is held out, and at least one."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Those of every device; devices that share a pool share its samples held out."""

    parts: Sequence[Integers] = ()
    """Indices into the training set, of all devices or one array for each; empty where nothing is held out."""

    def of(self, device: int) -> Integers:
        """The samples of a device."""
        return self.parts[min(device, len(self.parts) - 1)] if self.parts else np.empty(0, dtype=np.int64)

    def sizes(self, devices: Integers) -> Integers:
        """How many each of some devices has, [n]."""
        if not self.parts:
            return np.zeros(len(devices), dtype=np.int64)
        sizes = np.array([len(part) for part in self.parts])
        return np.asarray(sizes[np.minimum(devices, len(sizes) - 1)])


NONE = HeldOut()


def part_of(size: int) -> int:
    """How many of so many samples are held out."""
    return max(1, size // ONE_IN)
