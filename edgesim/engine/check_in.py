"""Who is there: the candidates of a round, or a sleep until there are enough of them."""

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from edgesim.devices.battery import Batteries
from edgesim.engine.clock import Clock, Kind
from edgesim.engine.world import World
from edgesim.errors import EdgesimError
from edgesim.traces.availability import Availability

STEP_LIMIT = 100_000
"""Instants looked at for enough devices that are both there and charged, before the search is given up."""


def check_in(
    clock: Clock, world: World, batteries: Batteries | None, at_least: int
) -> Generator[simpy.Event, Any, NDArray[np.int64] | None]:
    """Ids of the devices available and charged now, ascending; sleeps until there are ``at_least``.

    None if that never comes. A device whose upload is still on the air is there; it is the round that passes it over.
    """
    everyone = np.arange(world.config.devices.count, dtype=np.int64)
    while True:
        there = world.availability.available(everyone, clock.now)
        if batteries is not None:
            there = there & batteries.ready(everyone, clock.now)
        if np.count_nonzero(there) >= at_least:
            return everyone if there.all() else everyone[there]
        # Looked at again after the sleep: who was at work when it began may have less charge than was possible then.
        when_s = next_time_with(at_least, world.availability, batteries, everyone, clock.now)
        if np.isinf(when_s):
            return None
        yield clock.at(when_s, Kind.WAKE)


def next_time_with(
    count: int, availability: Availability, batteries: Batteries | None, ids: NDArray[np.int64], t_s: float
) -> float:
    """First instant >= ``t_s`` with at least ``count`` devices available and charged; inf if there is none."""
    if batteries is None:
        return availability.next_time_with(count, t_s)
    charged_s, until_s = batteries.ready_s()
    for _ in range(STEP_LIMIT):
        ids = ids[np.isfinite(charged_s[ids]) & (until_s[ids] >= t_s)]
        if len(ids) < count:
            return np.inf
        charged = charged_s[ids] <= t_s
        if np.count_nonzero(availability.available(ids[charged], t_s)) >= count:
            return t_s
        # Nobody comes before these instants: before the count-th of them fewer are there, and at it whoever came first
        # may have left again.
        there_s = charged_s[ids]
        there_s[charged] = availability.next_available(ids[charged], t_s)
        t_s = float(np.partition(there_s, count - 1)[count - 1])
        if np.isinf(t_s):
            return t_s
    raise EdgesimError(
        f"up to {t_s:g} s, never {count} of {len(ids)} devices available and charged at once; lower "
        "round.min_candidates or devices.battery_reserve, or raise devices.recharge_w"
    )
