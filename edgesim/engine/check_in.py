"""Check-in: the devices available when a round begins, or a wait until there are enough of them."""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import simpy

from edgesim.base.arrays import Integers
from edgesim.devices.battery import Batteries
from edgesim.engine.clock import EventKind, Instant, rounding_s
from edgesim.engine.idle_devices import are_there
from edgesim.engine.interruptions import need_progress
from edgesim.engine.run_parts import RunParts
from edgesim.traces.availability import Availability
from edgesim.traces.search import DRAW_LIMIT, Search

STEP_LIMIT = 50_000
"""Slots by rounds that pass without enough devices, before the search is given up; fewer where `DRAW_LIMIT` says so."""

CHARGED_LIMIT = 10_000
"""Instants looked at for enough devices that are both there and charged, before the search is given up."""

_DRAWS_OF_ANSWER = 10
"""Draws that one question for a device costs."""

_DRAWS_OF_SLOT = 2
"""Draws per device in a slot by rounds: each is looked at more than once."""


def check_in(parts: RunParts, meet_slot: Callable[[], None]) -> Generator[simpy.Event, Any, Integers | None]:
    """Ids of the devices available and charged now, ascending; sleeps until there are ``round.min_candidates``.

    None if there will not be within ``availability.search_s``, or the search was given up. Devices whose uploads are
    still on the air are among them; the round leaves them out.
    Where availability goes by rounds, ``meet_slot`` is called whenever a slot has begun. Slots that pass with nobody
    there are counted in the report's totals.

    Raises `EdgesimError`.
    """
    clock, world, batteries = parts.clock, parts.world, parts.batteries
    if world.availability.by_rounds:
        return (yield from _draw(parts, meet_slot))
    if (change_s := change_at(world.availability, clock.now, world.config.round.tmax_s)) > clock.now:
        yield Instant(clock, change_s, EventKind.WAKE)
    at_least, search = world.config.round.min_candidates, world.search
    while True:
        ids = _ready(parts, batteries)
        if len(ids) >= at_least:
            return ids
        # Looked at again after the sleep: devices at work when it began may have less charge than was assumed.
        everyone = np.arange(world.config.devices.count, dtype=np.int64)
        when_s = next_time_with(at_least, world.availability, batteries, everyone, clock.now, search)
        if when_s >= clock.now + search.limit_s:
            return None
        need_progress(when_s, clock.now, f"{at_least} devices available{'' if batteries is None else ' and charged'}")
        if (slots := world.availability.slots) is not None:
            end_s = when_s if world.config.stop_at_s is None else min(when_s, world.config.stop_at_s)
            parts.report.totals.add_empty_slots(slots.empty_slots(clock.now, end_s))
        yield Instant(clock, when_s, EventKind.WAKE)


def change_at(availability: Availability, now_s: float, tmax_s: float) -> float:
    """Instant at which a round begins that is planned for ``now_s``, within the clock's rounding.

    The clock's sum may lie a rounding step before a change of availability. The round then begins at the change: else
    devices that leave there would be lost as soon as they have checked in.
    """
    change_s = availability.next_change(now_s)
    return change_s if change_s - now_s <= rounding_s(tmax_s, now_s) else now_s


def _draw(parts: RunParts, meet_slot: Callable[[], None]) -> Generator[simpy.Event, Any, Integers | None]:
    """Check in by slots: one begins now, and one more after each deadline's length, until there are enough devices."""
    clock, batteries, knobs, search = parts.clock, parts.batteries, parts.world.config.round, parts.world.search
    availability = parts.world.availability
    begun_s, step = clock.now, search.begin(f"{knobs.min_candidates} devices available")
    for _ in range(min(STEP_LIMIT, DRAW_LIMIT // (_DRAWS_OF_SLOT * availability.device_count) + 1)):
        if clock.now - begun_s > search.limit_s:
            return None
        step(clock.now)
        availability.begin_slot(clock.now)
        meet_slot()
        ids = _ready(parts, batteries)
        if len(ids) >= knobs.min_candidates:
            return ids
        if not len(ids):
            parts.report.totals.add_empty_slots(int(batteries is None or not len(_ready(parts, None))))
        if availability.is_settled(knobs.min_candidates):
            return None
        if batteries is not None:
            charged_s, until_s = batteries.ready_s()
            if np.count_nonzero(np.isfinite(charged_s) & (until_s >= clock.now)) < knobs.min_candidates:
                return None
        yield Instant(clock, clock.now + knobs.tmax_s, EventKind.WAKE)
    search.give_up(clock.now, availability.remedy)
    return None


def _ready(parts: RunParts, batteries: Batteries | None) -> Integers:
    """Devices available now, and charged where they have ``batteries``, ascending."""
    everyone = np.arange(parts.world.config.devices.count, dtype=np.int64)
    there = are_there(parts.world.availability, batteries, everyone, parts.clock.now)
    return everyone if np.count_nonzero(there) == len(there) else everyone[there]


def next_time_with(
    count: int, availability: Availability, batteries: Batteries | None, ids: Integers, t_s: float, search: Search
) -> float:
    """First instant >= ``t_s`` with at least ``count`` devices available and charged; inf if there is none.

    Also inf if it is not within ``search.limit_s`` or the search was given up; any instant behind ``search.until_s`` if
    it is not before that.
    """
    if batteries is None:
        return availability.next_time_with(count, t_s)
    charged_s, until_s = batteries.ready_s()
    step, end_s, work = search.begin(f"{count} devices available and charged"), t_s + search.limit_s, -search.drawn
    # Next availability of the devices asked for: as answers do not depend on earlier ones, they hold until then.
    back_s = np.full(len(charged_s), -np.inf)
    for _ in range(CHARGED_LIMIT):
        ids = ids[np.isfinite(charged_s[ids]) & (until_s[ids] >= t_s)]
        if len(ids) < count:
            return np.inf
        outdated = ids[(charged_s[ids] <= t_s) & (back_s[ids] < t_s)]
        back_s[outdated] = availability.next_available(outdated, t_s)
        # Each device is there from its instant at the earliest, so fewer than ``count`` are there before the count-th
        # smallest instant; at that one, the first to come may have left again.
        first_s = np.partition(np.maximum(charged_s[ids], back_s[ids]), count - 1)[count - 1]
        if first_s <= t_s:
            return t_s
        t_s, work = float(first_s), work + _DRAWS_OF_ANSWER * len(outdated)
        if t_s >= end_s:
            return np.inf
        if t_s > search.until_s:
            return t_s
        if work + search.drawn > DRAW_LIMIT:
            break
        step(t_s)
    search.give_up(t_s, "lower devices.battery_reserve or raise devices.recharge_w")
    return np.inf
