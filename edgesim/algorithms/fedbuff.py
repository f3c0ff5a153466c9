"""Buffered asynchronous averaging: Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", 2022."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgesim.arrays import Floats

if TYPE_CHECKING:
    from torch import Tensor


def weights(relative: Floats, server_lr: float) -> Floats:
    """What each of K deltas counts, [K]: eta_g w(s) / K (Algorithm 1); by K, not by the weights' sum."""
    return relative * (server_lr / len(relative))


def aggregate(model: Tensor, deltas: Tensor, weights: Floats) -> Tensor:
    """The next model, [P]: w plus the weighted sum of deltas [K, P]."""
    return model + deltas.new_tensor(weights) @ deltas
