"""The corners of ways, as run folders keep them."""

import numpy as np
import pytest

from edgesim.mobility.corners import corners
from edgesim.mobility.models import make_paths
from edgesim.mobility.paths import Ground
from edgesim.streams import Streams

GROUND = Ground(100.0, np.linspace(-50.0, 50.0, 20), np.zeros(20))


@pytest.mark.parametrize(
    ("model", "options"), [("waypoint", {"speed_mps": [2.0, 9.0], "pause_s": 3.0}), ("direction", {"turn_s": 8.0})]
)
def test_between_corners_devices_go_straight(model, options):
    paths = make_paths(model, options, GROUND, Streams(2))
    found = corners(paths, 20, 300.0, 10**6)
    assert (np.diff(found.t_s)[np.diff(found.device) == 0] > 0).all()
    for t_s in np.linspace(0.0, 300.0, 41):
        x_m, y_m = make_paths(model, options, GROUND, Streams(2)).positions(np.arange(20), float(t_s))
        for device in range(20):
            own = found.device == device
            assert np.interp(t_s, found.t_s[own], found.x_m[own]) == pytest.approx(x_m[device], abs=1e-6)
            assert np.interp(t_s, found.t_s[own], found.y_m[own]) == pytest.approx(y_m[device], abs=1e-6)


def test_more_corners_than_may_be_are_none():
    paths = make_paths("direction", {"turn_s": 1.0}, GROUND, Streams(2))
    assert corners(paths, 20, 1000.0, 500) is None
    assert len(corners(paths, 20, 1000.0, 10**6).device) > 20_000 * 0.9


def test_a_repeated_recording_jumps_where_it_begins_anew(tmp_path):
    (tmp_path / "ways.csv").write_text("device,t_s,x_m,y_m\n0,0,0,0\n0,10,50,0\n")
    options = {"file": str(tmp_path / "ways.csv"), "after_end": "wrap"}
    found = corners(make_paths("recorded", options, Ground(100.0, np.zeros(1), np.zeros(1)), Streams(0)), 1, 25.0, 99)
    assert found.t_s == pytest.approx([0, 10, 10, 20, 20, 25])
    assert found.x_m == pytest.approx([0, 50, 0, 50, 0, 25])
