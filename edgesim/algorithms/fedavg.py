"""Federated averaging: McMahan et al., "Communication-Efficient Learning of Deep Networks", AISTATS 2017."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from edgesim.arrays import Floats, Integers

if TYPE_CHECKING:
    from torch import Tensor


def counted(sizes: Integers, how: Literal["samples", "equal"]) -> Floats:
    """What each update counts before its age does, [S]: its device's samples, or 1 (FedDance, SoCC 2025)."""
    return np.ones(len(sizes)) if how == "equal" else np.asarray(sizes, dtype=np.float64)


def weights(sizes: Integers | Floats) -> Floats:
    """alpha_n = D_n / sum of D over the devices merged, [S] (FedTeddi, eq. 3); empty for none."""
    return np.asarray(sizes / np.sum(sizes)) if len(sizes) else np.empty(0)


def aggregate(start: Tensor, updates: Tensor, alpha: Floats) -> Tensor:
    """The new global model, [P]: the start [P] plus the weighted sum of updates [S, P]."""
    return start + updates.new_tensor(alpha) @ updates
