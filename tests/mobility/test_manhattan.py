"""Manhattan: positions on streets, turns at crossings, and where devices are in the long run."""

import math

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.devices.places import place_in_disc
from edgesim.mobility.legs import Legs
from edgesim.mobility.models import make_paths
from edgesim.mobility.models.manhattan import Manhattan
from edgesim.mobility.paths import Ground, Paths
from edgesim.streams import Streams

BLOCK_M, RADIUS_M = 100.0, 250.0
"""Five streets in each direction, from -200 to 200 m."""


def paths(count: int, seed: int = 0, radius_m: float = RADIUS_M, **options: object) -> Paths:
    x_m, y_m = place_in_disc(np.arange(count), radius_m, 0.0, Streams(seed))
    return make_paths("manhattan", {"block_m": BLOCK_M, **options}, Ground(radius_m, x_m, y_m), Streams(seed))


def headings_behind(count: int, x_m: float, y_m: float, vx_mps: float, vy_mps: float) -> list[float]:
    """Shares of devices that leave a crossing to the east, north, west and south, having come at a velocity."""
    one = np.ones(count)
    before = Legs(0 * one, one, (x_m - vx_mps) * one, (y_m - vy_mps) * one, vx_mps * one, vy_mps * one)
    ground = Ground(RADIUS_M, 0 * one, 0 * one)
    after = Manhattan(block_m=BLOCK_M).next_legs(np.arange(count), np.ones(count, int), before, ground, Streams(3))
    assert (after.x0_m == x_m).all()
    assert (after.y0_m == y_m).all()
    assert ((after.vx_mps == 0) != (after.vy_mps == 0)).all()
    return [float(np.mean(way)) for way in (after.vx_mps > 0, after.vy_mps > 0, after.vx_mps < 0, after.vy_mps < 0)]


@pytest.mark.parametrize(
    ("crossing", "velocity", "shares"),
    [
        ((100.0, -100.0), (10.0, 0.0), (0.5, 0.25, 0, 0.25)),
        ((0.0, 0.0), (0.0, -10.0), (0.25, 0, 0.25, 0.5)),
        ((200.0, 0.0), (10.0, 0.0), (0, 0.5, 0, 0.5)),
        ((200.0, 100.0), (0.0, 10.0), (0, 0.5, 0.5, 0)),
        ((-200.0, 0.0), (0.0, -10.0), (0.5, 0, 0, 0.5)),
        ((200.0, 200.0), (0.0, 10.0), (0, 0, 1, 0)),
        ((-200.0, -200.0), (-10.0, 0.0), (0, 1, 0, 0)),
    ],
    ids=["inside", "inside-south", "head-on", "along-the-edge", "along-another-edge", "corner", "another-corner"],
)
def test_devices_go_straight_on_or_turn_with_the_shares_that_the_edge_leaves(crossing, velocity, shares):
    count = 100_000
    for share, expected in zip(headings_behind(count, *crossing, *velocity), shares, strict=True):
        assert abs(share - expected) <= 4 * math.sqrt(expected * (1 - expected) / count)


def test_devices_are_on_streets_at_every_instant_and_cross_them_after_whole_blocks():
    moving, ids = paths(300, speed_mps=[5.0, 15.0]), np.arange(300)
    for t_s in np.linspace(0.0, 200.0, 41):
        blocks = np.stack(moving.positions(ids, float(t_s))) / BLOCK_M
        assert (np.abs(blocks - np.rint(blocks)).min(axis=0) < 1e-9).all()
        assert (np.abs(blocks) <= 2 + 1e-9).all()
    place, legs = paths(300, speed_mps=[5.0, 15.0]).legs_until(ids, 0.0, 200.0)
    speed_mps = np.hypot(legs.vx_mps, legs.vy_mps)
    assert 5 <= speed_mps.min() < 5.1 < 14.9 < speed_mps.max() <= 15
    later = np.flatnonzero(np.append(False, place[1:] == place[:-1]))
    assert ((legs.t1_s - legs.t0_s) * speed_mps)[later] == pytest.approx(BLOCK_M, rel=1e-9)
    # Legs go on where and when those before them end.
    x_m, y_m = legs.rows(later - 1).at(legs.t0_s[later])
    assert (legs.t0_s[later] == legs.t1_s[later - 1]).all()
    assert np.hypot(x_m - legs.x0_m[later], y_m - legs.y0_m[later]).max() < 1e-9


@pytest.mark.parametrize(
    ("placed", "starts"),
    [
        # On the street that runs east 20 m away, since the other one is 30 m away.
        ((30.0, 120.0), (30.0, 100.0)),
        ((120.0, 30.0), (100.0, 30.0)),
        # As near to both: on the one that runs east.
        ((25.0, 75.0), (25.0, 100.0)),
        # Beyond the outermost street.
        ((240.0, 30.0), (200.0, 30.0)),
        ((0.0, -245.0), (0.0, -200.0)),
    ],
)
def test_devices_start_at_the_nearest_point_of_a_street(placed, starts):
    ground = Ground(RADIUS_M, np.full(2000, placed[0]), np.full(2000, placed[1]))
    moving = make_paths("manhattan", {"block_m": BLOCK_M}, ground, Streams(0))
    legs = moving.legs(np.arange(2000), 0.0)
    assert (legs.x0_m == starts[0]).all()
    assert (legs.y0_m == starts[1]).all()
    # Both ways are taken, as often.
    along = np.sign(legs.vx_mps + legs.vy_mps)
    assert abs(along.mean()) <= 4 / math.sqrt(2000)
    # At the end of the first leg a device is at the next crossing.
    ends = np.stack(legs.at(legs.t1_s)) / BLOCK_M
    assert ends == pytest.approx(np.rint(ends), abs=1e-9)


def test_in_the_long_run_all_blocks_are_driven_alike_and_speeds_have_the_density_of_slowness():
    """Turns keep the uniform law over directed blocks: as much leads into each as out of each.

    There are 2 x 5 x 4 blocks in two directions each. The mean speed over time is (v2 - v1) / ln(v2 / v1).
    """
    count, ids = 20_000, np.arange(20_000)
    legs = paths(count, speed_mps=[5.0, 20.0]).legs(ids, 600.0)
    middle = np.stack((legs.x0_m, legs.y0_m)) + 0.5 * BLOCK_M * np.sign(np.stack((legs.vx_mps, legs.vy_mps)))
    block = np.rint(middle / (0.5 * BLOCK_M)).astype(int) + 4
    way = (legs.vx_mps + legs.vy_mps > 0).astype(int)
    _, driven = np.unique(np.column_stack((*block, way)), axis=0, return_counts=True)
    assert len(driven) == 80
    # Chi-squared of 79 degrees of freedom: mean 79, standard deviation 12.6.
    assert ((driven - count / 80) ** 2 / (count / 80)).sum() < 79 + 4 * math.sqrt(2 * 79)
    speed_mps = np.hypot(legs.vx_mps, legs.vy_mps)
    assert abs(speed_mps.mean() - 15 / math.log(4)) <= 4 * speed_mps.std() / math.sqrt(count)
    # Devices that have come to a crossing are spread over crossings by their numbers of blocks: 2 at corners, 3, 4.
    crossing = np.stack((legs.x0_m, legs.y0_m)) / BLOCK_M
    ways_out = 4 - np.count_nonzero(np.abs(np.rint(crossing)) == 2, axis=0)
    for blocks, crossings in ((2, 4), (3, 12), (4, 9)):
        expected = blocks * crossings / 80
        assert abs(np.mean(ways_out == blocks) - expected) <= 4 * math.sqrt(expected * (1 - expected) / count)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"speed_mps": [0.0, 1.0]}, r"mobility\.speed_mps: expected a least speed above 0"),
        ({"block_m": 251.0}, r"^mobility\.block_m: expected at most devices\.radius_m, 250 m, .* \(got 251\)$"),
        ({"block_m": 0.5}, r"mobility\.block_m"),
        ({"pause_s": 3.0}, r"mobility\.pause_s"),
    ],
)
def test_bad_options_are_refused(options, said):
    with pytest.raises(EdgesimError, match=said):
        paths(2, **options)
