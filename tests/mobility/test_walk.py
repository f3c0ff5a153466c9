"""Paths do not depend on who asks when, on how many devices there are, or on what was asked of the future."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.mobility.models import make_paths
from edgesim.mobility.paths import Ground, Paths
from edgesim.streams import Streams

DEVICES = 12
MODELS: dict[str, dict[str, object]] = {
    "waypoint": {"speed_mps": [1.0, 20.0], "pause_s": 5.0},
    "direction": {"speed_mps": [0.0, 20.0], "turn_s": 7.0},
    "manhattan": {"speed_mps": [1.0, 20.0], "block_m": 30.0},
}
models = pytest.mark.parametrize("model", MODELS)
questions = st.lists(
    st.tuples(
        st.sampled_from(["positions", "legs", "ahead", "legs_until"]),
        st.lists(st.integers(0, DEVICES - 1), min_size=1, max_size=5, unique=True),
        st.floats(0.0, 400.0),
    ),
    max_size=12,
)


def paths(model: str, devices: int = DEVICES, seed: int = 1) -> Paths:
    x_m = np.linspace(-60.0, 60.0, DEVICES)
    ground = Ground(100.0, np.resize(x_m, devices), np.resize(-x_m, devices))
    return make_paths(model, MODELS[model], ground, Streams(seed))


def ask(moving: Paths, question: str, ids: np.ndarray, t_s: float) -> None:
    if question == "legs_until":
        moving.legs_until(ids, t_s, t_s + 50.0)
    else:
        getattr(moving, question)(ids, t_s)


@models
@settings(max_examples=6, deadline=None)
@given(asked=questions, t_s=st.floats(0.0, 400.0))
def test_positions_are_the_same_whatever_was_asked_before(model, asked, t_s):
    asked_often, asked_once, ids = paths(model), paths(model), np.arange(DEVICES)
    for question, devices, at_s in asked:
        ask(asked_often, question, np.array(devices), at_s)
    for often, once in zip(asked_often.legs(ids, t_s).columns, asked_once.legs(ids, t_s).columns, strict=True):
        assert (often == once).all()
    x_m, y_m = asked_often.positions(ids, t_s)
    later_x_m, later_y_m = paths(model).legs(ids, t_s).at(t_s)
    assert (x_m == later_x_m).all()
    assert (y_m == later_y_m).all()


@models
def test_instants_of_their_own_for_each_device(model):
    ids, t_s = np.arange(DEVICES), np.linspace(0.0, 300.0, DEVICES)
    moving = paths(model)
    legs = moving.legs(ids, t_s)
    assert ((legs.t0_s <= t_s) & (t_s < legs.t1_s)).all()
    for device in ids:
        alone = paths(model).legs(ids[[device]], float(t_s[device]))
        assert [column.item() for column in alone.columns] == [column[device] for column in legs.columns]


@models
def test_the_paths_of_the_first_half_stay_with_twice_the_devices(model):
    ids = np.arange(DEVICES)
    few, many = (paths(model, devices).positions(ids, 123.0) for devices in (DEVICES, 2 * DEVICES))
    assert np.array_equal(few, many)


@models
def test_another_seed_has_other_paths(model):
    ids = np.arange(DEVICES)
    same = np.isclose(paths(model, seed=1).positions(ids, 50.0), paths(model, seed=2).positions(ids, 50.0))
    assert not same.all(axis=0).any()


@models
def test_legs_follow_one_another_and_are_those_of_each_instant(model):
    ids = np.array([3, 7, 0])
    place, legs = paths(model).legs_until(ids, 40.0, np.array([300.0, 40.5, 90.0]))
    assert (np.diff(place) >= 0).all()
    for at, end_s in enumerate([300.0, 40.5, 90.0]):
        own = legs.rows(np.flatnonzero(place == at))
        assert own.t0_s[0] <= 40.0 < own.t1_s[0]
        assert own.t0_s[-1] < end_s <= own.t1_s[-1]
        assert (own.t1_s[:-1] == own.t0_s[1:]).all()
        assert np.array(own.at(own.t1_s))[:, :-1] == pytest.approx(np.array([own.x0_m, own.y0_m])[:, 1:], abs=1e-9)
        for row, t_s in enumerate(own.t0_s[1:], start=1):
            alone = paths(model).legs(ids[[at]], float(t_s))
            assert [column.item() for column in alone.columns] == [column[row] for column in own.columns]
