"""Federated averaging: McMahan et al., "Communication-Efficient Learning of Deep Networks", AISTATS 2017."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgesim.selection.view import Floats, Integers

if TYPE_CHECKING:
    from torch import Tensor


def weights(sizes: Integers | Floats) -> Floats:
    """alpha_n = D_n / sum of D over the devices merged, [S] (FedTeddi, eq. 3); empty for none."""
    return np.asarray(sizes / np.sum(sizes)) if len(sizes) else np.empty(0)


def aggregate(start: Tensor, updates: Tensor, alpha: Floats) -> Tensor:
    """The new global model, [P]: the start [P] plus the weighted sum of updates [S, P]."""
    return start + updates.new_tensor(alpha) @ updates
