"""Class mixes that a config lists: for all devices, or several that devices have in turn."""

from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.learning.drift.moving import Drawn, by_class
from edgesim.learning.drift.pools import Fleet, need_in_pools

Share = Annotated[float, Field(ge=0, le=1)]


def _sums_to_one(mix: list[float]) -> list[float]:
    if abs(sum(mix) - 1) > 1e-6:
        raise ValueError(f"a mix is the share of each class; the shares must add up to 1 (got {sum(mix):.6g})")
    return mix


Mix = Annotated[list[Share], AfterValidator(_sums_to_one)]
"""Share of each class."""
Mixes = Annotated[list[Mix], Field(min_length=1)]
"""Mixes of devices: a single one for all, or several, of which device n has mix n modulo their number."""


def as_rows(mixes: list[list[float]], fleet: Fleet, key: str) -> Floats:
    """Mixes as rows, [G, C]; raises `EdgesimError` for a mix that has not one share per class of the data."""
    for mix in mixes:
        if len(mix) != fleet.class_count:
            raise EdgesimError(
                f"{key}: expected the shares of {fleet.class_count} classes (got {len(mix)} numbers)", key
            )
    return np.array(mixes, dtype=np.float64)


def whole(rows: Floats, size: int) -> Integers:
    """Samples of each class in data sets of a size by their mixes, [G, C].

    What rounding down leaves goes to the classes with the largest remainders, the lowest class first.
    """
    counts = np.floor(rows * size + 1e-9).astype(np.int64)
    # Remainders that are equal but for rounding are equal.
    order = np.argsort(-np.round(rows * size - counts, 9), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return np.asarray(counts + (rank < (size - counts.sum(axis=1))[:, None]))


def hold(fleet: Fleet, rows: Floats, seen: Floats) -> Drawn:
    """Data sets by mixes [G, C], of which device n has row n modulo G; ``seen`` are all mixes until now, [*, C]."""
    counts = whole(rows, fleet.size)
    return by_class(fleet, lambda ids: counts[ids % len(rows)], np.flatnonzero(seen.any(axis=0)))


def need(fleet: Fleet, *mixes: Floats) -> None:
    """Refuse pools without enough samples for one of several mixes, [G, C] each; raises `EdgesimError`."""
    devices = np.arange(fleet.device_count if len(fleet.sizes) > 1 else max(len(rows) for rows in mixes))
    most = np.stack([np.ceil(rows * fleet.size - 1e-9).astype(np.int64)[devices % len(rows)] for rows in mixes])
    need_in_pools(fleet, most.max(axis=0), f"{fleet.size} samples by the mixes of [drift] need up to")


SLACK = 1e-9
"""Relative error of the clock's sums up to which an instant counts as reached."""
