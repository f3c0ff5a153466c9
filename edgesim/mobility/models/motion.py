"""The base class of the models of motion, and what several of them draw."""

from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import MetresPerSecond
from edgesim.config import Section
from edgesim.mobility.legs import Legs
from edgesim.mobility.paths import Ground, Paths
from edgesim.mobility.walk import Walk
from edgesim.streams import Streams


def _rising(speeds: list[float]) -> list[float]:
    if speeds[0] > speeds[1]:
        raise ValueError(f"expected the least speed first (got {speeds})")
    return speeds


def _above_0(speeds: list[float]) -> list[float]:
    if speeds[0] <= 0:
        raise ValueError("expected a least speed above 0: a leg at speed 0 never ends")
    return speeds


Speeds = Annotated[
    list[Annotated[MetresPerSecond, Field(ge=0)]], Field(min_length=2, max_length=2), AfterValidator(_rising)
]
"""Least and greatest speed, between which each leg draws its own."""
SpeedsAbove0 = Annotated[Speeds, AfterValidator(_above_0)]
"""`Speeds` of models whose legs end at a place, not at an instant."""


class Motion(Section):
    """A model's own keys of ``[mobility]``; a model draws legs, or makes its paths itself.

    To add a model, write a subclass in a file and register it.
    """

    def first_legs(self, ids: Integers, ground: Ground, streams: Streams) -> Legs:
        """The legs of number 0 of some devices, which begin at 0 s, [n]."""
        raise self._lacks("first_legs")

    def next_legs(self, ids: Integers, number: Integers, before: Legs, ground: Ground, streams: Streams) -> Legs:
        """The legs of a ``number`` above 0 of some devices, which begin where and when those ``before`` end, [n].

        Draws take the number as their round, so that a leg does not depend on who asked for it when.
        """
        raise self._lacks("next_legs")

    def make(self, ground: Ground, streams: Streams) -> Paths:
        """The paths of all devices of a run; raises `EdgesimError`."""
        return Walk(self, ground, streams)

    def _lacks(self, method: str) -> EdgesimError:
        return EdgesimError(f"mobility.model: {type(self).__name__} has neither {method} nor make", "mobility.model")


def points_in_disc(draws: Floats, radius_m: float) -> tuple[Floats, Floats]:
    """Uniform points (x_m, y_m) of a disc around (0, 0), [n] each, from uniforms [n, 2]."""
    distance_m, angle = radius_m * np.sqrt(draws[:, 0]), 2.0 * np.pi * draws[:, 1]
    return distance_m * np.cos(angle), distance_m * np.sin(angle)
