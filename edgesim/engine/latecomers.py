"""Latecomers of rounds: their work is dropped at the close, or kept until it arrives (``round.late``)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.engine.at_work import AtWork, Working, restore, snapshot
from edgesim.engine.open_round import OpenRound
from edgesim.engine.phases import ENDED
from edgesim.engine.run_parts import RunParts
from edgesim.engine.work import RoundSignals


@dataclass
class Latecomers:
    """Devices whose work goes on past the close of its round; none where it is dropped."""

    parts: RunParts
    at_work: dict[tuple[int, int], Working] = field(default_factory=dict)
    """By device and number of their task: while an update of a device travels by wire, the device may begin another
    task and be late with that as well."""

    def without(self, ids: Integers) -> Integers:
        """Those of the devices ``ids`` that are not still at work."""
        if not self.at_work:
            return ids
        return ids[~np.isin(ids, [late.task.device for late in self.at_work.values() if late.task.needs_device])]

    def free_hz(self) -> Floats:
        """Bands of the stations without the reservations of latecomers, in Hz, [M]."""
        bands_hz = self.parts.world.bands_hz.copy()
        for late in self.at_work.values():
            # Links of their own take nothing of a band: latecomers on them hold no reservation.
            if late.task.needs_device:
                bands_hz[late.task.station] -= late.task.grant.bandwidth_hz
        return bands_hz

    def horizon_s(self, deadline_s: float) -> float:
        """Instant up to which a round with a deadline needs to know when devices leave."""
        # Work that may continue after the deadline needs the instant at which its device leaves, however late that is.
        return deadline_s if self.parts.world.config.round.late == "drop" else math.inf

    def meet_slot(self) -> None:
        """Let latecomers leave their work or resume it, as a slot of availability by rounds begins."""
        world, clock = self.parts.world, self.parts.clock
        late = [working for working in self.at_work.values() if working.task.phase != ENDED]
        if world.config.availability.interruption == "ignore" or not late:
            return
        here = world.availability.available(np.array([working.task.device for working in late]), clock.now)
        for working, is_here in zip(late, here.tolist(), strict=True):
            working.work.meet(is_here)

    def close(self, this: OpenRound) -> list[Working]:
        """Break off the work in flight but that of latecomers to be kept; returns the latecomers whose work is over."""
        over = [late for late in self.at_work.values() if late.task.phase == ENDED]
        for late in over:
            del self.at_work[late.task.key]
        keeps = self.parts.world.config.round.late == "keep" and not this.number.last_of_frame
        for working in this.working.values():
            task = working.task
            if keeps and task.taken and task.phase != ENDED:
                task.carried, task.fate = True, "late"
                self.at_work[task.key] = working
            elif task.phase != ENDED:
                working.work.break_off()
        if this.number.last_of_frame:
            over += self.at_work.values()
            for late in self.at_work.values():
                late.work.break_off()
            self.at_work.clear()
        return over

    def snapshot(self) -> list[AtWork]:
        """Records of the latecomers between two rounds."""
        return snapshot(self.parts.bands, self.at_work.values())

    def restore(self, records: list[AtWork], signals: Callable[[AtWork], RoundSignals]) -> None:
        """Restore the result of `snapshot`."""
        self.at_work = {late.task.key: late for late in restore(self.parts.clock, records, signals)}
        if self.parts.cells is not None:
            self.parts.cells.watch(late.work for late in self.at_work.values())
