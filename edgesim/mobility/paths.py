"""Paths of all devices: the questions that a run asks of them, whoever makes them."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from edgesim.base.arrays import Floats, Integers
from edgesim.mobility.legs import Instants, Legs


@dataclass(frozen=True, eq=False)
class Ground:
    """Where devices may be, a disc around (0, 0), and where they are placed."""

    radius_m: float
    """Radius of the disc."""
    x_m: Floats
    """Placement of each device east of the centre, [N]."""
    y_m: Floats
    """Placement of each device north of the centre, [N]."""

    def __len__(self) -> int:
        return len(self.x_m)


class Box(NamedTuple):
    """A rectangle of the plane that no device leaves."""

    least_x_m: float
    most_x_m: float
    least_y_m: float
    most_y_m: float


class Paths(ABC):
    """Where each device is at each instant: a function of (seed, device, t), never of who asked when."""

    @property
    @abstractmethod
    def box(self) -> Box:
        """A rectangle in which all paths lie."""

    @abstractmethod
    def legs(self, ids: Integers, t_s: Instants) -> Legs:
        """The leg of each device at the present instant, [n]; cheapest if instants never fall.

        The result holds until the next question, and must not be changed.
        ``t_s`` is one instant or [n]. Beyond the end of a recording devices are taken to stay where they were last: a
        run must not get there (`need_known`).
        """

    @abstractmethod
    def ahead(self, ids: Integers, t_s: Instants) -> Legs:
        """The leg of each device at a later instant, [n], for a plan; changes nothing of what `legs` starts from."""

    @abstractmethod
    def legs_until(self, ids: Integers, t_s: Instants, end_s: Instants) -> tuple[Integers, Legs]:
        """All legs of each device from the one at ``t_s`` to the one just before ``end_s``, for a plan, as `ahead`.

        Returns the position in ``ids`` of each leg, [k], which rises, and the legs, [k], in order of time.
        """

    @abstractmethod
    def positions(self, ids: Integers, t_s: Instants) -> tuple[Floats, Floats]:
        """Positions (x_m, y_m) of devices at the present instant, [n] each; as `legs`."""

    @property
    def known_until_s(self) -> float:
        """Last instant of a run at which paths are known, in s: inf unless they are recorded."""
        return math.inf

    def need_known(self, t_s: float) -> None:
        """Raise `EdgesimError` if paths are unknown at an instant of a run; they never are unless recorded."""
        return
