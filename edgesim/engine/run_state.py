"""Snapshots of a run at the end of a round, from which a new process resumes it.

World, streams and searches are functions of the config, so that they are made anew. No process is saved: the server
begins with its next round, and devices at work resume from the records of their tasks. Events that lie at the very
instant are put there again, with the same order of ties.
"""

from dataclasses import dataclass
from typing import Any

from edgesim.base.saved import restore_attributes, saved_attributes
from edgesim.engine.server import Server


@dataclass(frozen=True)
class RunState:
    """Snapshot of a run at the end of a round."""

    t_s: float
    round: int
    accuracy: float | None
    protocol: dict[str, Any]
    selector: Any
    """State of the policy; None if it has none, or starts without one after a fork."""
    joiners: Any
    """Memory of the devices that are asked whether they join; None if none is asked."""
    learner: dict[str, Any]
    bands: list[dict[str, Any]]
    """State of each re-shared band, without its uploads."""
    cells: dict[str, Any] | None
    """State of the cells; None where tasks keep their stations."""
    batteries: dict[str, Any] | None
    report: dict[str, Any]
    evaluations: dict[str, Any]
    slots_s: list[float] | None
    """Start of each slot of availability by rounds, in s; None for other availability."""
    given_up: str
    """`Search.given_up`."""


def snapshot(server: Server, round: int) -> RunState:
    """Take a snapshot of a run at the end of a round; it shares memory with the run, so pack it at once."""
    parts = server.parts
    availability = parts.world.availability
    return RunState(
        parts.clock.now,
        round,
        parts.evaluations.accuracy,
        server.process.snapshot(),
        parts.selector.state,
        None if parts.joiners is None else parts.joiners.memory,
        parts.learner.snapshot(),
        [saved_attributes(band) for band in parts.bands if band.SAVED],
        None if parts.cells is None else saved_attributes(parts.cells),
        None if parts.batteries is None else saved_attributes(parts.batteries),
        saved_attributes(parts.report),
        saved_attributes(parts.evaluations),
        None if availability.starts_s is None else availability.starts_s.tolist(),
        parts.world.search.given_up,
    )


def restore(server: Server, state: RunState) -> None:
    """Restore a snapshot in a server that has not begun; the server takes over its memory."""
    parts = server.parts
    parts.clock.set_forward(state.t_s)
    parts.evaluations.accuracy = state.accuracy
    if state.selector is not None:
        parts.selector.state = state.selector
    if parts.joiners is not None:
        parts.joiners.memory = state.joiners
    parts.learner.restore(state.learner)
    for band, remembered in zip(parts.bands, state.bands, strict=False):
        restore_attributes(band, remembered)
    if parts.batteries is not None:
        restore_attributes(parts.batteries, state.batteries or {})
    if parts.cells is not None:
        restore_attributes(parts.cells, state.cells or {})
    restore_attributes(parts.report, state.report)
    if not parts.report.holds_rows:
        # Of a fork that tests by rounds, whose run tested by seconds.
        parts.report.write_row()
    restore_attributes(parts.evaluations, state.evaluations)
    availability = parts.world.availability
    if availability.starts_s is not None:
        availability.starts_s.extend(state.slots_s or [])
    parts.world.search.given_up = state.given_up
    # Last, since work is restored with the state of all other parts.
    server.process.restore(state.protocol)
