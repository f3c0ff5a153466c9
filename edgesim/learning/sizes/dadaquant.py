"""Levels by weight: fewest levels, or fewest bits, in all for the same error of the mean.

Hoenig et al., "DAdaQuant: Doubly-adaptive quantization for communication-efficient Federated Learning", arXiv
2111.00465, its client-adaptive half. With s levels for everybody the error of a mean with weights p goes as sum p^2 /
s^2 = b.
"""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.learning.codecs.levels.fixed import rounded_up
from edgesim.learning.sizes.size_rule import Instant, SizeRule


class DAdaQuant(SizeRule):
    """The least sum of levels: s_n = sqrt(a / b) p_n^(2/3) with a = sum p^(2/3), rounded up to whole bits."""

    known: ClassVar[Instant] = "with the set"

    @override
    def facts(self) -> dict[str, str]:
        return {"update_bits_notice": "what uploads are planned with; each has its own by its weight"}

    def levels(self, weight: Floats) -> Floats:
        """s_n of weights [S], before rounding."""
        powers = weight ** (2 / 3)
        return np.asarray(np.sqrt(powers.sum() / self._error(weight)) * powers)

    def _error(self, weight: Floats) -> float:
        return float(np.square(weight).sum()) / self.planned**2

    @override
    def of_weights(self, weight: Floats) -> list[int]:
        return [rounded_up(s) for s in self.levels(weight).tolist()]


class Share(DAdaQuant):
    """The least bits: s_n in proportion to p_n, rounded up to whole bits."""

    @override
    def levels(self, weight: Floats) -> Floats:
        return np.asarray(weight * np.sqrt(len(weight) / self._error(weight)))
