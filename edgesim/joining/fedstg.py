"""FedStg's participation by capability, performance and decay: section 3.1, SAC 2026, and its public code, client.py.

P_i(R) = min(cap, max(floor, base c_i performance_i decay(R))).
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.needs import GIVEN, Rule
from edgesim.joining.law import Asked, Fleet, Law, Measured

_MOST_PERFORMANCE = 1.5
_CODE_LEAST = 0.7
_CODE_STEP = 0.01
_LEAST_DECAY = 0.5


class FedStgJoining(Law):
    """Capable devices whose models do well join more often, all of them less often in later rounds."""

    at_most: ClassVar[tuple[tuple[str, str], ...]] = (("floor", "cap"),)
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule({"joining.classes": "profile"}, {"devices.profile": GIVEN}, "it goes by their speeds; or use 'turns'"),
        Rule(
            {"joining.performance": "measured"},
            {"learning.training": "real", "learning.epochs": GIVEN},
            "it goes by accuracies of local epochs; or give a number",
        ),
        Rule(
            {"joining.performance": "measured", "joining.form": "paper"},
            {"learning.pretrain": False},
            "it goes by samples on which nothing was trained; or give a number",
        ),
    )

    form: Literal["paper", "code"] = "paper"
    """``paper``: performance is the accuracy on a tenth of the device's own samples, held out, and decay falls in a
    line from 1 to 0.5 at the last round. ``code``: capability counts by the mean of all devices, performance is 0.7
    plus the accuracy on what was trained, at most 1.5, and decay is 1 - 0.01 R, at least 0.5."""
    base: float = Field(0.8, gt=0, le=1)
    """Chance of the fastest class at performance 1 in the first rounds."""
    floor: float = Field(0.3, ge=0, le=1)
    """Least chance to join."""
    cap: float = Field(0.95, gt=0, le=1)
    """Greatest chance to join."""
    capability: list[Annotated[float, Field(gt=0, le=1)]] = Field([1.0, 0.9, 0.8], min_length=1)
    """Capability of each speed class, the fastest first."""
    classes: Literal["turns", "profile"] = "turns"
    """``turns``: device i is of class i modulo their number; ``profile``: the classes are equal parts of the devices in
    the order of their speeds in ``devices.profile``."""
    performance: Literal["measured"] | Annotated[float, Field(ge=0, le=_MOST_PERFORMANCE)] = "measured"
    """``measured``, 1 before a device has trained; or one number for all, with which all methods have the same
    participants."""

    @property
    @override
    def measured(self) -> Measured | None:
        if self.performance != "measured":
            return None
        return "held_out" if self.form == "paper" else "training"

    @override
    def chances(self, asked: Asked, fleet: Fleet) -> Floats:
        own = np.array(self.capability)[self._class(fleet)]
        capability = own[asked.ids] / (own.mean() if self.form == "code" else 1.0)
        product = self.base * capability * self._performance(asked.accuracy) * self.decay(asked.round, fleet.rounds)
        return np.asarray(np.minimum(self.cap, np.maximum(self.floor, product)))

    def decay(self, round: int, rounds: int) -> float:
        """Factor by which chances have fallen in a round of a run of so many ``rounds``, from 1 to 0.5."""
        fallen = _CODE_STEP * round if self.form == "code" else (1 - _LEAST_DECAY) * round / rounds
        return max(_LEAST_DECAY, 1 - fallen)

    def _class(self, fleet: Fleet) -> Integers:
        """Speed class of each device, [N], from 0 for the fastest."""
        count, kinds = len(fleet.s_per_sample), len(self.capability)
        if self.classes == "turns":
            return np.arange(count) % kinds
        rank = np.empty(count, dtype=np.int64)
        rank[np.argsort(fleet.s_per_sample, kind="stable")] = np.arange(count)
        return rank * kinds // count

    def _performance(self, accuracy: Floats) -> Floats | float:
        if isinstance(self.performance, float):
            return self.performance
        measured = np.minimum(_MOST_PERFORMANCE, _CODE_LEAST + accuracy) if self.form == "code" else accuracy
        return np.where(np.isnan(accuracy), 1.0, measured)
