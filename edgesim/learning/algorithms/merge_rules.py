"""Merge rules of protocols: weights of the updates that arrived, and their order in the sum.

FedBuff: Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", 2022. FedAsync: Xie, Koyejo, Gupta,
"Asynchronous Federated Optimization", 2019.
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Count, Factor
from edgesim.learning.algorithms import algorithm
from edgesim.learning.algorithms.records import Arrivals, State
from edgesim.learning.algorithms.server_half import ServerHalf


class MergeRule:
    """Merge rule of rounds: the algorithm weighs the updates of a round and merges them at once."""

    Options = algorithm.Options
    in_order_of_arrival: ClassVar[bool] = False
    """Whether updates enter a sum in order of arrival; else in the order of their devices' ids."""
    one_by_one: ClassVar[bool] = False
    """Whether every single update makes a model."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @property
    def updates_per_model(self) -> int | None:
        """Updates that make the next model; None where a round decides."""
        return None

    def weigh(self, server: ServerHalf, arrived: Arrivals) -> Floats:
        """Weight of each update, [S]."""
        return server.weigh(arrived)

    def merge(self, server: ServerHalf, state: State, arrived: Arrivals, alpha: Floats, ledger: Any) -> State:
        """The next state of the server."""
        return server.merge(state, arrived, alpha, ledger)


IN_ROUNDS = MergeRule(algorithm.Options())


class FedBuffOptions(algorithm.Options):
    """Options of FedBuff."""

    buffer: Count = Field(10, ge=1)
    """K: updates that make the next model."""
    server_lr: Factor = Field(1.0, gt=0)
    """eta_g, by which the mean update is multiplied."""


class FedBuff(MergeRule):
    """Every K updates make a model."""

    Options = FedBuffOptions
    in_order_of_arrival: ClassVar[bool] = True

    @property
    @override
    def updates_per_model(self) -> int:
        """K."""
        return int(self.options.buffer)

    @override
    def weigh(self, server: ServerHalf, arrived: Arrivals) -> Floats:
        """eta_g w(s) / K (Algorithm 1), [K]; by K, not by the weights' sum."""
        return np.asarray(arrived.age_weight * (self.options.server_lr / len(arrived.ids)))


class FedAsyncOptions(algorithm.Options):
    """Options of FedAsync."""

    mixing: float = Field(0.6, gt=0, le=1)
    """alpha: how much of the model an update replaces that is not stale."""


class FedAsync(MergeRule):
    """Every update makes a model."""

    Options = FedAsyncOptions
    in_order_of_arrival: ClassVar[bool] = True
    one_by_one: ClassVar[bool] = True

    @property
    @override
    def updates_per_model(self) -> int:
        """One."""
        return 1

    @override
    def weigh(self, server: ServerHalf, arrived: Arrivals) -> Floats:
        """alpha_s = alpha w(s), [S]."""
        return np.asarray(arrived.age_weight * self.options.mixing)

    @override
    def merge(self, server: ServerHalf, state: State, arrived: Arrivals, alpha: Floats, ledger: Any) -> State:
        """(1 - alpha_s) w + alpha_s w_client (Algorithm 1), update after update."""
        for start, update, share in zip(arrived.starts, arrived.separate, alpha.tolist(), strict=True):
            state = replace(state, weights=(1.0 - share) * state.weights + share * (start + update))
        return state
