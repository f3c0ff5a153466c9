"""Base of drift laws whose data change with rounds or seconds."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.learning.drift.held_out import NONE, HeldOut
from edgesim.learning.drift.holdings import ByDevice, Holdings
from edgesim.learning.drift.law import START, Law, When
from edgesim.learning.drift.pools import Fleet, PoolKind
from edgesim.learning.drift.pools import make_fleet as make_fleet


@dataclass(frozen=True, eq=False)
class Drawn(Holdings):
    """Data sets of known sizes, whose samples are computed for one device at a time."""

    find: Callable[[int], Integers]
    """The samples of a device, ascending."""

    @override
    def samples_of(self, device: int) -> Integers:
        return self.find(device)


class PooledLaw(Law):
    """A law that takes samples from pools."""

    pool: PoolKind = "shared"
    """``shared``: all devices draw from the whole training set; ``iid_partition``: each from a part of its own."""


@dataclass(eq=False)
class Moving:
    """A `Drift` whose data sets depend on a phase; the whole run is one frame."""

    phase: Callable[[When], Hashable]
    """Phase of an instant: all that its data sets depend on."""
    deal: Callable[[Any], Holdings]
    """Data sets of a phase."""
    sizes_ahead: Callable[[], Integers]
    """Sizes of the data sets with which devices may train in the run, in any order."""
    warning: str = ""
    in_seconds: bool = True
    held_out: HeldOut = NONE
    """Samples on which devices measure themselves: `Fleet.held_out`."""
    moves: ClassVar = True
    _dealt: tuple[Hashable, Holdings] | None = None
    """The last phase asked for, and its data sets."""

    @cached_property
    def frames(self) -> Sequence[Holdings]:
        """Data sets before the first round, and when that round opens at t = 0."""
        return [self.at(START), self.at(When(1, 1, 0.0))]

    def at(self, when: When) -> Holdings:
        """Data sets of an instant's phase."""
        phase = self.phase(when)
        if self._dealt is None or self._dealt[0] != phase:
            self._dealt = phase, self.deal(phase)
        return self._dealt[1]

    def before(self, when: When, last: Holdings) -> Holdings:
        """The data sets of the round before."""
        return last


def by_class(fleet: Fleet, deal: Callable[[Integers], Integers], classes_seen: Integers) -> Drawn:
    """Data sets with ``deal(ids)`` samples of each class, [n, C], taken from the pool in the device's own order."""
    counts = ByDevice((fleet.device_count, fleet.class_count), deal)
    sizes = ByDevice((fleet.device_count,), lambda ids: counts[ids].sum(axis=1))
    return Drawn(
        cast(Integers, sizes),
        cast(Integers, counts),
        classes_seen,
        lambda device: fleet.of_classes(device, counts[device]),
    )


def aliases(cycles_per_round: float) -> str:
    """Warning about a law that goes through more than half of its cycle in a round; empty for slower ones."""
    if cycles_per_round <= 0.5:
        return ""
    return (
        f"the drift goes through {cycles_per_round:.3g} of its cycle in a round, more than half, so that "
        "rounds seem to show a slower drift, or one that runs backwards: lower its speed or shorten the rounds"
    )
