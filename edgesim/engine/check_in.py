"""Who is there: the candidates of a round, or a sleep until there are enough of them."""

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from edgesim.engine.clock import Clock, Kind
from edgesim.engine.world import World


def check_in(clock: Clock, world: World, at_least: int) -> Generator[simpy.Event, Any, NDArray[np.int64] | None]:
    """Ids of the devices available now, ascending; sleeps until there are ``at_least``, None if that never comes."""
    when_s = world.availability.next_time_with(at_least, clock.now)
    if np.isinf(when_s):
        return None
    if when_s > clock.now:
        yield clock.at(when_s, Kind.WAKE)
    everyone = np.arange(world.config.devices.count, dtype=np.int64)
    return everyone[world.availability.available(everyone, clock.now)]
