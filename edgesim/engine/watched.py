"""Steps of a protocol's process, watched for what would never end or what no table could hold."""

from typing import NoReturn

import numpy as np
import simpy

from edgesim.base.errors import EdgesimError
from edgesim.config import RoundConfig
from edgesim.engine.decisions import Decision
from edgesim.engine.process import Process, RoundNumber, Step, Wanted
from edgesim.engine.run_parts import RunParts

_STILL_LIMIT = 100_000
"""Events at one instant for which a process may wait, beside ten of each device, before it counts as endless."""


def watched_step(process: Process, parts: RunParts, number: RoundNumber) -> Step:
    """Make the next model; raises `EdgesimError` that names the protocol where its process would never end."""
    knobs, totals, clock = parts.world.config.round, parts.report.totals, parts.clock
    rounds, arrived, begun_s = totals.rounds, totals.arrived, clock.now
    limit, now_s, still, value = _STILL_LIMIT + 10 * parts.world.config.devices.count, begun_s, 0, None
    steps = process.step(number)
    while True:
        try:
            awaited = steps.send(value)
        except StopIteration as end:
            ended = end.value
            break
        if not isinstance(awaited, simpy.Event | Decision):
            refuse(knobs, f"round {number.round}: waits for {awaited!r}, expected an event of the clock or a decision")
        # Somebody outside may look at an open decision as often as they like.
        still, now_s = (still + isinstance(awaited, simpy.Event), now_s) if clock.now == now_s else (0, clock.now)
        if still > limit:
            refuse(knobs, f"round {number.round}: waited for {still} events at {now_s:g} s and made no model")
        value = yield awaited
    if not isinstance(ended, str | None):
        refuse(knobs, f"round {number.round}: step returned {ended!r}, expected a reason or None")
    if ended is None and totals.rounds != rounds + 1:
        refuse(knobs, f"round {number.round} ended with {totals.rounds - rounds} models, expected one")
    if ended is None and totals.arrived == arrived and clock.now == begun_s:
        refuse(knobs, f"round {number.round}: made a model without an arrival and without waiting, at {begun_s:g} s")
    return ended


def wanted_arrivals(wanted: Wanted, taken: int, knobs: RoundConfig) -> int | None:
    """Arrivals that a protocol waits for; raises `EdgesimError` for anything but a whole number from 1 on, or None."""
    number = wanted(taken, knobs)
    if number is not None and (type(number) is bool or not isinstance(number, int | np.integer) or number < 1):
        refuse(knobs, f"waits for {number!r} arrivals of {taken} devices, expected a whole number from 1 on")
    return number


def refuse(knobs: RoundConfig, what: str) -> NoReturn:
    """Raise `EdgesimError` that names the protocol."""
    raise EdgesimError(f"round.protocol {knobs.protocol!r}: {what}", "round.protocol")
