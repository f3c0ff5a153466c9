"""Halves: devices with even ids hold the first classes, those with odd ids the others."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from edgesim.arrays import Integers
from edgesim.errors import EdgesimError
from edgesim.learning.partitions.partition import Partition
from edgesim.streams import Streams


class Halves(Partition):
    """Options of the partition, keys of ``[data.partition_options]``."""

    default_samples: ClassVar[int] = 40
    mixed: float = Field(0.0, ge=0, le=1)
    """Share of a device's samples that is drawn from all classes."""

    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """One list of devices, since nothing changes over time; devices may hold the same sample.

        Every draw comes from a named stream, so that the same seed deals the same samples.
        """
        size = samples_per_device or self.default_samples
        of_all = round(self.mixed * size)
        halves = [np.flatnonzero(labels < class_count / 2), np.flatnonzero(labels >= class_count / 2)]
        parts = []
        for device in range(device_count):
            half = halves[device % 2]
            if size - of_all > len(half) or of_all > len(labels):
                raise EdgesimError(f"data.samples_per_device: {size} is more than there are; lower it")
            random = streams.generator("partition/halves", device)
            own = random.choice(half, size - of_all, replace=False)
            others = np.setdiff1d(np.arange(len(labels)), own)
            parts.append(np.sort(np.concatenate([own, random.choice(others, of_all, replace=False)])))
        return [parts]
