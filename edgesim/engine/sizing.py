"""How much devices send where that follows the channel: rate and time left, of a plan or of an upload that begins."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.devices.topology import Backhaul
from edgesim.engine.clock import Clock
from edgesim.engine.decision import Timeline
from edgesim.engine.moving_uplink import Courses
from edgesim.engine.uplink import Upload
from edgesim.engine.work import Task
from edgesim.engine.world import World
from edgesim.learning.accounts import Accounts

Carried = Callable[[int, float, float, float, float], float]
"""Bits that a bandwidth carries for a device at a received power between two instants: `ReservedLink.bits`."""

_HALVINGS = 60
"""Halvings after which the bits that wires leave room for are exact to the last digits."""


@dataclass(frozen=True)
class Sizing:
    """Sizes of a run's uploads; ``at_start`` is None unless they are decided as uploads begin."""

    world: World
    accounts: Accounts
    backhaul: Backhaul
    clock: Clock
    courses: Courses | None
    """Received powers along the ways of devices that move."""

    @cached_property
    def at_start(self) -> Callable[[Task, float], None] | None:
        """Decides the size of an upload that begins and is due at an instant; None where sizes are known before."""
        return self._at_start if self._is_known("as the upload begins") else None

    @cached_property
    def at_plan(self) -> bool:
        """Whether sizes are decided with the band."""
        return self._is_known("with the band")

    def _is_known(self, instant: str) -> bool:
        charges = self.accounts.up
        return charges is not None and charges.rule.known == instant

    def rooms_bits(self, timeline: Timeline, taken: Integers, hz: Floats) -> list[float]:
        """Bits that the bandwidths ``hz`` [S] of candidates taken (positions) carry in time by the plan, [S]."""
        ready_s, rx_power_w = timeline.ready_s[taken], timeline.rx_power_w[taken]
        columns = timeline.ids[taken], timeline.station[taken], hz, rx_power_w, timeline.t_start_s + ready_s
        due_s = timeline.t_start_s + timeline.tmax_s
        return [
            self._room_bits(timeline.links[station].bits, device, station, share_hz, power_w, begins_s, due_s)
            for device, station, share_hz, power_w, begins_s in zip(*(of.tolist() for of in columns), strict=True)
        ]

    def room_bits(self, task: Task, hz: float, rx_power_w: float) -> float:
        """Bits that a bandwidth carries for a device that begins to work now, up to ``round.tmax_s`` from now."""
        begins_s = self.clock.now + task.broadcast_s + task.download_s + task.compute_s
        due_s = self.clock.now + self.world.config.round.tmax_s
        carried = self.world.links[task.station].bits
        return self._room_bits(carried, task.device, task.station, hz, rx_power_w, begins_s, due_s)

    def _at_start(self, task: Task, deadline_s: float) -> None:
        """Decide the size of an upload that begins; without a deadline it is due ``round.tmax_s`` after its task began.

        On a band that is shared anew, an upload never has less than its reservation, which counts here.
        """
        charges, grant, now_s = self.accounts.up, task.grant, self.clock.now
        assert charges is not None
        begun_s = task.spans[0].t_start_s - task.broadcast_s
        due_s = begun_s + self.world.config.round.tmax_s if math.isinf(deadline_s) else deadline_s
        link = self.world.links[task.station]
        carried = link.bits if self.courses is None else self._along(task, self.courses)
        row = task.device, task.station, grant.bandwidth_hz, grant.rx_power_w, now_s
        charges.resize(grant, self._room_bits(carried, *row, due_s))
        task.backhaul_s = float(self.backhaul.upload_s(np.array([task.station]), np.array([grant.bits]))[0])

    def _along(self, task: Task, courses: Courses) -> Carried:
        """Bits that a bandwidth carries between two instants along the way of a device that moves."""

        def carried(device: int, hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
            upload = Upload(device, rx_power_w, hz, 0.0, end_s, 0.0, start_s, number=task.number)
            (course,) = courses.of([upload], task.station, end_s)
            return course.bits(courses.moving.link, hz, start_s, end_s)

        return carried

    def _room_bits(
        self,
        carried: Carried,
        device: int,
        station: int,
        hz: float,
        rx_power_w: float,
        begins_s: float,
        due_s: float,
    ) -> float:
        """Most bits that are at the server when they are due: what is carried until then, less the time on wires."""

        def until(wires_s: float) -> float:
            end_s = due_s - wires_s
            return carried(device, hz, rx_power_w, begins_s, end_s) if begins_s < end_s else 0.0

        if not self.backhaul.has_wires:
            return until(0.0)
        fits, exceeds = 0.0, until(self._wires_s(station, 0.0))
        for _ in range(_HALVINGS):
            middle = (fits + exceeds) / 2
            fits, exceeds = (middle, exceeds) if until(self._wires_s(station, middle)) >= middle else (fits, middle)
        return fits

    def _wires_s(self, station: int, bits: float) -> float:
        return float(self.backhaul.of_station_s(bits)[station])
