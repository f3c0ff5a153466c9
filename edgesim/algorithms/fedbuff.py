"""Buffered asynchronous averaging: Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", 2022."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from edgesim.algorithms import algorithm
from edgesim.algorithms.algorithm import Algorithm, Arrivals
from edgesim.algorithms.merge_rule import MergeRule
from edgesim.arrays import Floats


class FedBuffOptions(algorithm.Options):
    """Options of ``round.protocol = "buffered"``."""

    buffer: int = Field(10, ge=1)
    """K: updates that make the next model."""
    server_lr: float = Field(1.0, gt=0)
    """eta_g, by which the mean update is multiplied."""


class FedBuff(MergeRule):
    """Every K updates make a model."""

    Options: ClassVar[type[algorithm.Options]] = FedBuffOptions
    in_order_of_arrival: ClassVar[bool] = True

    @property
    def updates_per_model(self) -> int:
        """K."""
        return int(self.options.buffer)

    def weigh(self, algorithm: Algorithm, arrived: Arrivals) -> Floats:
        """eta_g w(s) / K (Algorithm 1), [K]; by K, not by the weights' sum."""
        return np.asarray(arrived.age_weight * (self.options.server_lr / len(arrived.ids)))
