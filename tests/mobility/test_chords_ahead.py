"""Chords that are worked out ahead are those that are worked out when they are asked for, to the last bit."""

import numpy as np
import pytest

from edgesim.devices.places import place_in_disc
from edgesim.mobility.chords import chord_midpoints, chords_until
from edgesim.mobility.chords_ahead import ChordsAhead
from edgesim.mobility.models.direction import Direction
from edgesim.mobility.paths import Ground, Paths
from edgesim.streams import Streams

RADIUS_M, SIDE_M = 120.0, 9.0


def make_paths(devices: int) -> Paths:
    streams = Streams(3)
    x_m, y_m = place_in_disc(np.arange(devices), RADIUS_M, 0.0, streams)
    ground = Ground(RADIUS_M, x_m, y_m)
    return Direction.model_validate({"speed_mps": [0.0, 30.0], "turn_s": 4.0}).make(ground, streams)


def distances(x_m: np.ndarray, y_m: np.ndarray) -> np.ndarray:
    """Distances to two stations, in the place of gains."""
    return np.stack([np.hypot(x_m, y_m), np.hypot(x_m - 50.0, y_m)])


@pytest.mark.parametrize("devices", [1, 25])
@pytest.mark.parametrize("seed", range(4))
def test_chords_ahead_are_the_chords(devices, seed):
    rng = np.random.default_rng(seed)
    ahead, anew, now_s = ChordsAhead(make_paths(devices), SIDE_M, devices, distances), make_paths(devices), 0.0
    for _ in range(40):
        ids = np.flatnonzero(rng.random(devices) < 0.7)
        begins_s = now_s + rng.uniform(0.0, 2.0, len(ids))
        ends_s = begins_s + rng.uniform(1e-6, rng.choice([0.1, 6.0]), len(ids))
        if len(ids):
            found, gains = ahead.until(ids, begins_s, ends_s)
            expected = chords_until(anew, ids, begins_s, ends_s, SIDE_M)
            for column in ("place", "begin_s", "end_s", "x_m", "y_m"):
                np.testing.assert_array_equal(getattr(found, column), getattr(expected, column), column)
            if gains is not None:
                np.testing.assert_array_equal(gains, distances(expected.x_m, expected.y_m))
        middles_m = chord_midpoints(anew.legs(ids, now_s), now_s, SIDE_M)
        *places_m, gains = ahead.present(ids, now_s)
        np.testing.assert_array_equal(places_m, middles_m)
        np.testing.assert_array_equal(gains, distances(*middles_m))
        now_s += rng.choice([0.0, 0.3, 2.5])


def test_the_chord_that_begins_at_the_end_asked_for_is_left_out():
    ahead, ids = ChordsAhead(make_paths(5), SIDE_M, 5), np.array([2])
    begins_s = ahead.until(ids, 0.0, 6.0)[0].begin_s
    assert len(begins_s) > 3
    only, _ = ahead.until(ids, float(begins_s[1]), float(begins_s[2]))
    assert only.begin_s.tolist() == [begins_s[1]]
