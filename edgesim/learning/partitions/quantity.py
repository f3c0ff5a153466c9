"""Quantity skew: the same mix of classes everywhere, up to chance, in sets of very different size.

NIID-Bench (Li et al., ICDE 2022, "quantity skew").
"""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.learning.partitions.dealing import cut, fill_empty_hands, hands, shuffled_pool
from edgesim.learning.partitions.partition import Alpha, Partition
from edgesim.streams import Streams


class Quantity(Partition):
    """Sizes are shares q ~ Dir_N(alpha) of the training set, filled at random."""

    alpha: Alpha = 0.5
    """Concentration: the smaller, the more uneven the sizes."""

    @override
    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """Every sample of the pool goes to one device; see `Partition.divide`."""
        pool = shuffled_pool(labels, device_count, samples_per_device, streams)
        shares = streams.generator("partition/quantity").dirichlet(np.full(device_count, self.alpha))
        owner = np.repeat(np.arange(device_count), cut(shares, np.array(len(pool))))
        return [hands(pool, fill_empty_hands(owner, device_count, streams), device_count)]
