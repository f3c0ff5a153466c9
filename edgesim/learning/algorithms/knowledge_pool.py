"""KPFL's pool: the last model of every device, its time here or away, and the weight that follows from both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.learning.algorithms.records import Arrivals
from edgesim.learning.torch_types import Tensor

MOST = 20.0
"""Largest exponent, of either sign, of a weight by age; without it weights would grow without bound."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """Data and ages of a device in the pool, without its model."""

    class_counts: Integers
    """Samples of each class that the device held when it began its last update, [C]."""
    active: int
    """aa: merges in succession that had an update of the device; 0 while it is away."""
    idle: int = 0
    """ia: merges since the last that had one."""


@dataclass(frozen=True, kw_only=True)
class Entry(Member):
    """Data, ages and last model of a device in the pool."""

    model: Tensor
    """Model that the device trained last, [P]."""
    up: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors sent beside the update, by name."""


Entries = dict[int, Entry]
"""Pool of entries by device."""
AnyMember = TypeVar("AnyMember", bound=Member)


def renewed(
    pool: Mapping[int, AnyMember], arrived: Arrivals, new: Callable[[int, int], AnyMember]
) -> dict[int, AnyMember]:
    """The pool after a merge, ids ascending: entries of devices that arrived are replaced, the others are idle.

    ``new`` makes an entry of the row of an update and of the active age of its device.
    """
    members = {device: replace(entry, active=0, idle=entry.idle + 1) for device, entry in pool.items()}
    for device, row in newest(arrived).items():
        members[device] = new(row, pool[device].active + 1 if device in pool else 1)
    return dict(sorted(members.items()))


def newest(arrived: Arrivals) -> dict[int, int]:
    """The row of each device's newest update: a late one may arrive beside another of the device."""
    return {device: row for row, device in enumerate(arrived.ids.tolist())}


def class_counts(pool: Mapping[int, Member]) -> Integers:
    """Samples of each of the pool's devices and each class, [S, C]."""
    return np.stack([entry.class_counts for entry in pool.values()])


def of_arrivals(arrived: Arrivals, of_devices: Mapping[int, float]) -> Floats:
    """Weight of each update in a pool, [S], from the shares of the pool's devices.

    The older of two updates of a device has weight 0, as the pool has the newer one.
    """
    counts = np.zeros(len(arrived.ids))
    for device, row in newest(arrived).items():
        counts[row] = of_devices[device]
    return counts


def age_weights(active: Integers, idle: Integers, age_active: float, age_idle: float) -> Floats:
    """aw of each device, [S], with a sum of 1: e^(lambda_aa aa) of those that are here, e^(lambda_ia ia) of the others
    (eq. 3, exponents bounded by `MOST`).
    """
    exponents = np.where(active > 0, age_active * active, age_idle * idle)
    raw = np.exp(np.clip(exponents, -MOST, MOST))
    return np.asarray(raw / raw.sum())


def shares(aged: Floats, class_counts: Integers) -> Floats:
    """W of each device, [S], with a sum of 1: aw_i eps_i + dw_i (eq. 4).

    eps are the devices' shares of all samples of the pool, dw their shares of the samples of each class, [S, C], summed
    over classes; both dw and W are divided by their sums.
    """
    of_class = _shares_of_classes(class_counts)
    whole = aged * class_counts.sum(1) / class_counts.sum() + of_class.sum(1) / of_class.sum()
    return np.asarray(whole / whole.sum())


def shares_by_class(aged: Floats, class_counts: Integers) -> Floats:
    """W^y of each device and class, [S, C], each column with a sum of 1: aw_i + n_iy / N_y (with eq. 5)."""
    whole = aged[:, None] + _shares_of_classes(class_counts)
    return np.asarray(whole / whole.sum(0))


def _shares_of_classes(class_counts: Integers) -> Floats:
    """n_iy / N_y, [S, C]; 0 for a class that nobody in the pool holds."""
    totals = class_counts.sum(0)
    return np.asarray(class_counts / np.where(totals > 0, totals, 1))
