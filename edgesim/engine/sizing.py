"""How much devices send where that follows the channel: rate and time left, of a plan or of an upload that begins."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.devices.topology import Backhaul
from edgesim.engine.at_work import Working
from edgesim.engine.clock import Clock
from edgesim.engine.courses import Courses
from edgesim.engine.decision import Timeline, path_links, settings_of_set
from edgesim.engine.phases import ENDED
from edgesim.engine.uplink import Upload
from edgesim.engine.work import Task
from edgesim.engine.world import World
from edgesim.learning.accounts import Accounts
from edgesim.learning.charges import UploadCharges
from edgesim.learning.interface import Learner
from edgesim.learning.sizes.size_rule import Instant
from edgesim.radio.course import Course

Carried = Callable[[int, float, float, float, float], float]
"""Bits that a bandwidth carries for a device at a received power between two instants: `ReservedLink.bits`."""

_HALVINGS = 60
"""Halvings after which the bits that wires leave room for are exact to the last digits."""


@dataclass(frozen=True)
class Sizing:
    """Sizes of a run's uploads; ``at_start`` is None unless they are decided as uploads begin."""

    world: World
    backhaul: Backhaul
    clock: Clock
    courses: Courses | None
    """Received powers along the ways of devices that move."""
    learner: Learner
    _unwritten: list[Working] = field(default_factory=list)
    """Devices whose uploads are to come and whose bits depend on their values."""

    @property
    def accounts(self) -> Accounts:
        """Bits of the run's algorithm."""
        return self.learner.accounts

    @cached_property
    def _has_wires(self) -> bool:
        return self.backhaul.has_wires

    @cached_property
    def charges(self) -> UploadCharges:
        """Bits of coded updates; only of runs with ``[upload]``."""
        charges = self.accounts.up
        assert charges is not None
        return charges

    @cached_property
    def at_start(self) -> Callable[[Task, float], None] | None:
        """Decides the size of an upload that begins and is due at an instant; None where sizes are known before."""
        if self._is_known("by the values"):
            return self._written
        return self._at_start if self._is_known("as the upload begins") else None

    @cached_property
    def receive(self) -> Callable[[Task], bool] | None:
        """Takes what was received of an upload that its deadline ends; None where parts of uploads are useless."""
        return self._receive if self._is_known("as the upload ends") else None

    @cached_property
    def at_plan(self) -> Callable[[Timeline, Integers, Floats], list[int] | None] | None:
        """Decides the settings of candidates taken (positions) with their bandwidths; None where the plan does not."""
        return self._at_plan if self._is_known("with the band") or self._is_known("with the set") else None

    def _is_known(self, instant: Instant) -> bool:
        charges = self.accounts.up
        return charges is not None and charges.rule.known == instant

    def _at_plan(self, timeline: Timeline, taken: Integers, hz: Floats) -> list[int] | None:
        """Settings by the weights of candidates taken, [S], or by the bits that their bandwidths [S] carry in time."""
        charges, ids = self.charges, timeline.ids[taken]
        if self._is_known("with the set"):
            return settings_of_set(self.accounts, ids)
        begins_s, due_s = timeline.t_start_s + timeline.ready_s[taken], timeline.t_start_s + timeline.tmax_s
        columns = ids, timeline.station[taken], hz, timeline.rx_power_w[taken], begins_s, timeline.upload_bits[taken]
        settings = []
        for device, station, share_hz, power_w, begin_s, bits in zip(*(of.tolist() for of in columns), strict=True):
            row = device, self._wires(station), share_hz, power_w, begin_s
            settings.append(charges.sized(bits, self._room_bits(timeline.links[station].bits, *row, due_s))[0])
        return settings

    def of_task(self, task: Task, round: int, hz: float) -> list[int]:
        """Setting of a device that begins to work now, on its average gain, for ``round.tmax_s`` from now on, [1].

        Of devices that move it goes by what plans know of their paths.
        """
        charges, world, now_s, ids = self.charges, self.world, self.clock.now, np.array([task.device])
        rx_power_w = world.rx_power_w(ids, world.gain(ids, np.array([task.number]), now_s, np.array([task.station])))
        begins_s = now_s + task.broadcast_s + task.download_s + task.compute_s
        row = (
            task.device,
            self._wires(task.station),
            hz,
            float(rx_power_w[0]),
            begins_s,
            now_s + world.config.round.tmax_s,
        )
        links = world.links if world.moving is None else path_links(world, world.moving, now_s, ids, task.number)
        room_bits = self._room_bits(links[task.station].bits, *row)
        return [charges.sized(float(self.accounts.settle(ids, round)[0]), room_bits)[0]]

    def expect(self, working: Iterable[Working]) -> None:
        """Expect the uploads of devices at work, whose jobs run together when the first of them begins."""
        if self._is_known("by the values"):
            self._unwritten.extend(at for at in working if at.task.taken and not at.task.grant.written_bits)

    def _written(self, task: Task, deadline_s: float) -> None:
        """Set how much a device sends whose upload begins by the message itself."""
        grant = task.grant
        if not grant.written_bits:
            self.learner.write([at.promise for at in self._unwritten if at.task.phase != ENDED])
            self._unwritten.clear()
        self.charges.write(grant, task.device)
        self._cross_wires(task)

    def _at_start(self, task: Task, deadline_s: float) -> None:
        """Decide the size of an upload that begins; without a deadline it is due ``round.tmax_s`` after its task began.

        On a band that is shared anew, an upload never has less than its reservation, which counts here.
        """
        charges, grant, now_s = self.charges, task.grant, self.clock.now
        begun_s = task.spans[0].t_start_s - task.broadcast_s
        due_s = begun_s + self.world.config.round.tmax_s if math.isinf(deadline_s) else deadline_s
        carried: Carried = self.world.links[task.station].bits
        if self.courses is not None:
            carried = self._along(task, self.courses, due_s)
        row = task.device, (task.station, task.server), grant.bandwidth_hz, grant.rx_power_w, now_s
        grant.setting, grant.bits = charges.sized(grant.bits, self._room_bits(carried, *row, due_s))
        self._cross_wires(task)

    def received(self, tasks: Sequence[Task]) -> list[float]:
        """Share of each task's update that the server has received as a stream, [n]; 0 where that is none."""
        whole = self.charges.rule.granted
        return [task.grant.setting / whole if task.fate == "done" else 0.0 for task in tasks]

    def _receive(self, task: Task) -> bool:
        """Take what was received of an upload; returns whether that is anything."""
        upload, grant = task.upload, task.grant
        assert upload is not None
        sent_bits = grant.bits - upload.remaining_bits
        grant.setting, grant.bits = self.charges.sized(grant.bits, sent_bits, grant.setting)
        self._cross_wires(task)
        return grant.setting > 0

    def _cross_wires(self, task: Task) -> None:
        """Set the time that an update takes on wires by its size."""
        if self._has_wires:
            task.backhaul_s = self.backhaul.crossed_s(task.station, task.server, task.grant.bits)

    def _along(self, task: Task, courses: Courses, due_s: float) -> Carried:
        """Bits that a bandwidth carries from now to instants up to ``due_s`` along the way of a device that moves."""
        now_s, draws = self.clock.now, {"number": task.number, "handovers": task.handovers}

        @cache
        def course() -> Course:
            upload = Upload(task.device, task.grant.rx_power_w, 0.0, 0.0, due_s, 0.0, now_s, **draws)
            return courses.of([upload], task.station, due_s)[0]

        return lambda _, hz, __, start_s, end_s: course().bits(courses.moving.link, hz, start_s, end_s)

    def _wires(self, station: int) -> tuple[int, int]:
        """A station and its own server, which merges what is planned there."""
        return station, int(self.backhaul.edge[station])

    def _room_bits(
        self,
        carried: Carried,
        device: int,
        wires: tuple[int, int],
        hz: float,
        rx_power_w: float,
        begins_s: float,
        due_s: float,
    ) -> float:
        """Most bits that are at the server when they are due: what is carried until then, less the time on wires."""

        if not self._has_wires:
            return carried(device, hz, rx_power_w, begins_s, due_s) if begins_s < due_s else 0.0

        def until(wires_s: float) -> float:
            end_s = due_s - wires_s
            return carried(device, hz, rx_power_w, begins_s, end_s) if begins_s < end_s else 0.0

        fits, exceeds = 0.0, until(self.backhaul.crossed_s(*wires, 0.0))
        for _ in range(_HALVINGS):
            middle = (fits + exceeds) / 2
            fits, exceeds = (
                (middle, exceeds) if until(self.backhaul.crossed_s(*wires, middle)) >= middle else (fits, middle)
            )
        return fits
