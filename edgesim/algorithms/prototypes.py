"""Prototypes, the mean features of classes, as tensors in which the rows of classes that nobody has are NaN.

NaN stands for numbers that are not sent. Tables of all classes have one shape, so that jobs can be stacked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgesim.algorithms.algorithm import Arrivals, Devices, Outputs
from edgesim.arrays import Floats, Integers
from edgesim.learning.payload import BITS_PER_PARAMETER

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Senders:
    """How many devices sent a prototype of each class that the server holds now."""

    counts: Integers
    """[C]."""
    rows: int = 0
    """Prototypes that the server sends with its model."""
    clusters: int | None = None
    """Of the round that is being merged; None where nothing is trained."""


def class_means(outputs: Outputs, labels: Tensor, classes: int) -> Tensor:
    """Mean features of the samples of each class, [C, F]; NaN for a class without any."""
    from torch.nn.functional import one_hot

    assert outputs.features is not None
    members = one_hot(labels, classes).T.to(outputs.features)
    return (members @ outputs.features) / members.sum(1, keepdim=True)


def held(table: Tensor) -> Tensor:
    """Whether each row of a table of prototypes [..., F] is there, [...]."""
    return ~table[..., 0].isnan()


def of_own_classes(devices: Devices, features: int) -> Floats:
    """Bits of a prototype of each class that a device holds, [n]."""
    return np.asarray(BITS_PER_PARAMETER * features * np.count_nonzero(devices.class_counts, axis=1), dtype=np.float64)


def senders_of(arrived: Arrivals) -> Integers:
    """How many of those that arrived hold each class, [C]."""
    return np.asarray(np.count_nonzero(arrived.class_counts, axis=0), dtype=np.int64)


def pass_factor(sizes: Integers, samples: Integers) -> Floats:
    """1 + 1 / (3 E) for one more forward pass over data sets of ``sizes`` [n] beside E epochs, [n]."""
    return np.asarray(1 + sizes / (3 * samples))
