"""Weights of late updates by staleness, the number of models between the one that each started from and now."""

from collections.abc import Mapping

import numpy as np

from edgesim.base.arrays import Floats, Integers, repeated
from edgesim.base.needs import Condition, Rule
from edgesim.config import StalenessConfig
from edgesim.learning.torch_types import Tensor


def without_age(when: Mapping[str, Condition], why: str) -> Rule:
    """Rule against weights by staleness that are neither the protocol's default nor constant."""
    return Rule(when, {}, why, ("default staleness",))


def weights(config: StalenessConfig, staleness: Integers, change: Floats | None = None) -> Floats:
    """Weights of updates by their staleness, relative to fresh ones, [n]; 1 for staleness 0.

    ``change`` is the `relative_change` of each update, which ``refl`` alone needs; that of fresh ones has no effect.

    ``constant``: 1. ``polynomial``: (1 + s)^(-a); ``hinge``: 1 up to b, then 1 / (a (s - b) + 1) (Xie et al.,
    "Asynchronous Federated Optimization", 2019, section 5.2; FedBuff uses the polynomial with a = 1/2). ``refl``:
    `refl_weights`.
    """
    s = np.asarray(staleness, dtype=np.float64)
    a, b, beta = config.a, config.b, config.beta
    if config.weight == "polynomial":
        assert a is not None
        return np.asarray((1.0 + s) ** -a)
    if config.weight == "hinge":
        assert a is not None
        assert b is not None
        return np.where(s <= b, 1.0, 1.0 / (a * np.maximum(s - b, 0.0) + 1.0))
    if config.weight == "refl":
        assert change is not None
        assert beta is not None
        most = change[s > 0].max(initial=0.0)
        ratio = change / most if most > 0 else np.ones(len(s))
        return np.where(s == 0, 1.0, refl_weights(s, ratio, beta))
    return repeated(1.0, len(s))


def refl_weights(staleness: Floats, ratio: Floats, beta: float) -> Floats:
    """(1 - beta) / (s + 1) + beta (1 - exp(-ratio)), [n] (Abdelmoniem et al., "REFL", EuroSys 2023, section 4.2).

    ``ratio`` [n] is each update's relative change over the largest one of a late update of the round.
    """
    return np.asarray((1.0 - beta) / (staleness + 1.0) + beta * -np.expm1(-ratio))


def relative_change(stale: Tensor, fresh: Tensor) -> Floats:
    """Relative squared change of the mean of fresh updates [m, T] by each stale update [n, T], [n].

    L = |mean - (update + m mean) / (m + 1)|^2 / |mean|^2 (REFL, section 4.2); 1 for all where nothing fresh arrived, or
    nothing that moves the model. T are the trainable parameters alone: running statistics are no weights, and would
    outweigh them (92 % of the squared norm of a ResNet's update).
    """
    mean = fresh.mean(dim=0) if len(fresh) else None
    if mean is None or not mean.any():
        return np.ones(len(stale))
    moved = (mean - stale) / (len(fresh) + 1)
    return np.asarray((moved.square().sum(dim=1) / mean.square().sum()).double().cpu().numpy())
