"""Skew of the devices' data sets: sizes, classes and label mixes, from the table ``devices`` alone."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from edgesim.base.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class Holding:
    """Samples per class that the devices held in one frame, or in several neighbouring frames with equal counts."""

    frames: tuple[int, ...]
    """Neighbouring frames, ascending."""
    counts: Integers
    """Samples of each device and class, [N, C]."""

    @property
    def when(self) -> str:
        """The frames as text: ``1``, or ``0-1`` for the first to the last."""
        return "-".join(str(frame) for frame in sorted({self.frames[0], self.frames[-1]}))


def holdings(devices: pd.DataFrame) -> list[Holding]:
    """Samples per class of the devices by frame, equal neighbouring frames as one; empty for a run without classes."""
    series: list[Holding] = []
    if not devices["class_counts"].map(lambda counts: counts is not None and len(counts) > 0).all():
        return series
    for frame, rows in devices.groupby("frame", sort=True):
        counts = np.stack(rows.sort_values("device")["class_counts"].to_list()).astype(np.int64)
        if series and np.array_equal(series[-1].counts, counts):
            series[-1] = Holding((*series[-1].frames, int(frame)), counts)
        else:
            series.append(Holding((int(frame),), counts))
    return series


def earth_movers_distances(counts: Integers) -> Floats:
    """sum_c |p_n^(c) - p^(c)| of each device's label mix to the mix of all samples held, [N], from 0 to 2.

    ``counts`` are samples per device and class, [N, C], every device holding at least one. Zhao et al., "Federated
    learning with non-IID data", arXiv 1806.00582, section 3; FedTeddi's divergence without class weights.
    """
    mixes = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(np.abs(mixes - counts.sum(axis=0) / counts.sum()).sum(axis=1))


def skew(counts: Integers) -> pd.DataFrame:
    """Samples, classes and earth mover's distance of the devices, from ``counts`` [N, C]: one row per measure.

    Rows ``samples``, ``classes`` (how many a device holds) and ``emd``; columns ``min``, ``mean``, ``median``, ``max``.
    """
    values = (counts.sum(axis=1), (counts > 0).sum(axis=1), earth_movers_distances(counts))
    rows = [(row.min(), row.mean(), np.median(row), row.max()) for row in values]
    return pd.DataFrame(
        rows, index=["samples", "classes", "emd"], columns=["min", "mean", "median", "max"], dtype=float
    )
