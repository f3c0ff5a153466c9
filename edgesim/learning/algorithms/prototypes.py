"""The base of algorithms of prototypes, mean features of classes, of which devices send those of their own classes.

Tables have a row for each class, NaN where nobody has the class: numbers that are not sent. So all tables of devices
have one shape, and jobs can be stacked.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.learning.algorithms.algorithm import Algorithm, Arrivals, Device, Devices, Outputs, Samples, Sent, Trained
from edgesim.learning.payload import BITS_PER_PARAMETER
from edgesim.learning.torch_types import Tensor


@dataclass
class Senders:
    """Number of devices behind each class's prototype at the server."""

    counts: Integers
    """[C]."""
    holds: dict[int, Booleans] = field(default_factory=dict)
    """Whether each device that was ever merged holds each class, [C]; filled with `Algorithm.has_model_pool` alone."""
    prototypes_sent: int = 0
    """Prototypes that the server sends with its model."""
    clusters_found: int | None = None
    """Clusters that the merge of this round made; None where nothing is trained."""


class WithPrototypes(Algorithm):
    """Devices send a prototype of each class that they hold, which a pass over their data set gives after training."""

    needs: ClassVar[frozenset[str]] = frozenset({"joint merges"})
    features: ClassVar[bool] = True
    pooled_up: ClassVar[tuple[str, ...]] = ("prototypes",)

    @override
    def ledger(self, round: int) -> Senders:
        """A ledger without prototypes."""
        return Senders(np.zeros(self.sizes.classes, dtype=np.int64))

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

    @override
    def pooled_numbers(self) -> int:
        return self.sizes.classes * self.sizes.features

    def senders(self, ledger: Senders, arrived: Arrivals) -> Integers:
        """Number of devices that hold each class, [C].

        Devices that arrived count or, with `Algorithm.has_model_pool`, all that were ever merged.
        """
        holds = arrived.class_counts > 0
        if self.has_model_pool:
            ledger.holds |= dict(zip(arrived.ids.tolist(), holds, strict=True))
            holds = np.stack(list(ledger.holds.values()))
        return np.asarray(np.count_nonzero(holds, axis=0), dtype=np.int64)


def class_means(outputs: Outputs, labels: Tensor, classes: int) -> Tensor:
    """Mean features of the samples of each class, [C, F]; NaN for a class without any."""
    from torch.nn.functional import one_hot

    members = one_hot(labels, classes).T.to(outputs.features)
    return (members @ outputs.features) / members.sum(1, keepdim=True)


def held(table: Tensor) -> Tensor:
    """Whether each row of a table of prototypes [..., F] is there, [...]."""
    return ~table[..., 0].isnan()
