"""Fed-CBS: Zhang et al., "Fed-CBS: a heterogeneity-aware client sampling mechanism", ICML 2023.

Devices are drawn one after another, each in favour of a set whose pooled labels are close to uniform.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.quantities import Factor
from edgesim.selection import view
from edgesim.selection.stateless import Stateless
from edgesim.selection.view import Choice, RoundView

QCID_FLOOR = 1e-6
"""A perfectly balanced set would else have infinite weight."""


class FedCbsOptions(view.Options):
    """Knobs of Fed-CBS."""

    kappa: Factor = Field(10.0, ge=0)
    """Weight of the exploration term of the first draw."""


def qcid_with_each(counts: Integers, pooled: Integers) -> Floats:
    """QCID(S + n) for every candidate n, [n]: squared distance of the set's pooled label mix from uniform.

    ``counts``, [n, C], are the candidates' samples per class (D_n p_n), ``pooled``, [C], the sums over S;
    uniform means 1 / C.
    """
    together = pooled + counts
    mix = together / together.sum(axis=1, keepdims=True)
    return np.asarray(((mix - 1 / counts.shape[1]) ** 2).sum(axis=1))


def first_weights(qcid: Floats, times_selected: Integers, round: int, kappa: float) -> Floats:
    """Unnormalised probabilities of the first draw of round k, [n].

    ``QCID({n})^-beta_1 + kappa sqrt(3 ln k / (2 T_n))`` with beta_1 = 1, T_n = max(1, times chosen).
    """
    explore = np.sqrt(3 * np.log(round) / (2 * np.maximum(times_selected, 1)))
    return np.asarray(1 / np.maximum(qcid, QCID_FLOOR) + kappa * explore)


def later_weights(qcid: Floats, place: int) -> Floats:
    """Unnormalised probabilities of draw m = ``place`` >= 2, [n]: ``QCID(S + n)^-beta_m`` with beta_m = m.

    Scaled so that the largest is 1, as the plain power overflows from m = 52 on; an infinite QCID weighs 0.
    """
    floored = np.maximum(qcid, QCID_FLOOR)
    return np.asarray((floored.min() / floored) ** place)


class FedCbs(Stateless):
    """Sequential sampling by QCID; a device that the band refuses is struck out and its place drawn again."""

    Options: ClassVar[type[view.Options]] = FedCbsOptions
    looks_at: frozenset[str] = frozenset({"class_counts"})
    options: FedCbsOptions

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield candidates as they are drawn, until none is left."""
        # C counts the classes that some device holds: for the others no set could come near 1 / C.
        held = view.knowledge.global_shares("dataset") > 0
        counts = view.knowledge.class_counts(view.ids, "dataset")[:, held]
        pooled, place = np.zeros(counts.shape[1], dtype=np.int64), 1
        left = np.ones(len(view.ids), dtype=bool)
        qcid = qcid_with_each(counts, pooled)
        for draw in view.streams.uniform("selection/fed-cbs", 0, view.round, count=len(left)):
            if place == 1:
                weights = first_weights(qcid, view.times_selected, view.round, self.options.kappa) * left
            else:
                weights = later_weights(np.where(left, qcid, np.inf), place)
            ladder = np.cumsum(weights)
            row = int(np.searchsorted(ladder / ladder[-1], draw, side="right"))
            taken = yield int(view.ids[row])
            left[row] = False
            if taken:
                pooled, place = pooled + counts[row], place + 1
                qcid = qcid_with_each(counts, pooled)
