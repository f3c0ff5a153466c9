"""Random waypoint: its closed forms, and that runs begin by the law of an arbitrary instant."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ellipe

from edgesim.base.errors import EdgesimError
from edgesim.mobility.models import make_paths
from edgesim.mobility.models.waypoint import Waypoint
from edgesim.mobility.paths import Ground, Paths
from edgesim.streams import Streams

RADIUS_M, SPEEDS, PAUSE_S, DEVICES = 250.0, [1.0, 20.0], 30.0, 50_000
IDS = np.arange(DEVICES)

MOVING_SPEED_MPS, WAY_M, WAY_S = 6.342355813211, 226.353696841807, 35.689214466698
PAUSED, ACCEPTED = 0.456695977316, 0.452707393684
MOVING_MEAN, MOVING_INNER = 0.516203377626, 0.468346793128
MEAN_M = 146.229839116158
"""Mean distance from the centre with pauses, on the disc of 250 m."""


def paths(seed: int = 0, devices: int = DEVICES, **options: object) -> Paths:
    ground = Ground(RADIUS_M, np.zeros(devices), np.zeros(devices))
    return make_paths("waypoint", {"speed_mps": SPEEDS, "pause_s": PAUSE_S, **options}, ground, Streams(seed))


def within_three_errors(sample: np.ndarray, mean: float) -> None:
    assert abs(sample.mean() - mean) < 3 * sample.std() / math.sqrt(len(sample))


def density(r: float) -> float:
    """Of a moving device per area of the unit disc: Hyytia, Lassila and Virtamo, IEEE TMC 2006."""
    return 45.0 * (1.0 - r**2) * ellipe(r**2) / (32.0 * math.pi)


def mean(function: Callable[[float], float], most: float) -> float:
    """Integral from 0, to 1e-13."""
    return quad(function, 0.0, most, epsabs=1e-13, epsrel=1e-13, limit=500)[0]


def test_the_worked_numbers_of_the_stationary_law():
    least, most = SPEEDS
    slowness = quad(lambda v: 1.0 / v / (most - least), least, most)[0]
    assert 1.0 / slowness == pytest.approx(MOVING_SPEED_MPS, abs=1e-9)
    # The distance s of two points of the unit disc has the density 2 s/pi (2 arccos(s/2) - s sqrt(1 - s^2/4)).
    chord = mean(lambda s: 2 * s * s / math.pi * (2 * math.acos(s / 2) - s * math.sqrt(1 - s * s / 4)), 2.0)
    assert chord * RADIUS_M == pytest.approx(WAY_M, abs=1e-9)
    assert chord / 2 == pytest.approx(ACCEPTED, abs=1e-9)
    assert chord * RADIUS_M * slowness == pytest.approx(WAY_S, abs=1e-9)
    assert Waypoint(speed_mps=SPEEDS, pause_s=PAUSE_S).paused_share(RADIUS_M) == pytest.approx(PAUSED, abs=1e-12)
    share = PAUSE_S / (PAUSE_S + WAY_S)
    assert share == pytest.approx(PAUSED, abs=1e-11)
    assert mean(lambda r: 2 * math.pi * r * density(r), 1.0) == pytest.approx(1.0, abs=1e-9)
    assert mean(lambda r: 2 * math.pi * r * r * density(r), 1.0) == pytest.approx(MOVING_MEAN, abs=1e-9)
    assert mean(lambda r: 2 * math.pi * r * density(r), 0.5) == pytest.approx(MOVING_INNER, abs=1e-9)
    mean_m = RADIUS_M * (PAUSED * 2 / 3 + (1 - PAUSED) * MOVING_MEAN)
    assert mean_m == pytest.approx(MEAN_M, abs=1e-9)


def test_one_speed_for_all_has_its_own_slowness():
    share = Waypoint(speed_mps=[4.0, 4.0], pause_s=PAUSE_S).paused_share(RADIUS_M)
    assert share == pytest.approx(PAUSE_S / (PAUSE_S + WAY_M / 4.0), abs=1e-12)


@pytest.mark.parametrize("t_s", [0.0, 100.0, 1000.0])
def test_every_instant_has_the_stationary_law(t_s):
    legs = paths(seed=3).legs(IDS, t_s)
    x_m, y_m = legs.at(t_s)
    share = np.hypot(x_m, y_m) / RADIUS_M
    speed_mps, moves = np.hypot(legs.vx_mps, legs.vy_mps), ~legs.rests
    within_three_errors(~moves * 1.0, PAUSED)
    within_three_errors(speed_mps[moves], MOVING_SPEED_MPS)
    within_three_errors(share[moves], MOVING_MEAN)
    within_three_errors((share[moves] < 0.5) * 1.0, MOVING_INNER)
    within_three_errors(share[~moves], 2 / 3)
    within_three_errors((share[~moves] < 0.5) * 1.0, 0.25)
    within_three_errors(share * RADIUS_M, MEAN_M)
    # No direction is preferred, neither of places nor of ways.
    for sample in (x_m, y_m, x_m * y_m, legs.vx_mps, legs.vy_mps, legs.vx_mps * y_m - legs.vy_mps * x_m):
        within_three_errors(sample, 0.0)
    # What is left of a pause is uniform, since all pauses are equally long.
    within_three_errors((legs.t1_s - t_s)[~moves], PAUSE_S / 2)


def test_a_start_at_the_placement_begins_with_the_uniform_speed_and_no_pause():
    x_m, y_m = np.linspace(-100.0, 100.0, DEVICES), np.full(DEVICES, 7.0)
    options = {"speed_mps": SPEEDS, "pause_s": PAUSE_S, "start": "placement"}
    moving = make_paths("waypoint", options, Ground(RADIUS_M, x_m, y_m), Streams(5))
    legs = moving.legs(IDS, 0.0)
    assert (legs.x0_m == x_m).all()
    assert (legs.y0_m == y_m).all()
    assert not legs.rests.any()
    within_three_errors(np.hypot(legs.vx_mps, legs.vy_mps), 10.5)


def test_a_device_goes_to_a_point_of_the_disc_rests_there_and_goes_on():
    place, legs = paths(devices=300).legs_until(np.arange(300), 0.0, 2000.0)
    follows = np.flatnonzero(np.diff(place) == 0)
    assert (legs.t1_s[follows] == legs.t0_s[follows + 1]).all()
    assert (legs.rests[follows] != legs.rests[follows + 1]).all()
    end_x_m, end_y_m = legs.at(legs.t1_s)
    assert end_x_m[follows] == pytest.approx(legs.x0_m[follows + 1], abs=1e-9)
    assert end_y_m[follows] == pytest.approx(legs.y0_m[follows + 1], abs=1e-9)
    assert (np.hypot(end_x_m, end_y_m) <= RADIUS_M).all()
    whole_pause = legs.rests & (legs.t0_s > 0)
    assert (legs.t1_s - legs.t0_s)[whole_pause] == pytest.approx(PAUSE_S)
    # Waypoints are uniform: their squared distance is, too.
    arrivals = np.flatnonzero(~legs.rests)
    within_three_errors((np.hypot(end_x_m, end_y_m)[arrivals] / RADIUS_M) ** 2, 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed_mps": [0.0, 1.0]}, "model 'waypoint': mobility.speed_mps: expected a least speed above 0"),
        ({"speed_mps": [3.0, 1.0]}, "model 'waypoint': mobility.speed_mps: expected the least speed first"),
        ({"speed_mps": [1.0, 2e4]}, r"model 'waypoint': mobility.speed_mps\[1\]: input should be less than"),
        ({"turn_s": 3.0}, "mobility.turn_s: is an option of model 'direction', not of 'waypoint'"),
        ({"pause": 3.0}, "model 'waypoint': unknown key 'mobility.pause', did you mean 'mobility.pause_s'"),
    ],
)
def test_bad_options_are_refused_in_a_line(options, message):
    with pytest.raises(EdgesimError, match=message):
        make_paths("waypoint", options, Ground(RADIUS_M, np.zeros(1), np.zeros(1)), Streams(0))
