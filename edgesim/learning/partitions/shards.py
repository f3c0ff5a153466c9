"""Label-sorted shards: sort by class, cut into equal pieces, give each device a few.

McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017, section 3:
MNIST in 200 shards of 300, two for each of 100 clients.
"""

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import Count
from edgesim.learning.partitions.dealing import by_class, hands, shuffled_pool
from edgesim.learning.partitions.partition import Partition
from edgesim.streams import Streams


class Shards(Partition):
    """Shards at random to the devices, equally many to each; their sizes differ by one sample at most."""

    shards_per_device: Count = Field(2, ge=1)
    """Shards, sorted by class, that each device is dealt."""

    @override
    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """Every sample of the pool goes to one device; see `Partition.divide`."""
        pool = by_class(shuffled_pool(labels, device_count, samples_per_device, streams), labels)
        shards = device_count * self.shards_per_device
        if shards > len(pool):
            raise EdgesimError(
                f"data.partition_options.shards_per_device: {self.shards_per_device} for each of {device_count} "
                f"devices are more shards than the {len(pool)} training samples; lower it or devices.count",
                "devices.count",
            )
        shard = np.arange(len(pool)) * shards // len(pool)
        owner = streams.generator("partition/shards").permutation(shards)[shard] // self.shards_per_device
        return [hands(pool, owner, device_count)]
