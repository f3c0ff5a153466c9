"""Held-out samples: each device tests its training on them, and never trains on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Integers

ONE_IN = 10
"""Samples per held-out sample; at least one is held out per pool."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out samples of every device; devices that share a pool share its held-out samples."""

    parts: Sequence[Integers] = ()
    """Indices into the training set, of all devices or one array for each; empty where nothing is held out."""

    def of(self, device: int) -> Integers:
        """Held-out samples of a device: indices into the training set."""
        return self.parts[min(device, len(self.parts) - 1)] if self.parts else np.empty(0, dtype=np.int64)

    def sizes(self, devices: Integers) -> Integers:
        """Number of held-out samples of each device, [n]."""
        if not self.parts:
            return np.zeros(len(devices), dtype=np.int64)
        sizes = np.array([len(part) for part in self.parts])
        return np.asarray(sizes[np.minimum(devices, len(sizes) - 1)])


NONE = HeldOut()


def part_of(size: int) -> int:
    """Number of samples held out of ``size``."""
    return max(1, size // ONE_IN)
