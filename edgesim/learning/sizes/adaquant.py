"""Levels that rise as the training loss falls: s_t = s_0 sqrt(F_0 / F_t).

Jhunjhunwala et al., "Adaptive quantization of model updates for communication-efficient federated learning", arXiv
2102.04487.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from typing_extensions import override

from edgesim.learning.codecs.levels.fixed import rounded_up
from edgesim.learning.sizes.size_rule import Instant, SizeRule


@dataclass(frozen=True)
class AdaQuant(SizeRule):
    """The options' levels times the root of the first merge's loss over the last one's, rounded up to whole bits."""

    known: ClassVar[Instant] = "as the round opens"

    losses: list[float] = field(default_factory=list)
    """Mean training losses of the first merge and of the last one; empty before."""

    @property
    @override
    def planned(self) -> int:
        return rounded_up(self.levels)

    @property
    def levels(self) -> float:
        """s_t before rounding."""
        first, last = self.losses or (1.0, 1.0)
        # A loss of 0 would ask for all levels that there are.
        return self.codec.setting(self.d) * math.sqrt(first / max(last, 1e-12 * first, 1e-300))

    @override
    def hear(self, loss: float) -> None:
        self.losses[:] = [*(self.losses[:1] or [loss]), loss]

    @property
    @override
    def state(self) -> list[float]:
        return self.losses

    @override
    def restore(self, state: list[float]) -> None:
        self.losses[:] = state

    @override
    def facts(self) -> dict[str, str]:
        return {"update_bits_notice": "those of the first round; levels rise as the training loss falls"}
