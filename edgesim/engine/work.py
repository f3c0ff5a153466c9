"""One task on one device: download, compute, wait for the decision, upload."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Literal

import simpy

from edgesim.engine.clock import Clock, Kind

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
    rate_bps: float = 0.0
    fate: Outcome | None = None
    """How a taken task ended for the server: done, late or dropped."""
    spans: list[Span] = field(default_factory=list)

    @property
    def remaining_bits(self) -> float:
        """Bits not yet sent; whole until the upload ends, since a reserved rate is constant."""
        return self.bits - sum(span.bits for span in self.spans)


@dataclass(frozen=True, slots=True)
class RoundSignals:
    """How the devices at work and the server hear of each other in one round."""

    decision: simpy.Event
    deadline_s: float
    tolerance_s: float
    computed: Callable[[Task], None]
    arrived: Callable[[Task], None]


def work(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Process of one task; ends by itself, at the device's drop-out, or when the server closes the round."""
    try:
        if task.download_s > 0:
            stayed = yield from _spend(clock, task, "download", task.download_s, signals)
            if not stayed:
                return
        stayed = yield from _spend(clock, task, "compute", task.compute_s, signals)
        if not stayed:
            return
        signals.computed(task)
        if task.taken is None:
            task.phase, task.since_s = "wait", clock.now
            yield signals.decision
        if task.taken:
            stayed = yield from _spend(clock, task, "upload", task.bits / task.rate_bps, signals)
            if stayed:
                task.fate = "done"
                signals.arrived(task)
        task.phase = "ended"
    except simpy.Interrupt:
        _cut(task, clock.now, "late" if task.taken else "unscheduled")


def _spend(
    clock: Clock,
    task: Task,
    activity: Literal["download", "compute", "upload"],
    length_s: float,
    signals: RoundSignals,
) -> Generator[simpy.Event, Any, bool]:
    """Pass the time of one activity; False when the device left first."""
    task.phase, task.since_s = activity, clock.now
    end_s = clock.now + length_s
    # Least bandwidths end uploads at the deadline itself, up to rounding: such an end is the deadline.
    if abs(end_s - signals.deadline_s) <= signals.tolerance_s:
        end_s = max(signals.deadline_s, clock.now)
    if task.leaves_s < end_s - signals.tolerance_s:
        yield clock.at(max(task.leaves_s, clock.now), Kind.LEFT, task.device)
        _cut(task, clock.now, "dropped")
        return False
    yield clock.at(end_s, Kind.ARRIVED if activity == "upload" else Kind.COMPUTED, task.device)
    sent = task.bits if activity == "upload" else 0.0
    task.spans.append(
        Span(activity, task.since_s, end_s, "done", sent, task.bandwidth_hz if activity == "upload" else 0.0)
    )
    return True


def _cut(task: Task, now_s: float, outcome: Outcome) -> None:
    """End a task in the middle of an activity; nothing of zero length has a row."""
    activity = task.phase
    if activity in ("download", "compute", "upload") and now_s > task.since_s:
        sent = (now_s - task.since_s) * task.rate_bps if activity == "upload" else 0.0
        hz = task.bandwidth_hz if activity == "upload" else 0.0
        task.spans.append(Span(activity, task.since_s, now_s, outcome, sent, hz))  # type: ignore[arg-type]
    task.phase = "ended"
    if task.taken:
        task.fate = outcome
