"""Scores of yes-or-no forecasts."""

from dataclasses import astuple, dataclass
from operator import add

import numpy as np

from edgesim.base.arrays import Booleans


@dataclass(frozen=True)
class Confusion:
    """Counts of forecasts by forecast and truth; the confusions of several rounds can be added."""

    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int

    @classmethod
    def of(cls, forecast: Booleans, truth: Booleans) -> "Confusion":
        """Count yes-or-no forecasts [n] against the truth [n]."""
        hits, positive, present = (int(np.count_nonzero(flags)) for flags in (forecast & truth, forecast, truth))
        return cls(hits, positive - hits, len(truth) - positive - present + hits, present - hits)

    def __add__(self, other: "Confusion") -> "Confusion":
        return Confusion(*map(add, astuple(self), astuple(other)))

    @property
    def accuracy(self) -> float:
        """Share of forecasts that were right; this and the other scores are nan if they have nothing to judge."""
        right = self.true_positives + self.true_negatives
        return _share(right, right + self.false_positives + self.false_negatives)

    @property
    def precision(self) -> float:
        """Share of the devices forecast to check in that did."""
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """Share of the devices that checked in that were forecast to."""
        return _share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        hits = self.true_positives
        return _share(2 * hits, 2 * hits + self.false_positives + self.false_negatives)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
