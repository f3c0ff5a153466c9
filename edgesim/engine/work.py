"""One task on one device: receive the model, compute, wait for the decision, upload; then wires carry the update."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Literal

import simpy

from edgesim.engine.clock import Clock, Kind
from edgesim.engine.uplink import Band, Upload

Phase = Literal["planned", "broadcast", "download", "compute", "wait", "upload", "backhaul", "away", "ended"]
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
    """A device at work: everything from which its process can be rebuilt, as it is before the events of any instant.

    Where bands are shared anew, `SharedBand.write_down` first brings the upload up to date.
    """

    device: int
    download_bits: float
    upload_bits: float
    download_s: float
    compute_s: float
    leaves_s: float
    """When the device's availability ends."""
    station: int = 0
    broadcast_s: float = 0.0
    """What the download takes from where the model was merged to the station."""
    backhaul_s: float = 0.0
    """What the update takes from the station to its server."""
    number: int = 0
    """Numbers its draws, and is unique among the device's tasks: the round in which it began or, without rounds, how
    many tasks the device has begun."""
    phase: Phase = "planned"
    since_s: float = 0.0
    """When the phase began."""
    left_s: float = 0.0
    """Seconds of download or computing that were left when the phase began, or when the device left it."""
    drops_s: float = math.inf
    """When the device drops out of the phase: its availability ends, or its battery is empty."""
    resumes: Phase = "planned"
    """What a device that is away goes on with."""
    back_s: float = math.inf
    """When a device that is away is back; inf where `meet` will tell it."""
    taken: bool | None = None
    """Whether the scheduler took the device; None before the decision."""
    bandwidth_hz: float = 0.0
    """Reservation of a device taken."""
    rx_power_w: float = 0.0
    """Received power while it uploads."""
    upload: Upload | None = None
    """The upload on the air, or that of a device that is away, with its remaining bits."""
    fate: Outcome | None = None
    """How a taken task ended for the server: done, late, dropped or cancelled."""
    carried: bool = False
    """Whether its upload went on after the round's close."""
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
    back_s: Callable[[Task], float | None] | None
    """When a device that has left goes on with its work: inf where `meet` will tell it, None if never. None in place of
    the function where the work of a device that leaves is lost."""
    empty_s: Callable[[Task], float] | None
    """Told of each task that enters a phase; answers when the phase's power empties the device's battery, inf if never.
    None for devices on mains."""


def work(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Process of one task; ends by itself, at the device's drop-out, or when the server closes the round.

    Of a task that is under way it goes on from what the record says, on bands that know nothing of it yet.
    """
    try:
        if task.phase == "planned":
            task.phase, task.since_s = "broadcast", clock.now
            if task.broadcast_s == 0:
                _begin_receiving(clock, task, signals)
        while task.phase != "ended":
            try:
                yield from _PHASES[task.phase](clock, task, signals)
            except simpy.Interrupt as interrupt:
                if interrupt.cause not in _MET:
                    raise
                _MET[interrupt.cause](clock, task, signals)
    except simpy.Interrupt as interrupt:
        if task.phase == "upload" and task.upload is not None:
            signals.bands[task.station].end(task.upload)
        outcome: Outcome = interrupt.cause or ("late" if task.taken else "unscheduled")
        _cut(clock, task, outcome, signals)
        # While the device was away, or its update on the wires, no activity was going on: the last row before then
        # has the outcome of the task.
        if task.spans:
            task.spans[-1].outcome = outcome


def meet(clock: Clock, task: Task, process: simpy.Process, here: bool) -> None:
    """Tell a device at work whether it is there from now on, where no clock says so before (availability by rounds)."""
    task.leaves_s = math.inf if here else clock.now
    if here and task.phase == "away":
        process.interrupt("back")
    elif not here and task.phase in ("download", "compute", "upload"):
        process.interrupt("left")


# Each of these plays one phase to its end, from what the record says of it, and enters the next one.


def _receive_broadcast(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Wait until the model is at the station."""
    yield clock.at(task.since_s + task.broadcast_s, Kind.COMPUTED, task.device)
    _begin_receiving(clock, task, signals)


def _receive_or_compute(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Receive the model, or compute, until that is done or the device leaves."""
    end_s = task.since_s + task.left_s
    if task.drops_s < end_s - signals.tolerance_s:
        yield clock.at(max(task.drops_s, clock.now), Kind.LEFT, task.device)
        task.left_s = end_s - clock.now
        _leave(clock, task, signals)
        return
    yield clock.at(end_s, Kind.COMPUTED, task.device)
    if task.phase == "download":
        received = task.download_bits * (task.left_s / task.download_s)
        task.spans.append(Span("download", task.since_s, end_s, "done", received))
        _begin_computing(clock, task, signals)
        return
    task.spans.append(Span("compute", task.since_s, end_s, "done"))
    signals.computed(task)
    if task.taken is None:
        _enter(clock, task, "wait", signals)
    else:
        _send_or_end(clock, task, signals)


def _wait(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Wait for the decision."""
    if task.taken is None:
        yield signals.decision
    _send_or_end(clock, task, signals)


def _send(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Send over the band until the last bit is through or the device leaves."""
    band, upload = signals.bands[task.station], task.upload
    assert upload is not None
    band.begin(upload)
    if task.drops_s < math.inf:
        band.leave_at(upload, task.drops_s)
    through = yield upload.over
    if not through:
        _leave(clock, task, signals)
        return
    _log(clock, task, "done")
    _begin_crossing(clock, task, signals)


def _cross(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Wait until the update has crossed the wires; the device has nothing more to do with it."""
    there_s = task.since_s + task.backhaul_s
    # An upload that ended when it was due arrives at the deadline itself, up to rounding.
    if abs(there_s - signals.deadline_s) <= signals.tolerance_s:
        there_s = max(signals.deadline_s, task.since_s)
    yield clock.at(there_s, Kind.ARRIVED, task.device)
    _arrive(clock, task, signals)


def _stay_away(clock: Clock, task: Task, signals: RoundSignals) -> Generator[simpy.Event, Any, None]:
    """Wait until the device is back, and go on with what it was at."""
    yield clock.event() if math.isinf(task.back_s) else clock.at(task.back_s, Kind.WAKE, task.device)
    _come_back(clock, task, signals)


def _come_back(clock: Clock, task: Task, signals: RoundSignals) -> None:
    """Go on with what the device was at when it left."""
    if task.resumes == "upload":
        assert task.upload is not None
        _begin_sending(clock, task, task.upload.remaining_bits, signals)
    else:
        _enter(clock, task, task.resumes, signals)


_PHASES: dict[Phase, Callable[[Clock, Task, RoundSignals], Generator[simpy.Event, Any, None]]] = {
    "broadcast": _receive_broadcast,
    "download": _receive_or_compute,
    "compute": _receive_or_compute,
    "wait": _wait,
    "upload": _send,
    "backhaul": _cross,
    "away": _stay_away,
}


def _enter(clock: Clock, task: Task, phase: Phase, signals: RoundSignals) -> None:
    """Begin a phase; the device drops out of it when its availability ends or its battery is empty."""
    task.phase, task.since_s = phase, clock.now
    task.drops_s = task.leaves_s if signals.empty_s is None else min(task.leaves_s, signals.empty_s(task))


def _begin_receiving(clock: Clock, task: Task, signals: RoundSignals) -> None:
    if task.download_s > 0:
        task.left_s = task.download_s
        _enter(clock, task, "download", signals)
    else:
        _begin_computing(clock, task, signals)


def _begin_computing(clock: Clock, task: Task, signals: RoundSignals) -> None:
    task.left_s = task.compute_s
    _enter(clock, task, "compute", signals)


def _send_or_end(clock: Clock, task: Task, signals: RoundSignals) -> None:
    """What follows the decision."""
    if not task.taken:
        _enter(clock, task, "ended", signals)
    elif task.upload_bits > 0:
        _begin_sending(clock, task, task.upload_bits, signals)
    else:
        _begin_crossing(clock, task, signals)


def _begin_sending(clock: Clock, task: Task, left_bits: float, signals: RoundSignals) -> None:
    _enter(clock, task, "upload", signals)
    task.upload = Upload(
        task.device,
        task.rx_power_w,
        task.bandwidth_hz,
        left_bits,
        signals.deadline_s - task.backhaul_s,
        signals.tolerance_s,
        clock.now,
    )


def _begin_crossing(clock: Clock, task: Task, signals: RoundSignals) -> None:
    if task.backhaul_s > 0:
        _enter(clock, task, "backhaul", signals)
    else:
        _arrive(clock, task, signals)


def _arrive(clock: Clock, task: Task, signals: RoundSignals) -> None:
    """The update is at its server."""
    _enter(clock, task, "ended", signals)
    task.fate = "done"
    signals.arrived(task)


def _leave(clock: Clock, task: Task, signals: RoundSignals) -> None:
    """The device leaves its work: it is away until it is back, or its work is lost.

    A device whose battery is empty does not come back to the same task.
    """
    empty = clock.now < task.leaves_s
    back_s = None if signals.back_s is None or empty else signals.back_s(task)
    if back_s is None:
        _cut(clock, task, "dropped", signals)
        signals.dropped(task)
        return
    _log(clock, task, "paused")
    task.resumes, task.back_s = task.phase, back_s
    _enter(clock, task, "away", signals)


def _break_off(clock: Clock, task: Task, signals: RoundSignals) -> None:
    """The device has left in the middle of an activity, which was not known when the activity began."""
    if task.phase == "upload":
        assert task.upload is not None
        signals.bands[task.station].end(task.upload)
    else:
        task.left_s = task.since_s + task.left_s - clock.now
    _leave(clock, task, signals)


_MET: dict[str, Callable[[Clock, Task, RoundSignals], None]] = {"left": _break_off, "back": _come_back}


def _cut(clock: Clock, task: Task, outcome: Outcome, signals: RoundSignals) -> None:
    """End a task in the middle of anything."""
    _log(clock, task, outcome)
    if task.spans and task.spans[-1].outcome == "paused":
        # The device came back and was cut off at the same instant, so it never went on.
        task.spans[-1].outcome = outcome
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
            span.bits = task.download_bits * (now_s - task.since_s) / task.download_s
        task.spans.append(span)
