"""Asynchronous mixing: Xie, Koyejo, Gupta, "Asynchronous Federated Optimization", 2019 (FedAsync)."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from edgesim.algorithms import algorithm
from edgesim.algorithms.algorithm import Algorithm, Arrivals, State
from edgesim.algorithms.merge_rule import MergeRule
from edgesim.arrays import Floats


class FedAsyncOptions(algorithm.Options):
    """Options of ``round.protocol = "asynchronous"``."""

    mixing: float = Field(0.6, gt=0, le=1)
    """alpha: how much of the model an update replaces that is not stale."""


class FedAsync(MergeRule):
    """Every update makes a model."""

    Options: ClassVar[type[algorithm.Options]] = FedAsyncOptions
    in_order_of_arrival: ClassVar[bool] = True
    one_by_one: ClassVar[bool] = True

    def weigh(self, algorithm: Algorithm, arrived: Arrivals) -> Floats:
        """alpha_s = alpha w(s), [S]."""
        return np.asarray(arrived.age_weight * self.options.mixing)

    def merge(self, algorithm: Algorithm, state: State, arrived: Arrivals, alpha: Floats, ledger: Any) -> State:
        """(1 - alpha_s) w + alpha_s w_client (Algorithm 1), update after update."""
        assert arrived.updates is not None
        for start, update, share in zip(arrived.starts, arrived.updates, alpha.tolist(), strict=True):
            state = replace(state, weights=(1.0 - share) * state.weights + share * (start + update))
        return state
