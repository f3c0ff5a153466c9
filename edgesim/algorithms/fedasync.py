"""Asynchronous mixing: Xie, Koyejo, Gupta, "Asynchronous Federated Optimization", 2019 (FedAsync)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def mix(model: Tensor, trained: Tensor, alpha: float) -> Tensor:
    """The next model, [P]: (1 - alpha_s) w + alpha_s w_client (Algorithm 1), alpha_s = alpha times the weight."""
    return (1.0 - alpha) * model + alpha * trained
