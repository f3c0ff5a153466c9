"""The registry of models of motion, and what a model of one's own must return."""

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.mobility.models import MODELS, make_paths
from edgesim.mobility.models.motion import Motion
from edgesim.mobility.paths import Ground
from edgesim.streams import Streams

GROUND = Ground(100.0, np.zeros(2), np.zeros(2))


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(EdgesimError, match=r"^mobility.model: unknown model 'waypoints', did you mean 'waypoint'\?"):
        make_paths("waypoints", {}, GROUND, Streams(0))


def test_a_model_of_ones_own_is_found_by_its_path(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_motion.py").write_text(
        "from edgesim.mobility.models.direction import Direction\n"
        "from edgesim.mobility.models.motion import Motion\n"
        "class Eastward(Motion):\n"
        "    speed_mps: float = 3.0\n"
        "    def first_legs(self, ids, ground, streams):\n"
        "        from edgesim.mobility.legs import Legs\n"
        "        import numpy as np\n"
        "        zero = np.zeros(len(ids))\n"
        "        return Legs(zero, zero + 10.0, ground.x_m[ids], ground.y_m[ids], zero + self.speed_mps, zero)\n"
        "    def next_legs(self, ids, number, before, ground, streams):\n"
        "        from edgesim.mobility.legs import Legs\n"
        "        x_m, y_m = before.at(before.t1_s)\n"
        "        return Legs(before.t1_s, before.t1_s + 10.0, x_m, y_m, -before.vx_mps, before.vy_mps)\n"
        "class Nothing(Motion):\n"
        "    def make(self, ground, streams):\n"
        "        return 3\n"
        "class Other: pass\n"
    )
    moving = make_paths("own_motion.Eastward", {"speed_mps": 2.0}, GROUND, Streams(0))
    assert moving.positions(np.array([0, 1]), 12.0)[0].tolist() == [16.0, 16.0]
    with pytest.raises(
        EdgesimError, match=r"^mobility\.model 'own_motion.Nothing': make returned int, expected a subclass"
    ):
        make_paths("own_motion.Nothing", {}, GROUND, Streams(0))
    with pytest.raises(
        EdgesimError, match=r"^mobility.model: 'own_motion.Other' is the class Other, expected a subclass"
    ):
        make_paths("own_motion.Other", {}, GROUND, Streams(0))


def test_a_model_without_legs_says_so():
    with pytest.raises(NotImplementedError):
        Motion().make(GROUND, Streams(0)).positions(np.array([0]), 0.0)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "recorded"])
def test_no_device_leaves_the_box(name):
    moving = make_paths(name, {"speed_mps": [1.0, 30.0]}, Ground(100.0, np.zeros(500), np.zeros(500)), Streams(0))
    least_x_m, most_x_m, least_y_m, most_y_m = moving.box
    for t_s in np.linspace(0.0, 500.0, 21):
        x_m, y_m = moving.positions(np.arange(500), float(t_s))
        assert ((x_m >= least_x_m - 1e-6) & (x_m <= most_x_m + 1e-6)).all()
        assert ((y_m >= least_y_m - 1e-6) & (y_m <= most_y_m + 1e-6)).all()
