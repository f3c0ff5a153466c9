"""Simulated time: SimPy's environment with events at absolute instants and a stated order of ties."""

import math
from collections.abc import Callable
from enum import IntEnum
from heapq import heappush
from operator import attrgetter

import simpy

Callback = Callable[[simpy.Event], None]


def rounding_s(length_s: float, t_s: float) -> float:
    """Greatest difference, in seconds, by which rounding parts equal instants near ``t_s`` for rounds of a length."""
    return 1e-9 * length_s + 4 * math.ulp(t_s)


def drift_s(length_s: float) -> float:
    """Greatest error, in seconds, of a sum of round lengths: over 100,000 rounds rounding adds up to 1e-7 of one."""
    return 1e-6 * length_s


class EventKind(IntEnum):
    """Kinds of events; at one instant the lower comes first, then the lower device id."""

    COMPUTED = 0
    ARRIVED = 1
    LEFT = 2
    HANDOVER = 3
    DECISION = 4
    DEADLINE = 5
    WAKE = 6
    STOP = 7


FIRST = tuple(2 + (kind << 32) for kind in EventKind)
"""Priority of the device 0 in each kind; SimPy's own are 0 and 1: triggered events come before anything timed."""


class Instant(simpy.Event):
    """An event that happens at an instant, which must not lie in the past, as `simpy.events.Timeout`.

    SimPy takes delays; ``now + (t_s - now)`` can miss ``t_s`` by a rounding step, and two events of one instant would
    then lie at two. So this puts the event on the queue itself.
    """

    callbacks: list[Callback]
    # The same for all, so that they need not be set for each of a run's events.
    _value = None
    _ok = True

    def __init__(self, clock: "Clock", t_s: float, kind: EventKind, device: int = 0) -> None:
        # Instead of the base's __init__, which would be called and then overruled.
        self.env, self.callbacks = clock, []
        heappush(clock._queue, (t_s, FIRST[kind] + device, next(clock._eid), self))  # type: ignore[misc]


class Clock(simpy.Environment):
    """An environment whose events lie at absolute instants, ordered by (time, kind of event, device)."""

    now: float = property(attrgetter("_now"))  # type: ignore[assignment]
    """The instant; read so often that a function of SimPy's for it takes long."""

    def call_at(self, t_s: float, kind: EventKind, callback: Callback, device: int = 0) -> None:
        """Have ``callback`` called, with the event, at ``t_s``, which must not lie in the past."""
        Instant(self, t_s, kind, device).callbacks.append(callback)

    def call_by_order(self, t_s: float, order: int, callback: Callback) -> None:
        """As `call_at`, with a priority of `FIRST` plus a device."""
        kind, device = divmod(order - FIRST[0], FIRST[1] - FIRST[0])
        self.call_at(t_s, EventKind(kind), callback, device)

    def set_forward(self, t_s: float) -> None:
        """Set the time of a new clock without events, in seconds."""
        self._now = t_s

    @property
    def is_between_events(self) -> bool:
        """Whether all events left at this instant are each an `Instant`, so that a resumed run can make them again."""
        return not self._queue or self._queue[0][:2] >= (self.now, 2)

    def soon(self, callback: Callback) -> None:
        """Have ``callback`` called, with the event, at this instant: before all other events, but not at once."""
        event = simpy.Event(self)
        event._ok, event._value = True, None
        event.callbacks.append(callback)
        self.schedule(event, simpy.events.URGENT)


def succeed_once(event: simpy.Event) -> None:
    """Trigger an event unless it has been triggered already."""
    if not event.triggered:
        event.succeed()
