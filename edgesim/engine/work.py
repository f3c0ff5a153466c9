"""One task on one device, which passes through the phases of its course; then wires carry the update."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

import simpy

from edgesim.activities import ACTIVITIES, DOWNLOAD, UPLOAD, Name
from edgesim.engine.clock import Clock, EventKind, Instant
from edgesim.engine.phases import (
    AFTER,
    AWAY,
    BACKHAUL,
    BROADCAST,
    ENDED,
    PHASES,
    PLANNED,
    QUEUE,
    SENDING,
    SILENCE,
    WAIT,
    Phase,
    PhaseName,
)
from edgesim.engine.uplink import Band, Upload
from edgesim.radio.grant import Grant

Outcome = Literal["done", "late", "dropped", "cancelled", "unscheduled", "paused", "skipped", "kept"]
_NOTHING: Final = Grant(0.0, 0.0, 0.0)


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
    download_s: float
    station: int
    server: int
    """Position in `Backhaul.servers` of the server that merges the update, as far as is known."""
    broadcast_s: float
    """Seconds that the download takes from the server to the station."""
    compute_s: float
    leaves_s: float
    """Instant at which the device's availability ends."""
    number: int = 0
    """Number of its draws, unique among the device's tasks: the round in which it began or, without rounds, how many
    tasks the device has begun."""
    phase: PhaseName = PLANNED
    since_s: float = 0.0
    """Instant at which the phase began."""
    left_s: float = 0.0
    """Seconds that were left of a phase that takes a known time when the phase began, or when the device left it."""
    drops_s: float = math.inf
    """Instant at which the device drops out of the phase: its availability ends or its battery is empty."""
    resumes: PhaseName = PLANNED
    """Phase that a device that is away resumes."""
    back_s: float = math.inf
    """Instant at which a device that is away returns; inf where `Work.meet` is called then."""
    taken: bool | None = None
    """Whether the scheduler took the device; None before the decision."""
    grant: Grant = _NOTHING
    """What a device that was taken may send."""
    backhaul_s: float = 0.0
    """Seconds that the update takes from the station to its server, known with the grant."""
    upload: Upload | None = None
    """The upload on the air, or that of a device that is away, with its remaining bits."""
    since_cell_s: float = -math.inf
    """Instant from which on the condition of the next handover counts."""
    handovers: int = 0
    silent_until_s: float = -math.inf
    """End of the interruption of the last handover."""
    silence_s: float = 0.0
    """Seconds of it that are left when an upload would begin or go on."""
    reserved_hz: float = 0.0
    """Reservation that it had before it waited for one."""
    queued_s: float | None = None
    """Instant, above 0, from which on the device waits for bandwidth in its cell; None where it has some."""
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
    def received_setting(self) -> int:
        """Setting of an update that the server has received in time; 0 where it has not."""
        return self.grant.setting if self.fate == "done" else 0

    @property
    def has_received(self) -> bool:
        """Whether the device has received the model."""
        return any(span.activity != DOWNLOAD or span.outcome == "done" for span in self.spans)


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
    size: Callable[[Task, float], None] | None = None
    """Called with a task whose upload begins and its deadline: decides how much the device sends. None where that is
    known before."""
    receive: Callable[[Task], bool] | None = None
    """Called with a task whose upload the deadline ends: whether the server can use what it has received. None where it
    cannot use parts of uploads."""
    left_cell: Callable[[Task], None] | None = None
    """Called when a task needs its device no more, and so holds no bandwidth."""
    back_in_cell: Callable[[Task], None] | None = None
    """Called when a device that was away is back; as `left_cell` for devices that are handed over."""


class Work:
    """The course of one task, phase after phase; each ends with an event of the clock, of the server or of the band.

    It ends by itself, at the device's drop-out, or when the server breaks it off.
    """

    __slots__ = ("_awaited", "_clock", "_signals", "_task")

    def __init__(self, clock: Clock, task: Task, signals: RoundSignals) -> None:
        """Begin a task, or resume one under way from its record, on bands without its upload."""
        self._clock, self._task, self._signals = clock, task, signals
        self._awaited: simpy.Event
        if task.phase == PLANNED:
            self._begin_next()
        elif task.phase != ENDED:
            _PLAY[PHASES[task.phase].ends](self)

    @property
    def task(self) -> Task:
        """The record of the task."""
        return self._task

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
        elif not here and task.phase != ENDED and PHASES[task.phase].breaks:
            self._clock.soon(partial(self._turn, self._leave))

    def _turn(self, begin_next: Callable[[], None], _: simpy.Event) -> None:
        self._stop()
        begin_next()

    def _stop(self) -> None:
        """Leave the phase before it has ended."""
        task = self._task
        ends = PHASES[task.phase].ends
        if ends == "by the band":
            assert task.upload is not None
            self._signals.bands[task.station].end(task.upload)
        elif ends not in ("at the decision", "by the cell"):
            self._awaited.callbacks.clear()

    def _begin_next(self, _: simpy.Event | None = None) -> None:
        """Begin the next phase that the task has; behind the last one, the update of a task taken is at its server."""
        task = self._task
        if task.silence_s:
            task.silence_s = max(0.0, task.silent_until_s - self._clock.now)
        for phase in AFTER[task.phase]:
            if phase.ends == "by the band" and task.upload is not None:
                # What a handover has left.
                self._begin(phase, task.upload.remaining_bits)
                return
            if (amount := phase.amount(task)) or phase.is_reported:
                if phase.ends == "by the band" and self._signals.size is not None:
                    self._signals.size(task, self._signals.deadline_s)
                    amount = phase.amount(task)
                self._begin(phase, amount)
                return
        self._enter(ENDED)
        if task.taken:
            task.fate = "done"
            self._signals.arrived(task)
        else:
            task.spans[-1].outcome = "unscheduled"

    def _begin(self, phase: Phase, left: float) -> None:
        """Begin or resume a phase of which so many seconds, or bits, are left."""
        self._enter(phase.name)
        task, signals = self._task, self._signals
        if phase.ends == "by the band":
            due = signals.deadline_s - task.backhaul_s, signals.tolerance_s, task.since_s
            granted = task.grant.rx_power_w, task.grant.bandwidth_hz, left
            task.upload = Upload(task.device, *granted, *due, number=task.number, handovers=task.handovers)
        elif phase.ends == "at an instant":
            task.left_s = left
        _PLAY[phase.ends](self)

    def _enter(self, phase: PhaseName) -> None:
        """Record that a phase begins, and when the device drops out of it."""
        task, empty_s = self._task, self._signals.empty_s
        if phase == BROADCAST or task.phase == BACKHAUL:
            # The device has not begun, or may be at another task by now, whose power it draws.
            empty_s = None
        task.phase, task.since_s = phase, self._clock.now
        if self._signals.left_cell is not None and not task.needs_device:
            self._signals.left_cell(task)
        task.drops_s = task.leaves_s if empty_s is None else min(task.leaves_s, empty_s(task))

    def leave_cell(self, outcome: Outcome) -> None:
        """Stop an upload, or the wait for one, before the task's station changes; what was sent has an outcome."""
        if self._task.phase in SENDING:
            self._stop()
            if self._task.phase == UPLOAD:
                self._log(outcome)

    def enter_cell(self, interruption_s: float) -> None:
        """Go on in the cell of another station, where nothing is sent at first."""
        task = self._task
        task.silent_until_s, task.silence_s = self._clock.now + interruption_s, interruption_s
        if task.phase in SENDING:
            self._go_on_behind(WAIT)

    def take_place(self) -> None:
        """Go on with the bandwidth for which the device has waited."""
        if self._task.phase == QUEUE:
            self._go_on_behind(QUEUE)

    def lose(self) -> None:
        """Lose an upload at a handover."""
        self._stop()
        self._cut("dropped")
        self._signals.dropped(self._task)

    def _go_on_behind(self, phase: PhaseName) -> None:
        self._task.phase = phase
        self._begin_next()

    # Each of these methods plays a phase from the task's record until it ends.

    def _until_instant(self) -> None:
        """Wait until the phase's time is over, or until the device leaves."""
        task, clock, signals = self._task, self._clock, self._signals
        end_s, phase = task.since_s + task.left_s, PHASES[task.phase]
        if phase.breaks and task.drops_s < end_s - signals.tolerance_s:
            self._awaited = Instant(clock, max(task.drops_s, clock.now), EventKind.LEFT, task.device)
            self._awaited.callbacks.append(self._leave)
            return
        # An upload that ended when it was due arrives at the deadline itself, up to rounding.
        if abs(end_s - signals.deadline_s) <= signals.tolerance_s and phase.kind == EventKind.ARRIVED:
            end_s = max(signals.deadline_s, task.since_s)
        self._awaited = Instant(clock, end_s, phase.kind, task.device)
        self._awaited.callbacks.append(self._end_in_time)

    def _until_decision(self, _: simpy.Event | None = None) -> None:
        """Wait for the same event as all others, also those that the server breaks off before it."""
        if self._task.phase == ENDED:
            return
        if self._task.taken is None:
            self._signals.decision.callbacks.append(self._until_decision)
        else:
            self._begin_next()

    def _until_sent(self) -> None:
        """Send over the band until the last bit is through or the device leaves."""
        task = self._task
        band, upload = self._signals.bands[task.station], task.upload
        assert upload is not None
        band.begin(upload, self._sent)
        if self._signals.receive is not None:
            # Behind the end of an upload at the same instant, which was planned before.
            due_s = max(upload.deadline_s, self._clock.now)
            self._clock.call_at(due_s, EventKind.ARRIVED, lambda _: self._end_stream(upload), task.device)
        if task.drops_s < math.inf:
            leaves_s = max(task.drops_s, self._clock.now)
            self._clock.call_at(leaves_s, EventKind.LEFT, lambda _: band.drop(upload), task.device)

    def _until_place(self) -> None:
        """Wait for bandwidth in the cell, or until the device leaves."""
        task, since_s = self._task, self._task.since_s
        if task.drops_s < math.inf:

            def leave(_: simpy.Event) -> None:
                if task.phase == QUEUE and task.since_s == since_s:
                    self._leave()

            self._clock.call_at(max(task.drops_s, self._clock.now), EventKind.LEFT, leave, task.device)

    def _until_return(self) -> None:
        task, clock = self._task, self._clock
        back = clock.event() if math.isinf(task.back_s) else Instant(clock, task.back_s, EventKind.WAKE, task.device)
        back.callbacks.append(self._come_back)
        self._awaited = back

    # Each of these methods ends a phase; some receive the event that the phase waited for.

    def _end_in_time(self, _: simpy.Event) -> None:
        """End a phase whose time is over."""
        task, phase = self._task, PHASES[self._task.phase]
        if phase.name in ACTIVITIES:
            bits = 0.0 if phase.bits is None else phase.bits(task) * (task.left_s / phase.amount(task))
            task.spans.append(Span(phase.name, task.since_s, self._clock.now, "done", bits))  # type: ignore[arg-type]
        if phase.is_reported:
            self._signals.computed(task)
        self._begin_next()

    def _sent(self, through: bool) -> None:
        """End an upload, which is complete or was dropped."""
        if not through:
            self._leave()
            return
        self._log("done")
        self._begin_next()

    def _end_stream(self, upload: Upload) -> None:
        """End an upload that is on the air at its deadline: the server uses what it has received, or it is late."""
        task, receive = self._task, self._signals.receive
        if task.upload is not upload or task.phase not in SENDING:
            return
        assert receive is not None
        self._stop()
        if receive(task):
            if task.phase == UPLOAD:
                self._sent(True)
            else:
                # In the interruption of a handover nothing is sent: what was received before it counts.
                task.spans[-1].outcome = "done"
                self._go_on_behind(UPLOAD)
        else:
            self._cut("late")

    def _leave(self, _: simpy.Event | None = None) -> None:
        """Pause the work of a device that leaves until it is back, or drop the work.

        A device whose battery is empty does not come back to the same task.
        """
        task, back_s = self._task, self._signals.back_s
        task.left_s = task.since_s + task.left_s - self._clock.now
        empty = self._clock.now < task.leaves_s
        until_s = None if back_s is None or empty else back_s(task)
        if until_s is None:
            self._cut("dropped")
            self._signals.dropped(task)
            return
        self._log("paused")
        task.resumes, task.back_s = task.phase, until_s
        self._enter(AWAY)
        self._until_return()

    def _come_back(self, _: simpy.Event | None = None) -> None:
        """Resume the phase in which the device left."""
        task, phase = self._task, PHASES[self._task.resumes]
        if self._signals.back_in_cell is not None:
            self._signals.back_in_cell(task)
        if task.resumes in (SILENCE, QUEUE):
            # The interruption has gone on meanwhile, and may be over.
            self._go_on_behind(WAIT)
            return
        self._begin(phase, task.left_s if task.upload is None else task.upload.remaining_bits)

    def _cut(self, outcome: Outcome) -> None:
        """End the task in the middle of anything."""
        task = self._task
        self._log(outcome)
        if task.spans and task.spans[-1].outcome == "paused":
            # The device came back and was cut off at the same instant, so it never resumed its work.
            task.spans[-1].outcome = outcome
        self._enter(ENDED)
        if task.taken:
            task.fate = outcome

    def _log(self, outcome: Outcome) -> None:
        """Add the row of an activity that ends now; nothing of zero length has a row."""
        task, now_s = self._task, self._clock.now
        activity, lasted_s = task.phase, now_s - task.since_s
        if activity not in ACTIVITIES or lasted_s <= 0:
            return
        phase, bits, bandwidth_hz = PHASES[activity], 0.0, 0.0
        if phase.ends == "by the band" and task.upload is not None:
            bits, bandwidth_hz = task.upload.sent_bits, task.upload.hertz_seconds / lasted_s
        elif phase.bits is not None:
            bits = phase.bits(task) * lasted_s / phase.amount(task)
        task.spans.append(Span(activity, task.since_s, now_s, outcome, bits, bandwidth_hz))  # type: ignore[arg-type]


_PLAY = {
    "at an instant": Work._until_instant,
    "at the decision": Work._until_decision,
    "by the band": Work._until_sent,
    "by the cell": Work._until_place,
    "on return": Work._until_return,
}
