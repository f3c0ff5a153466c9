"""FedTeddi's class weights L^(c): how far the gradient moves where a class has the wrong share of the samples."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgesim.base.arrays import Booleans, Floats
from edgesim.selection.view import ClassGradients

Mode = Literal["eq18", "scalar", "lastlayer", "ones"]

_LEAST_DISTANCE = 1e-8
_LEAST_CLASS_DISTANCE = 1e-3


@dataclass
class ClassWeights:
    """The last estimate of every class's weight, and which classes have had an estimate."""

    value: Floats
    """L^(c), [C]; 1 where nothing is known."""
    known: Booleans
    """Whether class c was ever estimated, [C]."""

    @classmethod
    def unknown(cls, class_count: int) -> "ClassWeights":
        """The state before the first round: all ones."""
        return cls(np.ones(class_count), np.zeros(class_count, dtype=bool))

    def current(self, frame: int) -> Floats:
        """L^(c) for a round of a frame, [C].

        After the first frame a class that has no value yet gets the mean of those that have.
        """
        if frame == 1 or not self.known.any():
            return self.value
        return np.where(self.known, self.value, self.value[self.known].mean())

    def learn(self, gradients: ClassGradients, mode: Mode) -> None:
        """Update the weights by a round's estimates; a class that is in no batch keeps its value."""
        estimate = gradient_ratios(gradients, mode)
        fresh = np.isfinite(estimate) & (gradients.global_shares > 0)
        self.value = np.where(fresh, estimate, self.value)
        self.known = self.known | fresh


def gradient_ratios(gradients: ClassGradients, mode: Mode) -> Floats:
    """Lhat^(c), [C], the largest over the devices asked about; -inf where no device is usable.

    Modes ``eq18`` and ``lastlayer``: ``||g_n^(c) - g^(c)|| / ||p_n - p||_1`` (FedTeddi, eq. 18), devices
    nearer than 1e-8 left out. Mode ``scalar``: ``|p_n^(c) - p^(c)|`` below the fraction bar, left out below
    1e-3; exact where all samples of a class have equal gradients, while eq. 18 gives at most half of L^(c).
    """
    apart = np.abs(gradients.shares - gradients.global_shares)
    if mode == "scalar":
        usable = apart >= _LEAST_CLASS_DISTANCE
    else:
        apart = np.broadcast_to(apart.sum(axis=1, keepdims=True), apart.shape)
        usable = apart >= _LEAST_DISTANCE
    ratios = np.divide(gradients.distances, apart, out=np.full(apart.shape, -np.inf), where=usable)
    return np.asarray(ratios.max(axis=0, initial=-np.inf))
