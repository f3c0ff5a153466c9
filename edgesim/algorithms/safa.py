"""SAFA's server: Wu et al., "SAFA: a semi-asynchronous protocol for fast federated learning", IEEE TC 2021.

It remembers one model per device and averages all of them, so that who is not picked, late or away still counts. Who is
picked of those that finish is said by `edgesim.selection.safa`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgesim.selection.view import Floats, Integers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Distribution:
    """Who starts a round from which model; each device is in one of the three, [devices] of bool."""

    up_to_date: NDArray[np.bool_]
    """Finished the last round: starts from the global model."""
    deprecated: NDArray[np.bool_]
    """Lags by more than is tolerated: starts from the global model, its own work is lost."""
    tolerable: NDArray[np.bool_]
    """Goes on with its own model: what it uploaded last, or else the start model."""


@dataclass
class Versions:
    """How far behind each device is."""

    last: Integers
    """The last round in which each device finished its training, [devices]; all have that of the start model at first.
    """
    lag: int
    """Rounds behind that are tolerated."""

    @classmethod
    def start(cls, devices: int, lag: int, round: int) -> Versions:
        """Everybody is up to date when a round begins."""
        return cls(np.full(devices, round - 1, dtype=np.int64), lag)

    def distribution(self, round: int) -> Distribution:
        """Who gets the global model at the start of a round: SAFA, lag-tolerant distribution."""
        behind = round - 1 - self.last
        up_to_date, deprecated = behind == 0, behind > self.lag
        return Distribution(up_to_date, deprecated, ~(up_to_date | deprecated))

    def finished(self, ids: Integers, round: int) -> None:
        """Picked or not, who finished has the round's version."""
        self.last[ids] = round


@dataclass
class Cache:
    """The model that counts for each device, kept only where it is neither the start model nor the global one."""

    start: Tensor
    """Model with which all began, [P]: it counts for who has not uploaded and is not deprecated."""
    uploads: dict[int, Tensor] = field(default_factory=dict)
    """Last upload of every other device, [P], but for the deprecated: for them the global model counts."""

    def own(self, device: int) -> Tensor:
        """The model with which a device goes on that does not get the global one, [P]."""
        return self.uploads.get(device, self.start)

    def merge(
        self,
        model: Tensor,
        shares: Floats,
        deprecated: NDArray[np.bool_],
        picked: Mapping[int, Tensor],
        undrafted: Mapping[int, Tensor],
    ) -> Tensor:
        """The new global model, [P]: the mean of all devices' entries by their ``shares`` [devices], which sum to 1.

        Before it, entries of the ``deprecated`` [devices] become the global ``model`` [P], and those ``picked`` what
        they uploaded. After it, those ``undrafted``, who finished but were not picked, enter the cache and count from
        the next round on: SAFA, three-step aggregation.
        """
        self.uploads = {device: kept for device, kept in self.uploads.items() if not deprecated[device]} | {**picked}
        without = ~deprecated
        without[list(self.uploads)] = False
        merged = model + float(shares[without].sum()) * (self.start - model)
        # Ascending ids: the floating-point sum must not depend on the order of arrival.
        for device in sorted(self.uploads):
            merged += float(shares[device]) * (self.uploads[device] - model)
        self.uploads |= undrafted
        return merged
