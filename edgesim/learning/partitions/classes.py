"""A fixed number of classes per device; the devices that hold a class share its samples equally.

NIID-Bench (Li et al., ICDE 2022, "quantity-based label imbalance", #C = k), after the two-digit clients of McMahan et
al., AISTATS 2017.
"""

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import Count
from edgesim.learning.partitions.dealing import hands, shuffled_pool
from edgesim.learning.partitions.partition import Partition
from edgesim.streams import Streams


class Classes(Partition):
    """Device n holds class n mod C and k - 1 others drawn at random; a class that nobody holds is left out."""

    classes_per_device: Count = Field(2, ge=1)
    """Classes of which each device holds samples."""

    @override
    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """Sets whose sizes follow from the classes held; see `Partition.divide`."""
        if self.classes_per_device > class_count:
            raise EdgesimError(
                f"data.partition_options.classes_per_device: {self.classes_per_device} is more than the {class_count} "
                "classes; lower it"
            )
        pool = shuffled_pool(labels, device_count, samples_per_device, streams)
        held = self._held(class_count, device_count, streams)
        samples, owners = [], []
        for label in np.flatnonzero(held.any(axis=0)).tolist():
            members, holders = pool[labels[pool] == label], np.flatnonzero(held[:, label])
            if len(members) < len(holders):
                raise EdgesimError(
                    f"data.partition_options.classes_per_device: {len(holders)} devices would share the {len(members)} "
                    f"training samples of class {label}; lower it or devices.count",
                    "devices.count",
                )
            samples.append(members)
            owners.append(holders[np.arange(len(members)) % len(holders)])
        return [hands(np.concatenate(samples), np.concatenate(owners), device_count)]

    def _held(self, class_count: int, device_count: int, streams: Streams) -> Booleans:
        """Whether each device holds each class, [N, C]."""
        devices = np.arange(device_count)
        order = streams.uniform("partition/classes", devices, count=class_count)
        order[devices, devices % class_count] = 0.0  # below every draw
        chosen = np.argpartition(order, self.classes_per_device - 1, axis=1)[:, : self.classes_per_device]
        held = np.zeros((device_count, class_count), dtype=bool)
        held[devices[:, None], chosen] = True
        return held
