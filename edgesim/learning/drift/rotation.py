"""FedStg's cosine rotation: each device draws some classes a round, and the likely ones move on with the rounds.

FedStg, SAC 2026, section 3.1.
"""

from functools import partial
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.needs import Rule
from edgesim.base.quantities import Count, Factor
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.drift.law import Setting, When
from edgesim.learning.drift.moving import Moving, PooledLaw, aliases, by_class
from edgesim.learning.drift.pools import Fleet, make_fleet, need_in_pools

_AT_ONCE = 1 << 15


class Rotation(PooledLaw):
    """Data sets of all samples of the classes that a device draws, from its pool."""

    default_samples: ClassVar[int | None] = None
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule({}, {"data.samples_per_device": None}, "devices hold all samples of the classes that they draw"),
    )
    classes: list[Annotated[Count, Field(ge=1)]] = Field([6, 8], min_length=2, max_length=2)
    """Least and most classes that a device draws in a round, each number as likely."""
    speed: Factor = Field(2.0, gt=0)
    """Cycles in the T rounds of the run."""
    delta: Factor = Field(0.5, ge=0)
    """Phase between neighbouring classes, in rad."""
    offset: Factor = Field(0.4, ge=0)
    """Phase between neighbouring devices, in rad."""
    rotates: bool = True
    """Whether chances change over rounds; if not, those of round 0 hold, and classes are still drawn in each round."""
    clock: Literal["rounds", "seconds"] = "rounds"
    """Whether R is the number of the round, or simulated time over ``round.tmax_s``."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.classes[0] > self.classes[1]:
            raise ValueError(f"classes: the least number comes first (got {self.classes})")
        return self

    @override
    def make(self, setting: Setting) -> Moving:
        fleet = make_fleet(setting, self.pool)
        if self.classes[1] > fleet.class_count:
            raise EdgesimError(
                f"drift.classes: {self.classes[1]} are more than the {fleet.class_count} classes; lower it",
                "drift.classes",
            )
        need_in_pools(fleet, np.ones((1, fleet.class_count), dtype=np.int64), "a device that draws it needs")
        warning = aliases(self.speed / fleet.rounds) if self.rotates else ""
        laws = partial(self._turn, fleet), partial(self._deal, fleet), partial(self._sizes, fleet)
        return Moving(*laws, warning, self.clock == "seconds", fleet.held_out)

    def _turn(self, fleet: Fleet, when: When) -> float:
        """Turn R of an instant: the number of the round, or simulated time in rounds."""
        return float(when.round) if self.clock == "rounds" else when.t_s / fleet.round_s

    def chances(self, devices: Integers, turn: float, rounds: int, class_count: int) -> Floats:
        """Chances p_{i,c} that devices draw each class in round ``turn`` of ``rounds``, [n, C]: eq. 3.1."""
        cycles = turn * self.speed / rounds if self.rotates else 0.0
        phase, step = 2 * np.pi * cycles + self.offset * devices, self.delta * np.arange(class_count)
        # cos(phase + step), of two sums over devices and classes instead of a cosine for each pair.
        weight = np.column_stack([np.cos(phase), -np.sin(phase)]) @ np.stack([np.cos(step), np.sin(step)])
        weight += 1.1
        weight *= weight
        weight /= weight.sum(axis=1, keepdims=True)
        return np.asarray(weight)

    def _deal(self, fleet: Fleet, turn: float) -> Holdings:
        return by_class(fleet, partial(self._counts, fleet, turn), np.arange(fleet.class_count))

    def _counts(self, fleet: Fleet, turn: float, ids: Integers) -> Integers:
        """Samples of each class of some devices, [n, C]."""
        counts = np.empty((len(ids), fleet.class_count), dtype=np.int64)
        # In pieces that fit into the processor's cache, unlike the numbers of a million devices.
        for first in range(0, len(ids), _AT_ONCE):
            devices = ids[first : first + _AT_ONCE]
            held = fleet.class_counts[fleet.of(devices)]
            counts[first : first + _AT_ONCE] = np.where(self._draws(fleet, turn, devices), held, 0)
        return counts

    def _draws(self, fleet: Fleet, turn: float, devices: Integers) -> Booleans:
        """Whether each device draws each class, [n, C]."""
        streams, number = fleet.streams, int(turn)
        # As many draws one after another without replacement, chances renormalised each time, as least values of e / p.
        values = streams.exponential("drift/rotation", devices, number, fleet.class_count)
        values /= self.chances(devices, turn, fleet.rounds, fleet.class_count)
        least, most = self.classes
        drawn = least + (streams.uniform("drift/classes", devices, number) * (most - least + 1)).astype(np.int64)
        last = np.sort(values, axis=1)[np.arange(len(devices)), drawn - 1]
        return np.asarray(values <= last[:, None])

    def _sizes(self, fleet: Fleet) -> Integers:
        """Sizes of the data sets in all rounds of the run, without repeats."""
        return np.unique(np.concatenate([self._deal(fleet, float(R)).sizes for R in range(1, fleet.rounds + 1)]))
