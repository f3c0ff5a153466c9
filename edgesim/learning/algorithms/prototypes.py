"""Bases of halves that use prototypes, mean features of classes, of which devices send those of their own classes.

Tables have a row for each class, NaN where nobody has the class: numbers that are not sent. So all tables of devices
have one shape, and jobs can be stacked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Arrivals, Device, Devices, Outputs, Samples, Sent, Trained
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.learning.payload import BITS_PER_PARAMETER
from edgesim.learning.torch_types import F, Tensor


@dataclass
class Senders:
    """Number of devices behind each class's prototype at the server."""

    counts: Integers
    """[C]."""
    prototypes_sent: int = 0
    """Prototypes that the server sends with its model."""
    clusters_found: int | None = None
    """Clusters that the merge of this round made; None where nothing is trained."""


class SendsPrototypes(LocalHalf):
    """Devices send a prototype of each class that they hold, which a pass over their data set gives after training."""

    features = True

    @override
    def upload_bits(self, devices: Devices, round: int, ledger: Senders) -> Floats:
        """A prototype of each class that the device holds, [n], and the update if it travels."""
        model = super().upload_bits(devices, round, ledger)
        classes = np.count_nonzero(devices.class_counts, axis=1)
        return np.asarray(model + BITS_PER_PARAMETER * self.sizes.features * classes)

    @override
    def compute_factor(self, devices: Devices, samples: Integers, round: int, ledger: Senders) -> Floats:
        """1 + 1 / (3 E) for one more forward pass over the device's data beside E epochs, [n]."""
        return np.asarray(1 + devices.sizes / (3 * samples))

    @override
    def passes_over(self, device: Device, samples: Samples) -> Integers:
        """The whole data set, of which prototypes are means."""
        return samples.own

    @override
    def sent(self, trained: Trained) -> Sent:
        """The device's prototypes, [C, F]; it keeps its model, if that is its own."""
        return replace(super().sent(trained), up={"prototypes": class_means(*trained.outputs(), self.sizes.classes)})


class MergesPrototypes(ServerHalf):
    """Server that gets and sends prototypes."""

    merges = "models and more"

    @property
    @override
    def pooled_up(self) -> Mapping[str, int]:
        return {"prototypes": self.sizes.classes * self.sizes.features}

    @override
    def ledger(self, round: int, last: Senders | None) -> Senders:
        """A ledger without prototypes."""
        return last or Senders(np.zeros(self.sizes.classes, dtype=np.int64))


def senders(arrived: Arrivals) -> Integers:
    """Number of devices that hold each class, [C], among those that arrived or all of the pool."""
    class_counts = arrived.class_counts if arrived.pool is None else arrived.pool.class_counts
    return np.asarray(np.count_nonzero(class_counts > 0, axis=0), dtype=np.int64)


def class_means(outputs: Outputs, labels: Tensor, classes: int) -> Tensor:
    """Mean features of the samples of each class, [C, F]; NaN for a class without any."""
    members = F.one_hot(labels, classes).T.to(outputs.features)
    return (members @ outputs.features) / members.sum(1, keepdim=True)


def held(table: Tensor) -> Tensor:
    """Whether each row of a table of prototypes [..., F] is there, [...]."""
    return ~table[..., 0].isnan()
