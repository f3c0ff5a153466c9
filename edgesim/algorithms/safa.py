"""SAFA's server: Wu et al., "SAFA: a semi-asynchronous protocol for fast federated learning", IEEE TC 2021.

It remembers one model per device and averages all of them, so that who is not picked, late or away still counts. Who is
picked of those that finish is said by `edgesim.selection.safa`. Where the paper leaves it open, versions and local
models are those of the published code (wingter562/SAFA, semiAysnc_FedAvg.py): a forced sync reaches the devices that
are away, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from edgesim.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Distribution:
    """Who starts a round from which model; each device is in one of the three, [devices] of bool."""

    up_to_date: Booleans
    """Finished the last round: starts from the global model."""
    deprecated: Booleans
    """Lags by more than is tolerated: forced to the global model, its own work is lost."""
    tolerable: Booleans
    """Goes on with its own model: what it fetched or trained last, or else the start model."""


@dataclass
class Versions:
    """How far behind each device is."""

    last: Integers
    """The last round in which each device finished its training or, if later, whose model it was forced to, [devices];
    all have that of the start model at first."""
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

    def merged(self, finished: Integers, round: int) -> None:
        """A round ends: picked or not, who ``finished`` has its version; other deprecated devices that of its start."""
        self.last[self.distribution(round).deprecated] = round - 1
        self.last[finished] = round


@dataclass
class Cache:
    """One model that counts, and one at hand, for each device; those that share a global model share its tensor."""

    start: Tensor
    """Model with which all began, [P]: it stands wherever a device has no entry."""
    entries: dict[int, Tensor] = field(default_factory=dict)
    """What counts for each device, [P]: its last upload, or the global model of its last forced sync."""
    local: dict[int, Tensor] = field(default_factory=dict)
    """What each device has, [P]: what it uploaded, fetched or was forced to last."""

    def own(self, device: int) -> Tensor:
        """The model with which a device goes on that does not get the global one, [P]."""
        return self.local.get(device, self.start)

    def merge(
        self,
        model: Tensor,
        shares: Floats,
        deprecated: Booleans,
        fetched: Sequence[int],
        picked: Mapping[int, Tensor],
        undrafted: Mapping[int, Tensor],
    ) -> Tensor:
        """The new global model, [P]: the mean of all devices' entries by their ``shares`` [devices], which sum to 1.

        Before it, entries of the ``deprecated`` [devices] become the global ``model`` [P], and those ``picked`` what
        they uploaded. After it, those ``undrafted``, who finished but were not picked, enter the cache and count from
        the next round on: SAFA, three-step aggregation. Devices that ``fetched`` the global model have it from now on,
        unless they finished.
        """
        forced = dict.fromkeys(np.flatnonzero(deprecated).tolist(), model)
        self.entries |= forced | {**picked}
        self.local |= forced | dict.fromkeys(fetched, model) | {**picked} | {**undrafted}
        counted: dict[int, float] = {}
        counting: dict[int, Tensor] = {}
        # Ascending ids: the floating-point sum must not depend on the order of arrival.
        for device, share in enumerate(shares.tolist()):
            entry = self.entries.get(device, self.start)
            counting[id(entry)] = entry
            counted[id(entry)] = counted.get(id(entry), 0.0) + share
        merged = model.clone()
        for key, entry in counting.items():
            merged += counted[key] * (entry - model)
        self.entries |= undrafted
        return merged
