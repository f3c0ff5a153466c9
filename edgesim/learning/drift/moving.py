"""Data that move with rounds or seconds: what the laws of that kind share."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.config import RunConfig
from edgesim.learning.drift.held_out import NONE, HeldOut
from edgesim.learning.drift.holdings import ByDevice, Holdings
from edgesim.learning.drift.law import START, Setting, When
from edgesim.learning.drift.pools import PoolKind, Pools, make_pools
from edgesim.streams import Streams


@dataclass(frozen=True, eq=False)
class Drawn(Holdings):
    """Data sets of which only the sizes are listed."""

    find: Callable[[int], Integers]
    """The samples of a device, ascending."""

    @override
    def samples_of(self, device: int) -> Integers:
        """As `Holdings.samples_of`."""
        return self.find(device)


@dataclass(frozen=True, eq=False)
class DealtClasses:
    """What a law that moves deals out, and to whom."""

    pools: Pools
    device_count: int
    class_count: int
    size: int
    """Samples of a device's data set, ``data.samples_per_device``; 0 where the law decides."""
    rounds: int
    """T: the rounds of the run, or as many deadlines as fit before its end."""
    round_s: float
    """A round that lasts to its deadline."""

    @property
    def held_out(self) -> HeldOut:
        """That of the pools."""
        return self.pools.held_out

    @property
    def streams(self) -> Streams:
        """Those of the run."""
        return self.pools.streams


def make_fleet(setting: Setting, pool: PoolKind) -> DealtClasses:
    """The devices of a run and their pools; raises `EdgesimError`."""
    config = setting.config
    size = config.data.samples_per_device or 0
    count, classes = config.devices.count, setting.dataset.class_count
    return DealtClasses(make_pools(setting, pool), count, classes, size, rounds_of(config), config.round.tmax_s)


def rounds_of(config: RunConfig) -> int:
    """Rounds of a resolved config without frames; where only the time is given, those that last to their deadline."""
    if config.rounds is not None:
        return config.rounds if isinstance(config.rounds, int) else sum(config.rounds)
    assert config.stop_at_s is not None
    return max(1, int(config.stop_at_s / config.round.tmax_s + 1e-9))


@dataclass(eq=False)
class Moving:
    """A `Drift` by a law that deals the data of a phase; the whole run is one frame."""

    phase: Callable[[When], Hashable]
    """What the data of an instant depend on."""
    deal: Callable[[Any], Holdings]
    """The data of a phase."""
    sizes: Callable[[], Integers]
    """See `sizes_ahead`."""
    warning: str = ""
    in_seconds: bool = True
    held_out: HeldOut = NONE
    """See `Drift`; that of the fleet, where devices hold out anything."""
    _dealt: tuple[Hashable, Holdings] | None = None
    """The last phase asked about, and its data."""

    @property
    def moves(self) -> bool:
        """Always."""
        return True

    @cached_property
    def frames(self) -> Sequence[Holdings]:
        """Before the first round, and as it opens at t = 0."""
        return [self.at(START), self.at(When(1, 1, 0.0))]

    def at(self, when: When) -> Holdings:
        """The data of an instant's phase."""
        phase = self.phase(when)
        if self._dealt is None or self._dealt[0] != phase:
            self._dealt = phase, self.deal(phase)
        return self._dealt[1]

    def before(self, when: When, last: Holdings) -> Holdings:
        """The data of the round before."""
        return last

    def sizes_ahead(self) -> Integers:
        """Those that the law can tell."""
        return self.sizes()

    def note(self) -> str:
        """The law's warning."""
        return self.warning


def by_class(fleet: DealtClasses, deal: Callable[[Integers], Integers], classes_seen: Integers) -> Drawn:
    """Data sets of as many samples of each class as ``deal`` says of some devices, [n, C], each class in the device's
    own order.
    """
    counts = ByDevice((fleet.device_count, fleet.class_count), deal)
    sizes = ByDevice((fleet.device_count,), lambda ids: counts[ids].sum(axis=1))
    return Drawn(
        cast(Integers, sizes),
        cast(Integers, counts),
        classes_seen,
        lambda device: fleet.pools.of_classes(device, counts[device]),
    )


def aliases(cycles_per_round: float) -> str:
    """A note about a law that goes through more than half of its cycle in a round; empty for slower ones."""
    if cycles_per_round <= 0.5:
        return ""
    return (
        f"the drift goes through {cycles_per_round:.3g} of its cycle in a round, more than half, so that "
        "rounds seem to show a slower drift, or one that runs backwards: lower its speed or shorten the rounds"
    )
