"""Tests of the model of motion."""

import numpy as np

from edgesim.mobility.paths import Ground
from edgesim.streams import Streams
from edgesim.templates.motion import Visits

IDS = np.arange(1000)
GROUND = Ground(100.0, np.linspace(-50.0, 50.0, 1000), np.zeros(1000))


def test_devices_are_back_after_two_ways() -> None:
    """At 0 s, 240 s and 480 s each device is at its placement, and half way it is elsewhere."""
    paths = Visits(way_s=120.0).make(GROUND, Streams(0))
    for t_s in (0.0, 240.0, 480.0):
        x_m, y_m = paths.positions(IDS, t_s)
        assert np.allclose(x_m, GROUND.x_m)
        assert np.allclose(y_m, 0.0)
    assert np.abs(paths.positions(IDS, 120.0)[1]).min() > 0.0


def test_visits_are_spread_over_the_disc() -> None:
    """Of uniform points a quarter lies within half the radius, up to chance."""
    x_m, y_m = Visits(way_s=120.0).make(GROUND, Streams(1)).positions(IDS, 120.0)
    assert abs((np.hypot(x_m, y_m) < 50.0).mean() - 0.25) < 0.05
