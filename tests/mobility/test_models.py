"""The registry of models of motion, and what a model of one's own must return."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.mobility.checked_law import CheckedLaw
from edgesim.mobility.legs import Legs
from edgesim.mobility.models import MODELS, make_paths
from edgesim.mobility.models.motion import Motion
from edgesim.mobility.paths import Ground
from edgesim.streams import Streams

GROUND = Ground(100.0, np.zeros(2), np.zeros(2))


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(EdgesimError, match=r"^mobility.model: unknown model 'waypoints', did you mean 'waypoint'\?"):
        make_paths("waypoints", {}, GROUND, Streams(0))


def test_a_model_of_ones_own_is_found_by_its_path(tmp_path, monkeypatch):
    moving = make_paths("edgesim.templates.motion.Visits", {"way_s": 10.0}, GROUND, Streams(0))
    assert moving.positions(np.array([0, 1]), 20.0)[0] == pytest.approx([0.0, 0.0], abs=1e-9)
    with pytest.raises(EdgesimError, match=r"did you mean 'mobility\.way_s'"):
        make_paths("edgesim.templates.motion.Visits", {"way": 10.0}, GROUND, Streams(0))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_motion.py").write_text(
        "from edgesim.mobility.models.motion import Motion\n"
        "class Nothing(Motion):\n"
        "    def make(self, ground, streams):\n"
        "        return 3\n"
        "class Other: pass\n"
    )
    with pytest.raises(
        EdgesimError, match=r"^mobility\.model 'own_motion\.Nothing': make returned int, expected a sub"
    ):
        make_paths("own_motion.Nothing", {}, GROUND, Streams(0))
    with pytest.raises(EdgesimError, match=r"^mobility\.model: 'own_motion\.Other' is the class Other, expected a sub"):
        make_paths("own_motion.Other", {}, GROUND, Streams(0))


def test_a_model_without_legs_says_so():
    with pytest.raises(EdgesimError, match=r"^mobility\.model: Motion has neither first_legs nor make$"):
        Motion().make(GROUND, Streams(0)).positions(np.array([0]), 0.0)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("all", None, r"returned NoneType for 2 devices, expected Legs of \[n\]"),
        ("x0_m", [1.0, 2.0, 3.0], r"returned columns of \(2,\) and \(3,\) for 2 devices"),
        ("y0_m", math.nan, r"a leg's begin or velocity is not finite, that of device 1"),
        ("vx_mps", math.inf, r"a leg's begin or velocity is not finite, that of device 1"),
        ("t1_s", math.nan, r"a leg does not end behind its begin, that of device 1"),
        ("t1_s", 0.0, r"a leg does not end behind its begin, that of device 1"),
        ("x0_m", 150.0, r"a leg leaves the disc of 100 m \(devices\.radius_m\), that of device 1"),
        ("vx_mps", 1.0, r"a leg without an end is not at rest, that of device 1"),
        ("vx_mps", [11.0, 0.0], r"a leg leaves the disc of 100 m \(devices\.radius_m\), that of device 0"),
    ],
)
def test_legs_of_a_model_of_ones_own_that_nobody_can_walk_are_refused(column, value, said):
    at_zero, rest = np.zeros(2), [np.zeros(2) for _ in range(4)]
    legs: Any = Legs(at_zero, np.array([10.0, np.inf]), *rest)
    if column == "all":
        legs = value
    else:
        changed = np.array(value) if np.ndim(value) else np.append(getattr(legs, column)[:1], value)
        legs = replace(legs, **{column: changed})
    law = CheckedLaw(SimpleNamespace(first_legs=lambda *_: legs), "mine")
    with pytest.raises(EdgesimError, match=rf"^mobility\.model 'mine': first_legs:? {said}"):
        law.first_legs(np.array([0, 1]), GROUND, Streams(0))


def test_legs_of_models_of_ones_own_are_checked():
    own = "edgesim.templates.motion.Visits"
    laws = {name: make_paths(name, {}, GROUND, Streams(0)).law for name in (own, "waypoint", "direction")}
    assert {name for name, law in laws.items() if isinstance(law, CheckedLaw)} == {own}


@pytest.mark.parametrize("name", [name for name in MODELS if name != "recorded"])
def test_no_device_leaves_the_box(name):
    moving = make_paths(name, {"speed_mps": [1.0, 30.0]}, Ground(100.0, np.zeros(500), np.zeros(500)), Streams(0))
    least_x_m, most_x_m, least_y_m, most_y_m = moving.box
    for t_s in np.linspace(0.0, 500.0, 21):
        x_m, y_m = moving.positions(np.arange(500), float(t_s))
        assert ((x_m >= least_x_m - 1e-6) & (x_m <= most_x_m + 1e-6)).all()
        assert ((y_m >= least_y_m - 1e-6) & (y_m <= most_y_m + 1e-6)).all()
