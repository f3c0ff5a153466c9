"""One task on one device: download, compute, wait for the decision, upload."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Literal

import simpy

from edgesim.engine.clock import Clock, Kind
from edgesim.engine.uplink import Band, Upload

Phase = Literal["download", "compute", "wait", "upload", "ended"]
Outcome = Literal["done", "late", "dropped", "cancelled", "unscheduled"]


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
    phase: Phase = "download"
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
    spans: list[Span] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RoundSignals:
    """How the devices at work, the band and the server hear of each other in one round."""

    band: Band
    decision: simpy.Event
    deadline_s: float
    tolerance_s: float
    computed: Callable[[Task], None]
    arrived: Callable[[Task], None]


def work(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Process of one task; ends by itself, at the device's drop-out, or when the server closes the round."""
    try:
        if task.download_s > 0:
            stayed = yield from _spend(clock, task, "download", task.download_s, signals.tolerance_s)
            if not stayed:
                return
        stayed = yield from _spend(clock, task, "compute", task.compute_s, signals.tolerance_s)
        if not stayed:
            return
        signals.computed(task)
        if task.taken is None:
            task.phase, task.since_s = "wait", clock.now
            yield signals.decision
        if task.taken:
            through = yield from _upload(clock, task, signals)
            if not through:
                return
            task.fate = "done"
            signals.arrived(task)
        task.phase = "ended"
    except simpy.Interrupt:
        if task.phase == "upload" and task.upload is not None:
            signals.band.end(task.upload)
        _cut(task, clock.now, "late" if task.taken else "unscheduled")


def _spend(
    clock: Clock, task: Task, activity: Literal["download", "compute"], length_s: float, tolerance_s: float
) -> Generator[simpy.Event, Any, bool]:
    """Pass the time of one activity; False when the device left first."""
    task.phase, task.since_s = activity, clock.now
    end_s = clock.now + length_s
    if task.leaves_s < end_s - tolerance_s:
        yield clock.at(max(task.leaves_s, clock.now), Kind.LEFT, task.device)
        _cut(task, clock.now, "dropped")
        return False
    yield clock.at(end_s, Kind.COMPUTED, task.device)
    received = task.bits if activity == "download" else 0.0
    task.spans.append(Span(activity, task.since_s, end_s, "done", received))
    return True


def _upload(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, bool]:
    """Send the payload over the band; False when the device left first."""
    task.phase, task.since_s = "upload", clock.now
    task.upload = Upload(
        task.device,
        task.rx_power_w,
        task.bandwidth_hz,
        task.bits,
        signals.deadline_s,
        signals.tolerance_s,
        clock.event(),
    )
    signals.band.begin(task.upload)
    if task.leaves_s < math.inf:
        signals.band.leave_at(task.upload, task.leaves_s)
    through = yield task.upload.over
    _cut(task, clock.now, "done" if through else "dropped")
    return bool(through)


def _cut(task: Task, now_s: float, outcome: Outcome) -> None:
    """End a task at the end of an upload or in the middle of any activity; nothing of zero length has a row."""
    activity = task.phase
    if activity in ("download", "compute", "upload") and now_s > task.since_s:
        span = Span(activity, task.since_s, now_s, outcome)  # type: ignore[arg-type]
        if activity == "upload" and task.upload is not None:
            span.bits = task.upload.sent_bits
            span.bandwidth_hz = task.upload.hertz_seconds / (now_s - task.since_s)
        if activity == "download":
            span.bits = task.bits * (now_s - task.since_s) / task.download_s
        task.spans.append(span)
    task.phase = "ended"
    if task.taken:
        task.fate = outcome
