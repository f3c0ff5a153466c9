"""One task on one device: receive the model, compute, wait for the decision, upload; then wires carry the update."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

import simpy

from edgesim.activities import ACTIVITIES, COMPUTE, DOWNLOAD, UPLOAD, Name
from edgesim.engine.clock import Callback, Clock, EventKind
from edgesim.engine.uplink import Band, Upload

PLANNED: Final = "planned"
BROADCAST: Final = "broadcast"
WAIT: Final = "wait"
BACKHAUL: Final = "backhaul"
AWAY: Final = "away"
ENDED: Final = "ended"
Phase = Name | Literal["planned", "broadcast", "wait", "backhaul", "away", "ended"]
"""An activity, or a phase that draws no power of its own."""
Outcome = Literal["done", "late", "dropped", "cancelled", "unscheduled", "paused", "skipped", "kept"]


@dataclass(slots=True)
class Span:
    """One row of ``activities`` in the making."""

    activity: Name
    t_start_s: float
    t_end_s: float
    outcome: Outcome
    bits: float = 0.0
    bandwidth_hz: float = 0.0


@dataclass(slots=True)
class Task:
    """A device at work: everything from which its `Work` can be rebuilt, as it is before the events of any instant.

    Where bands are shared anew, `SharedBand.write_down` first brings the upload up to date.
    """

    device: int
    download_bits: float
    upload_bits: float
    download_s: float
    compute_s: float
    leaves_s: float
    """Instant at which the device's availability ends."""
    station: int = 0
    broadcast_s: float = 0.0
    """Seconds that the download takes from the server to the station."""
    backhaul_s: float = 0.0
    """Seconds that the update takes from the station to its server."""
    number: int = 0
    """Number of its draws, unique among the device's tasks: the round in which it began or, without rounds, how many
    tasks the device has begun."""
    phase: Phase = PLANNED
    since_s: float = 0.0
    """Instant at which the phase began."""
    left_s: float = 0.0
    """Seconds of download or computing that were left when the phase began, or when the device left it."""
    drops_s: float = math.inf
    """Instant at which the device drops out of the phase: its availability ends or its battery is empty."""
    resumes: Phase = PLANNED
    """Phase that a device that is away resumes."""
    back_s: float = math.inf
    """Instant at which a device that is away returns; inf where `Work.meet` is called then."""
    taken: bool | None = None
    """Whether the scheduler took the device; None before the decision."""
    bandwidth_hz: float = 0.0
    """Reservation of a device that was taken, in Hz."""
    rx_power_w: float = 0.0
    """Received power during the upload, in W."""
    upload: Upload | None = None
    """The upload on the air, or that of a device that is away, with its remaining bits."""
    fate: Outcome | None = None
    """End of a taken task for the server: done, late, dropped or cancelled."""
    carried: bool = False
    """Whether its upload went on after the round's close."""
    spans: list[Span] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, int]:
        """Device and number, which together identify the task in its run."""
        return self.device, self.number

    @property
    def needs_device(self) -> bool:
        """Whether the device is still busy with the task; not while the update travels by wire, nor at its end."""
        return self.phase not in (BACKHAUL, ENDED)

    @property
    def has_received(self) -> bool:
        """Whether the device has received the model."""
        return any(
            span.activity == COMPUTE or (span.activity == DOWNLOAD and span.outcome == "done") for span in self.spans
        )


Hear = Callable[[Task], None]
"""Function by which the server hears of a task."""


@dataclass(frozen=True, slots=True)
class RoundSignals:
    """Events, bands and callbacks that connect the devices at work with the server in one round."""

    bands: list[Band]
    decision: simpy.Event
    deadline_s: float
    tolerance_s: float
    computed: Hear
    arrived: Hear
    dropped: Hear
    back_s: Callable[[Task], float | None] | None
    """Instant at which a device that has left resumes its work: inf where `Work.meet` is called then, None if never.
    None in place of the function where the work of a device that leaves is lost."""
    empty_s: Callable[[Task], float] | None
    """Called when a task enters a phase: the instant at which the phase's power empties the device's battery, inf if
    never. None for devices on mains."""


class Work:
    """The course of one task, phase after phase; each ends with an event of the clock or of the band.

    It ends by itself, at the device's drop-out, or when the server breaks it off.
    """

    __slots__ = ("_awaited", "_clock", "_signals", "_task")

    def __init__(self, clock: Clock, task: Task, signals: RoundSignals) -> None:
        """Begin a task, or resume one under way from its record, on bands without its upload."""
        self._clock, self._task, self._signals = clock, task, signals
        if task.phase == PLANNED:
            task.phase, task.since_s = BROADCAST, clock.now
            if task.broadcast_s == 0:
                self._begin_receiving()
                return
        if task.phase != ENDED:
            _PLAY[task.phase](self)

    @property
    def due(self) -> tuple[float, float]:
        """Deadline of its upload, and the seconds within which an end counts as the deadline itself."""
        return self._signals.deadline_s, self._signals.tolerance_s

    def break_off(self, outcome: Outcome | None = None) -> None:
        """End the task in the middle of anything; without an ``outcome`` it is late, or was not taken."""
        task = self._task
        if task.phase == ENDED:
            return
        self._stop()
        outcome = outcome or ("late" if task.taken else "unscheduled")
        self._cut(outcome)
        # While the device was away, or its update on the wires, no activity was going on: the last row before then
        # has the outcome of the task.
        if task.spans:
            task.spans[-1].outcome = outcome

    def meet(self, here: bool) -> None:
        """Set whether the device is available from now on, where it is not known before (availability by rounds)."""
        task = self._task
        task.leaves_s = math.inf if here else self._clock.now
        # Not at once: a round that is about to begin goes by what the server knew before the change.
        if here and task.phase == AWAY:
            self._clock.soon(partial(self._turn, self._come_back))
        elif not here and task.phase in ACTIVITIES:
            self._clock.soon(partial(self._turn, self._leave_early))

    def _turn(self, begin_next: Callable[[], None], _: simpy.Event) -> None:
        self._stop()
        begin_next()

    def _await(self, event: simpy.Event, then: Callback) -> None:
        self._awaited = event
        event.callbacks.append(then)

    def _stop(self) -> None:
        """Leave the phase before it has ended."""
        task = self._task
        if task.phase == UPLOAD:
            assert task.upload is not None
            self._signals.bands[task.station].end(task.upload)
        elif task.phase != WAIT:
            self._awaited.callbacks.clear()

    # Each of these methods plays one phase from the task's record.

    def _receive_broadcast(self) -> None:
        """Wait until the model is at the station."""
        task = self._task
        there = self._clock.at(task.since_s + task.broadcast_s, EventKind.COMPUTED, task.device)
        self._await(there, self._begin_receiving)

    def _receive_or_compute(self) -> None:
        """Receive the model, or compute, until that is done or the device leaves."""
        task, clock = self._task, self._clock
        end_s = task.since_s + task.left_s
        if task.drops_s < end_s - self._signals.tolerance_s:
            self._await(clock.at(max(task.drops_s, clock.now), EventKind.LEFT, task.device), self._leave_early)
            return
        then = self._received if task.phase == DOWNLOAD else self._computed
        self._await(clock.at(end_s, EventKind.COMPUTED, task.device), then)

    def _wait(self) -> None:
        """Wait for the decision."""
        if self._task.taken is None:
            # All devices wait for the same event, also those that the server breaks off before it.
            self._signals.decision.callbacks.append(self._decided)
        else:
            self._send_or_end()

    def _send(self) -> None:
        """Send over the band until the last bit is through or the device leaves."""
        task = self._task
        band, upload = self._signals.bands[task.station], task.upload
        assert upload is not None
        band.begin(upload, self._sent)
        if task.drops_s < math.inf:
            leaves_s = max(task.drops_s, self._clock.now)
            self._clock.call_at(leaves_s, EventKind.LEFT, lambda _: band.drop(upload), task.device)

    def _cross(self) -> None:
        """Wait until the update has crossed the wires; the device has nothing more to do with it."""
        task, deadline_s = self._task, self._signals.deadline_s
        there_s = task.since_s + task.backhaul_s
        # An upload that ended when it was due arrives at the deadline itself, up to rounding.
        if abs(there_s - deadline_s) <= self._signals.tolerance_s:
            there_s = max(deadline_s, task.since_s)
        self._await(self._clock.at(there_s, EventKind.ARRIVED, task.device), self._arrive)

    def _stay_away(self) -> None:
        """Wait until the device is back."""
        task, clock = self._task, self._clock
        back = clock.event() if math.isinf(task.back_s) else clock.at(task.back_s, EventKind.WAKE, task.device)
        self._await(back, self._come_back)

    # Each of these methods ends a phase and begins the next one; some receive the event that the phase waited for.

    def _note(self, phase: Phase) -> None:
        """Record that a phase begins, and when the device drops out of it."""
        task, empty_s = self._task, self._signals.empty_s
        if task.phase == BACKHAUL:
            # The device may be at another task by now, whose power it draws.
            empty_s = None
        task.phase, task.since_s = phase, self._clock.now
        task.drops_s = task.leaves_s if empty_s is None else min(task.leaves_s, empty_s(task))

    def _begin_receiving(self, _: simpy.Event | None = None) -> None:
        if self._task.download_s > 0:
            self._begin(DOWNLOAD, self._task.download_s)
        else:
            self._begin(COMPUTE, self._task.compute_s)

    def _begin(self, phase: Phase, length_s: float) -> None:
        self._task.left_s = length_s
        self._note(phase)
        self._receive_or_compute()

    def _received(self, _: simpy.Event) -> None:
        task = self._task
        bits = task.download_bits * (task.left_s / task.download_s)
        task.spans.append(Span(DOWNLOAD, task.since_s, self._clock.now, "done", bits))
        self._begin(COMPUTE, task.compute_s)

    def _computed(self, _: simpy.Event) -> None:
        task = self._task
        task.spans.append(Span(COMPUTE, task.since_s, self._clock.now, "done"))
        self._signals.computed(task)
        if task.taken is None:
            self._note(WAIT)
            self._wait()
        else:
            self._send_or_end()

    def _decided(self, _: simpy.Event) -> None:
        if self._task.phase == WAIT:
            self._send_or_end()

    def _send_or_end(self) -> None:
        """Upload, or end the task, as decided."""
        task = self._task
        if not task.taken:
            self._note(ENDED)
        elif task.upload_bits > 0:
            self._begin_sending(task.upload_bits)
        else:
            self._begin_crossing()

    def _begin_sending(self, left_bits: float) -> None:
        self._note(UPLOAD)
        task, signals = self._task, self._signals
        task.upload = Upload(
            task.device,
            task.rx_power_w,
            task.bandwidth_hz,
            left_bits,
            signals.deadline_s - task.backhaul_s,
            signals.tolerance_s,
            task.since_s,
        )
        self._send()

    def _sent(self, through: bool) -> None:
        """Begin the phase after an upload, which is complete or was dropped."""
        if not through:
            self._leave()
            return
        self._log("done")
        self._begin_crossing()

    def _begin_crossing(self) -> None:
        if self._task.backhaul_s > 0:
            self._note(BACKHAUL)
            self._cross()
        else:
            self._arrive()

    def _arrive(self, _: simpy.Event | None = None) -> None:
        """End the task, whose update is at its server."""
        self._note(ENDED)
        self._task.fate = "done"
        self._signals.arrived(self._task)

    def _leave_early(self, _: simpy.Event | None = None) -> None:
        """Interrupt the phase of a device that leaves while it receives the model, computes or sends the update."""
        task = self._task
        if task.phase != UPLOAD:
            task.left_s = task.since_s + task.left_s - self._clock.now
        self._leave()

    def _leave(self) -> None:
        """Pause the work of a device that leaves until it is back, or drop the work.

        A device whose battery is empty does not come back to the same task.
        """
        task, back_s = self._task, self._signals.back_s
        empty = self._clock.now < task.leaves_s
        until_s = None if back_s is None or empty else back_s(task)
        if until_s is None:
            self._cut("dropped")
            self._signals.dropped(task)
            return
        self._log("paused")
        task.resumes, task.back_s = task.phase, until_s
        self._note(AWAY)
        self._stay_away()

    def _come_back(self, _: simpy.Event | None = None) -> None:
        """Resume the phase in which the device left."""
        task = self._task
        if task.resumes == UPLOAD:
            assert task.upload is not None
            self._begin_sending(task.upload.remaining_bits)
        else:
            self._note(task.resumes)
            self._receive_or_compute()

    def _cut(self, outcome: Outcome) -> None:
        """End the task in the middle of anything."""
        task = self._task
        self._log(outcome)
        if task.spans and task.spans[-1].outcome == "paused":
            # The device came back and was cut off at the same instant, so it never resumed its work.
            task.spans[-1].outcome = outcome
        self._note(ENDED)
        if task.taken:
            task.fate = outcome

    def _log(self, outcome: Outcome) -> None:
        """Add the row of an activity that ends now; nothing of zero length has a row."""
        task, now_s = self._task, self._clock.now
        activity, lasted_s = task.phase, now_s - task.since_s
        if activity not in ACTIVITIES or lasted_s <= 0:
            return
        bits = bandwidth_hz = 0.0
        if activity == UPLOAD and task.upload is not None:
            bits, bandwidth_hz = task.upload.sent_bits, task.upload.hertz_seconds / lasted_s
        elif activity == DOWNLOAD:
            bits = task.download_bits * lasted_s / task.download_s
        task.spans.append(Span(activity, task.since_s, now_s, outcome, bits, bandwidth_hz))  # type: ignore[arg-type]


_PLAY: dict[Phase, Callable[[Work], None]] = {
    BROADCAST: Work._receive_broadcast,
    DOWNLOAD: Work._receive_or_compute,
    COMPUTE: Work._receive_or_compute,
    WAIT: Work._wait,
    UPLOAD: Work._send,
    BACKHAUL: Work._cross,
    AWAY: Work._stay_away,
}
