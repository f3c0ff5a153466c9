"""One task on one device: receive the model, compute, wait for the decision, upload; then wires carry the update."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Literal

import simpy

from edgesim.engine.clock import Clock, Kind
from edgesim.engine.uplink import Band, Upload

Phase = Literal["broadcast", "download", "compute", "wait", "upload", "backhaul", "away", "ended"]
Outcome = Literal["done", "late", "dropped", "cancelled", "unscheduled", "paused"]


@dataclass(slots=True)
class Span:
    """One row of ``activities`` in the making."""

    activity: Literal["download", "compute", "upload"]
    t_start_s: float
    t_end_s: float
    outcome: Outcome
    bits: float = 0.0
    bandwidth_hz: float = 0.0


@dataclass(slots=True)
class Task:
    """A device at work: everything from which its process can be rebuilt."""

    device: int
    download_s: float
    compute_s: float
    leaves_s: float
    """When the device's availability ends."""
    bits: float
    """Bits to upload."""
    station: int = 0
    backhaul_s: float = 0.0
    """What the update takes from the station to its server."""
    broadcast_s: float = 0.0
    """What the model takes from where it was merged to the station."""
    phase: Phase = "broadcast"
    since_s: float = 0.0
    taken: bool | None = None
    """Whether the scheduler took the device; None before the decision."""
    bandwidth_hz: float = 0.0
    """Reservation of a device taken."""
    rx_power_w: float = 0.0
    """Received power while it uploads."""
    upload: Upload | None = None
    """The upload on the air, with its remaining bits."""
    fate: Outcome | None = None
    """How a taken task ended for the server: done, late or dropped."""
    carried: bool = False
    """Whether its upload went on after the round's close."""
    merged: bool = False
    """Whether the server used its update."""
    own_model: bool = False
    """Whether the device goes on with a model of its own, so that none is sent to it (SAFA)."""
    spans: list[Span] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RoundSignals:
    """How the devices at work, the stations' bands and the server hear of each other in one round."""

    bands: list[Band]
    decision: simpy.Event
    deadline_s: float
    tolerance_s: float
    computed: Callable[[Task], None]
    arrived: Callable[[Task], None]
    dropped: Callable[[Task], None]
    back_s: Callable[[Task], float] | None
    """When a device that has left goes on with its work, inf if never; None where its work is lost at once."""
    draws: Callable[[Task], float]
    """Hears that a device draws what its new phase takes; answers when its battery will be empty."""


def work(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Process of one task; ends by itself, at the device's drop-out, or when the server closes the round."""
    try:
        task.since_s = clock.now
        if task.broadcast_s > 0:
            yield clock.at(clock.now + task.broadcast_s, Kind.COMPUTED, task.device)
        if task.download_s > 0:
            stayed = yield from _spend(clock, task, "download", task.download_s, signals)
            if not stayed:
                return
        stayed = yield from _spend(clock, task, "compute", task.compute_s, signals)
        if not stayed:
            return
        signals.computed(task)
        if task.taken is None:
            _enter(clock, task, "wait", signals)
            yield signals.decision
        if task.taken:
            through = yield from _upload(clock, task, signals)
            if not through:
                return
            if task.backhaul_s > 0:
                yield from _cross(clock, task, signals)
            task.fate = "done"
            signals.arrived(task)
        _enter(clock, task, "ended", signals)
    except simpy.Interrupt as interrupt:
        if task.phase == "upload" and task.upload is not None:
            signals.bands[task.station].end(task.upload)
        _cut(clock, task, interrupt.cause or ("late" if task.taken else "unscheduled"), signals)
        if task.fate == "late" and task.spans and task.spans[-1].activity == "upload":
            task.spans[-1].outcome = "late"


def _enter(clock: Clock, task: Task, phase: Phase, signals: RoundSignals) -> float:
    """Begin a phase; when the device drops out of it: its availability ends, or its battery is empty."""
    task.phase, task.since_s = phase, clock.now
    return min(task.leaves_s, signals.draws(task))


def _spend(
    clock: Clock, task: Task, activity: Literal["download", "compute"], length_s: float, signals: RoundSignals
) -> Generator[simpy.Event, Any, bool]:
    """Pass the time of one activity; False when the device dropped out first."""
    left_s = length_s
    while True:
        leaves_s = _enter(clock, task, activity, signals)
        end_s = clock.now + left_s
        if leaves_s >= end_s - signals.tolerance_s:
            break
        yield clock.at(max(leaves_s, clock.now), Kind.LEFT, task.device)
        left_s = end_s - clock.now
        back = yield from _away(clock, task, signals)
        if not back:
            return False
    yield clock.at(end_s, Kind.COMPUTED, task.device)
    received = task.bits * (left_s / length_s) if activity == "download" else 0.0
    task.spans.append(Span(activity, task.since_s, end_s, "done", received))
    return True


def _upload(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, bool]:
    """Send the payload over the band; False when the device dropped out first."""
    band, left_bits = signals.bands[task.station], task.bits
    while True:
        leaves_s = _enter(clock, task, "upload", signals)
        task.upload = Upload(
            task.device,
            task.rx_power_w,
            task.bandwidth_hz,
            left_bits,
            signals.deadline_s - task.backhaul_s,
            signals.tolerance_s,
            clock.event(),
        )
        band.begin(task.upload)
        if leaves_s < math.inf:
            band.leave_at(task.upload, leaves_s)
        through = yield task.upload.over
        if through:
            _cut(clock, task, "done", signals)
            return True
        left_bits = task.upload.remaining_bits
        back = yield from _away(clock, task, signals)
        if not back:
            return False


def _away(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, bool]:
    """The device has left its work: True when it is back to go on, False when the work is lost.

    Whose battery is empty does not come back to the same task.
    """
    empty = clock.now < task.leaves_s
    back_s = math.inf if signals.back_s is None or empty else signals.back_s(task)
    if math.isinf(back_s):
        _cut(clock, task, "dropped", signals)
        signals.dropped(task)
        return False
    _log(clock, task, "paused")
    _enter(clock, task, "away", signals)
    yield clock.at(back_s, Kind.WAKE, task.device)
    return True


def _cross(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Wait until the update has crossed the wires; the device has nothing more to do with it."""
    _enter(clock, task, "backhaul", signals)
    there_s = clock.now + task.backhaul_s
    # An upload that ended when it was due arrives at the deadline itself, up to rounding.
    if abs(there_s - signals.deadline_s) <= signals.tolerance_s:
        there_s = max(signals.deadline_s, clock.now)
    yield clock.at(there_s, Kind.ARRIVED, task.device)


def _cut(clock: Clock, task: Task, outcome: Outcome, signals: RoundSignals) -> None:
    """End a task at the end of an upload or in the middle of any activity."""
    _log(clock, task, outcome)
    _enter(clock, task, "ended", signals)
    if task.taken:
        task.fate = outcome


def _log(clock: Clock, task: Task, outcome: Outcome) -> None:
    """The row of an activity that ends now; nothing of zero length has one."""
    activity, now_s = task.phase, clock.now
    if activity in ("download", "compute", "upload") and now_s > task.since_s:
        span = Span(activity, task.since_s, now_s, outcome)  # type: ignore[arg-type]
        if activity == "upload" and task.upload is not None:
            span.bits = task.upload.sent_bits
            span.bandwidth_hz = task.upload.hertz_seconds / (now_s - task.since_s)
        if activity == "download":
            span.bits = task.bits * (now_s - task.since_s) / task.download_s
        task.spans.append(span)
