"""FedStg's aggregation, SAC 2026: an update counts by its device's samples, its speed and the rarity of its classes.

The drift of its label mixes is `edgesim.learning.drift.rotation`, its schedule of merges `edgesim.engine.stagnation`.
"""

from typing import Annotated

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.records import Arrivals, Sizes
from edgesim.learning.algorithms.server_half import BY_CLASSES, ServerHalf, counts, normalised
from edgesim.streams import Streams

_GAIN, _MOST = 0.25, 1.5
"""Slope of r over b, and largest r."""


class FedStgOptions(AveragingOptions):
    """Options of FedStg's server."""

    speeds: list[Annotated[float, Field(gt=0, le=1)]] = Field([1.0, 0.9, 0.8], min_length=1)
    """s of the classes of speed, in turn: device i is of class i modulo their number. With ``[1.0]`` speed does not
    count."""
    rarity: bool = True
    """Whether updates of devices with rare classes count more, r; else r = 1."""


class FedStgServer(ServerHalf):
    """alpha_i = n_i s_i r_i, as shares of the sum over the updates that are merged."""

    merges = "updates"

    def __init__(self, options: FedStgOptions, sizes: Sizes, streams: Streams) -> None:
        super().__init__(options, sizes, streams)
        self.weighs_by = BY_CLASSES if options.rarity else ""

    @override
    def weigh(self, arrived: Arrivals) -> Floats:
        """alpha_i of each update, [S]."""
        speeds = np.array(self.options.speeds)
        weights = counts(self, arrived.samples) * speeds[arrived.ids % len(speeds)]
        if self.options.rarity:
            weights = weights * rarity(arrived.class_counts)
        return normalised(weights)


class FedStg(Algorithm):
    """FedAvg with FedStg's weights of updates."""

    Options = FedStgOptions
    Server = FedStgServer
    halves = frozenset({"server"})
    needs = frozenset({"rounds", "punctual updates"})


def rarity(class_counts: Integers) -> Floats:
    """r of devices with so many samples of each class, [S, C]: how rare their classes are among them, [S], 1 to 1.5.

    With rel_c = S / devices that hold c and b the mean of it over a device's classes, r = min(1.5, 1 + (b - 1) / 4). 1
    for devices without classes.
    """
    holds = class_counts > 0
    relative = len(holds) / np.maximum(holds.sum(axis=0), 1)
    classes = holds.sum(axis=1)
    mean = np.where(classes > 0, holds @ relative / np.maximum(classes, 1), 1.0)
    return np.minimum(_MOST, 1 + _GAIN * (mean - 1))
