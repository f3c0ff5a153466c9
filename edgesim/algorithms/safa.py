"""SAFA's server: Wu et al., "SAFA: a semi-asynchronous protocol for fast federated learning", IEEE TC 2021.

It keeps one model per device in a cache and averages all of them, so that who is not picked still counts. Who is
picked is chosen by `edgesim.selection.safa`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgesim.selection.view import Floats, Integers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class SafaState:
    """What the server remembers of every device."""

    cache: Tensor
    """Model that counts for each device, [devices, P]."""
    versions: Integers
    """Last round in which each finished training, [devices]; 0 before the first."""

    @classmethod
    def start(cls, model: Tensor, devices: int) -> SafaState:
        """Before the first round: everybody has the start model, [P]."""
        return cls(model.repeat(devices, 1), np.zeros(devices, dtype=np.int64))


@dataclass(frozen=True)
class Distribution:
    """Who starts a round from which model; each device is in one of the three, [devices] of bool."""

    up_to_date: NDArray[np.bool_]
    """Finished the last round: starts from the global model."""
    deprecated: NDArray[np.bool_]
    """Lags by more than is tolerated: starts from the global model, its own work is lost."""
    tolerable: NDArray[np.bool_]
    """Goes on with its own model."""


def distribute(versions: Integers, round: int, lag: int) -> Distribution:
    """Who gets the global model at the start of a round, from 1: SAFA, lag-tolerant distribution."""
    behind = round - 1 - versions
    up_to_date, deprecated = behind == 0, behind > lag
    return Distribution(up_to_date, deprecated, ~(up_to_date | deprecated))


def merge(
    state: SafaState,
    model: Tensor,
    sizes: Integers,
    deprecated: Integers,
    picked: tuple[Integers, Tensor],
    undrafted: tuple[Integers, Tensor],
    round: int,
) -> Tensor:
    """The new global model, [P]: the mean of all cache entries, weighted by data-set sizes [devices].

    Before it, entries of ``deprecated`` ids become the global ``model`` [P], and those ``picked`` what they uploaded
    (ids [S] and models [S, P]). After it, those ``undrafted``, who finished but were not picked, enter the cache and
    count from the next round on: SAFA, three-step aggregation. All who finished have the round's
    version.
    """
    state.cache[deprecated] = model
    state.cache[picked[0]] = picked[1]
    share: Floats = sizes / sizes.sum()
    merged = state.cache.new_tensor(share) @ state.cache
    state.cache[undrafted[0]] = undrafted[1]
    state.versions[np.concatenate([picked[0], undrafted[0]])] = round
    return merged
