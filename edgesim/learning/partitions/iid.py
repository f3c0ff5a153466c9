"""Equal random parts: every device holds the same mix of classes, up to chance."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.learning.partitions.partition import Partition
from edgesim.streams import Streams


class Iid(Partition):
    """Parts dealt from successive random permutations of the training set.

    They are disjoint as long as the set is large enough for all devices, and a part never holds a sample twice.
    """

    default_samples: ClassVar[int] = 60

    @override
    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """Parts of ``samples_per_device`` each; see `Partition.divide`."""
        size = samples_per_device or self.default_samples
        if size > len(labels):
            raise EdgesimError(
                f"data.samples_per_device: {size} is more than the {len(labels)} training samples; lower it"
            )
        parts_per_deal = len(labels) // size
        parts: list[Integers] = []
        for deal in range(-(-device_count // parts_per_deal)):
            order = streams.generator("partition/iid", round=deal).permutation(len(labels))
            parts.extend(order[: parts_per_deal * size].reshape(parts_per_deal, size))
        return [[np.sort(part) for part in parts[:device_count]]]
