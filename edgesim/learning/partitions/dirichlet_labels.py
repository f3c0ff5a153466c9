"""Label skew by a Dirichlet law per device: each draws its samples by a label mix of its own.

FedDance, SoCC 2025, with the published program's `custom_partition`. Devices draw independently of each other, so a
sample may lie on several of them; on one device it lies once.
"""

from typing import Annotated, Any

import numpy as np
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, field_validator
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import Count
from edgesim.learning.partitions.partition import Alpha, Partition
from edgesim.streams import Streams

_Ramp = Annotated[list[Alpha], Field(min_length=2, max_length=2)]


class DirichletLabels(Partition):
    """A mix q ~ Dir(alpha) over the labels; of ``slots`` samples, floor(slots q_c) are of class c.

    ``slots`` is ``samples_per_device``, or the training set over the number of devices, rounded down. A device holds
    a few samples less because of the floors, and no more of a class than there are; where all floors are 0, it holds
    one sample of its likeliest class.
    """

    alpha: Alpha | Annotated[list[_Ramp], Field(min_length=1)] = 0.1
    """Concentration of all devices; or ramps such as ``[[0.1, 2.0], [50.0, 100.0]]`` (FedDance's preprint): devices in
    equal blocks by id, from the first value of the block's ramp to the last."""
    labels_per_device: Count | None = Field(None, ge=1)
    """Labels over which a device's mix is drawn, chosen at random (50 on FedDance's Tiny-ImageNet); all when absent."""

    @field_validator("alpha", mode="wrap")
    @classmethod
    def _number_or_ramps(cls, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check(value)
        except ValidationError:
            expected = "a number from 0.001 to 1e6, or a list of [first, last] pairs of such numbers"
            raise ValueError(f"expected {expected} (got {value!r})") from None

    @override
    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """A device's set is a function of its id, alpha and slots; see `Partition.divide`."""
        slots = samples_per_device or len(labels) // device_count
        if slots == 0:
            raise EdgesimError(
                f"devices.count: {device_count} devices are more than the {len(labels)} training samples; lower it or "
                "give data.samples_per_device",
                "devices.count",
            )
        members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        mixed = self.labels_per_device or len(members)
        if mixed > len(members):
            raise EdgesimError(
                f"data.partition_options.labels_per_device: {mixed} is more than the {len(members)} classes; lower it"
            )
        parts = []
        generators = streams.generators("partition/dirichlet-labels", np.arange(device_count))
        for random, alpha in zip(generators, self._alphas(device_count), strict=True):
            chosen = [members[label] for label in random.choice(len(members), mixed, replace=False)]
            shares = random.dirichlet(np.full(mixed, alpha))
            counts = np.floor(slots * shares).astype(np.int64)
            if not counts.any():
                counts[np.argmax(shares)] = 1
            draws = [
                random.choice(samples, min(count, len(samples)), replace=False)
                for samples, count in zip(chosen, counts.tolist(), strict=True)
                if count
            ]
            parts.append(np.sort(np.concatenate(draws)))
        return [parts]

    def _alphas(self, device_count: int) -> Floats:
        """Concentration of each device's mix, [N]."""
        if isinstance(self.alpha, float):
            return np.full(device_count, self.alpha)
        blocks = np.array_split(np.arange(device_count), len(self.alpha))
        ramps = zip(self.alpha, blocks, strict=True)
        return np.concatenate([np.linspace(first, last, len(block)) for (first, last), block in ramps])
