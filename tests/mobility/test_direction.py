"""Random direction: mirrored at the edge, uniform in the disc at every instant."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.devices.places import place_in_disc
from edgesim.mobility.legs import Legs
from edgesim.mobility.models.direction import Direction
from edgesim.mobility.paths import Ground, Paths
from edgesim.streams import Streams

RADIUS_M, DEVICES = 100.0, 50_000
IDS = np.arange(DEVICES)


class Straight(Direction):
    """Devices of 10 m/s that never turn, and begin along x."""

    def _velocity(self, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(draws), 10.0), np.zeros(len(draws))


def paths(seed: int = 0, radius_m: float = RADIUS_M, **options: object) -> Paths:
    x_m, y_m = place_in_disc(IDS, radius_m, 0.0, Streams(seed))
    return Direction.model_validate(options).make(Ground(radius_m, x_m, y_m), Streams(seed))


def test_a_device_is_mirrored_at_the_edge():
    ground = Ground(RADIUS_M, np.zeros(1), np.zeros(1))
    moving = Straight(turn_s=1e6).make(ground, Streams(0))
    for t_s, x_m in ((5.0, 50.0), (25.0, -50.0), (30.0, -100.0), (45.0, 50.0)):
        assert moving.positions(np.array([0]), t_s) == (pytest.approx(x_m, abs=1e-9), pytest.approx(0.0, abs=1e-9))


@given(st.floats(0.0, 2 * math.pi), st.floats(-1.5, 1.5), st.floats(0.1, 100.0))
def test_the_angle_of_reflection_is_that_of_incidence(place, incidence, speed_mps):
    ground, one = Ground(RADIUS_M, np.zeros(1), np.zeros(1)), np.ones(1)
    heading = place + incidence
    vx_mps, vy_mps = speed_mps * math.cos(heading), speed_mps * math.sin(heading)
    x_m, y_m = RADIUS_M * math.cos(place), RADIUS_M * math.sin(place)
    before = Legs(0.0 * one, one, (x_m - vx_mps) * one, (y_m - vy_mps) * one, vx_mps * one, vy_mps * one)
    after = Direction(turn_s=1e6).next_legs(np.array([0]), np.array([1]), before, ground, Streams(0))
    # The tangent part of the velocity stays, the radial one changes its sign.
    mirrored = math.pi + place - incidence
    assert after.vx_mps.item() == pytest.approx(speed_mps * math.cos(mirrored), abs=1e-9 * speed_mps)
    assert after.vy_mps.item() == pytest.approx(speed_mps * math.sin(mirrored), abs=1e-9 * speed_mps)
    end = after.at(after.t1_s)
    assert np.hypot(*end).item() <= RADIUS_M * (1 + 1e-9)


def test_a_device_that_grazes_the_edge_gets_on():
    grazing = 1e-9
    one = np.ones(1)
    before = Legs(0.0 * one, one, RADIUS_M * one, -10.0 * one, grazing * one, 10.0 * one)
    ground = Ground(RADIUS_M, np.zeros(1), np.zeros(1))
    after = Direction(turn_s=1e6).next_legs(np.array([0]), np.array([1]), before, ground, Streams(0))
    assert after.t1_s - after.t0_s > 1e-6
    assert after.vx_mps < 0


@pytest.mark.parametrize("t_s", [0.0, 40.0, 120.0])
def test_devices_stay_uniform_in_the_disc(t_s):
    legs = paths(seed=2, speed_mps=[1.0, 20.0], turn_s=20.0).legs(IDS, t_s)
    squared = (np.hypot(*legs.at(t_s)) / RADIUS_M) ** 2
    for sample, mean in (
        (squared, 0.5),
        (squared < 0.25, 0.25),
        (squared < 0.81, 0.81),
        (np.hypot(legs.vx_mps, legs.vy_mps), 10.5),
        (legs.vx_mps, 0.0),
    ):
        assert abs(sample.mean() - mean) <= 3 * sample.std() / math.sqrt(DEVICES)


def test_turns_are_exponential_where_no_edge_is_near():
    place, legs = paths(seed=4, radius_m=1e6, speed_mps=[1.0, 2.0], turn_s=50.0).legs_until(IDS[:2000], 0.0, 2000.0)
    begun = legs.t0_s < 1000.0  # a turn that begins late is met only if it is short
    lengths_s = (legs.t1_s - legs.t0_s)[begun]
    assert abs(lengths_s.mean() - 50.0) < 3 * lengths_s.std() / math.sqrt(len(lengths_s))
    assert lengths_s.std() == pytest.approx(50.0, rel=0.03)
    assert len(place) > 50_000
