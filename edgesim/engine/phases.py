"""Course of a task: the phases that it passes through, in order, as a table."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal

from edgesim.activities import COMPUTE, DOWNLOAD, UPLOAD, Name
from edgesim.engine.clock import EventKind

PLANNED: Final = "planned"
BROADCAST: Final = "broadcast"
WAIT: Final = "wait"
SILENCE: Final = "silence"
QUEUE: Final = "queue"
BACKHAUL: Final = "backhaul"
AWAY: Final = "away"
ENDED: Final = "ended"
PhaseName = Name | Literal["planned", "broadcast", "wait", "silence", "queue", "backhaul", "away", "ended"]
"""An activity, or a phase that draws no power of its own."""


@dataclass(frozen=True)
class Phase:
    """A phase of tasks; one that is an activity has rows and draws power."""

    name: PhaseName
    ends: Literal["at an instant", "by the band", "by the cell", "at the decision", "on return"]
    amount: Callable[[Any], float]
    """Seconds that the phase takes of a `Task`, or bits that it sends; a task without any passes over the phase."""
    kind: EventKind = EventKind.COMPUTED
    """Kind of the event at the instant that ends the phase."""
    breaks: bool = False
    """Whether a device that leaves interrupts the phase."""
    is_reported: bool = False
    """Whether the server hears of the phase's end, even where it took no time."""
    bits: Callable[[Any], float] | None = None
    """Bits that the device receives over the whole phase."""


COURSE = (
    Phase(BROADCAST, "at an instant", attrgetter("broadcast_s")),
    Phase(DOWNLOAD, "at an instant", attrgetter("download_s"), breaks=True, bits=attrgetter("download_bits")),
    Phase(COMPUTE, "at an instant", attrgetter("compute_s"), breaks=True, is_reported=True),
    Phase(WAIT, "at the decision", lambda task: task.taken is None),
    Phase(SILENCE, "at an instant", lambda task: task.silence_s and task.grant.bits and task.silence_s, breaks=True),
    Phase(QUEUE, "by the cell", attrgetter("queued_s"), breaks=True),
    Phase(UPLOAD, "by the band", attrgetter("grant.bits"), breaks=True),
    Phase(BACKHAUL, "at an instant", attrgetter("backhaul_s"), kind=EventKind.ARRIVED),
)
"""Phases in the order in which every task passes through them."""

SENDING: Final = (SILENCE, QUEUE, UPLOAD)
"""Phases of a task whose upload is under way, or would be if its cell let it."""

AFTER = {phase.name: COURSE[place + 1 :] for place, phase in enumerate(COURSE)} | {PLANNED: COURSE}
"""Phases that come after each one."""

PHASES = {phase.name: phase for phase in (*COURSE, Phase(AWAY, "on return", attrgetter("back_s")))}
