"""Chords of a grid: against exact arithmetic line by line, and the same whatever instants are asked for."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgesim.mobility.chords import chord_midpoints, chords_of, chords_until
from edgesim.mobility.legs import Legs
from edgesim.mobility.models import make_paths
from edgesim.mobility.paths import Ground
from edgesim.streams import Streams

SIDE_M = 5.0


def leg(x0_m: float, y0_m: float, x1_m: float, y1_m: float, speed_mps: float, t0_s: float = 0.0) -> Legs:
    over_s = math.hypot(x1_m - x0_m, y1_m - y0_m) / speed_mps
    columns = (t0_s, t0_s + over_s, x0_m, y0_m, (x1_m - x0_m) / over_s, (y1_m - y0_m) / over_s)
    return Legs(*(np.array([value]) for value in columns))


def whole(legs: Legs, side_m: float = SIDE_M):
    place = np.zeros(len(legs), dtype=np.int64)
    return chords_of(legs, place, legs.t0_s[:1], legs.t1_s[-1:], side_m)


def test_the_worked_leg():
    chords = whole(leg(-100.0, 30.0, 150.0, 90.0, 15.0))
    assert len(chords.x_m) == 60
    assert chords.end_s[-1] == pytest.approx(17.139946842910, abs=1e-9)
    assert chords.end_s[:2] == pytest.approx([0.342798936858, 0.685597873716], abs=1e-9)
    assert (chords.x_m[0], chords.y_m[0]) == (pytest.approx(-97.5, abs=1e-9), pytest.approx(30.6, abs=1e-9))


def test_crossings_per_second_of_a_uniform_direction():
    angle = np.linspace(0.0, 2 * math.pi, 201)[:-1] + 0.0003
    over_s, zero = np.full(200, 1000.0), np.zeros(200)
    legs = Legs(zero, over_s, zero + 1.7, zero + 2.9, 15.0 * np.cos(angle), 15.0 * np.sin(angle))
    chords = chords_of(legs, np.arange(200), zero, over_s, SIDE_M)
    assert 4 * 15.0 / (math.pi * SIDE_M) == pytest.approx(3.819718634205, abs=1e-12)
    assert (len(chords.x_m) - 200) / 200 / 1000.0 == pytest.approx(3.819718634205, rel=1e-3)


@pytest.mark.parametrize("speed_mps", [0.7, 3.3, 7.3, 11.1])
def test_lines_that_are_crossed_at_a_corner_are_crossed_at_one_instant(speed_mps):
    """From (-150, -50) every third line of x is crossed together with one of y, along a third of the slope."""
    assert len(whole(leg(-150.0, -50.0, 150.0, 50.0, speed_mps)).x_m) == 60
    assert len(whole(leg(-77.0, -77.0, 88.0, 88.0, speed_mps)).x_m) == 34


@given(st.floats(-50.0, 50.0), st.floats(-50.0, 50.0), st.floats(0.0, 6.28), st.floats(0.5, 40.0))
def test_the_instant_of_a_crossing_belongs_to_the_later_chord(x0_m, y0_m, angle, speed_mps):
    columns = (0.0, 200.0 / speed_mps, x0_m, y0_m, speed_mps * math.cos(angle), speed_mps * math.sin(angle))
    walked = Legs(*(np.array([value]) for value in columns))
    chords = whole(walked)
    many = walked.rows(np.zeros(len(chords.x_m), dtype=np.int64))
    x_m, y_m = chord_midpoints(many, chords.begin_s, SIDE_M)
    assert x_m.tolist() == chords.x_m.tolist()
    assert y_m.tolist() == chords.y_m.tolist()


coordinates = st.floats(-60.0, 60.0).map(lambda value: round(value, 3))


@given(coordinates, coordinates, coordinates, coordinates, st.floats(0.5, 40.0), st.sampled_from([1.0, 2.5, 5.0, 20.0]))
def test_chords_are_the_parts_between_the_lines(x0_m, y0_m, x1_m, y1_m, speed_mps, side_m):
    assume(math.hypot(x1_m - x0_m, y1_m - y0_m) > 0.01)
    chords = whole(leg(x0_m, y0_m, x1_m, y1_m, speed_mps), side_m)
    shares = {Fraction(0), Fraction(1)}
    for begin_m, end_m in ((x0_m, x1_m), (y0_m, y1_m)):
        begin, end, side = Fraction(begin_m), Fraction(end_m), Fraction(side_m)
        low, high = sorted((begin, end))
        for line in range(math.floor(low / side) + 1, math.ceil(high / side)):
            shares.add((line * side - begin) / (end - begin))
    over_s = math.hypot(x1_m - x0_m, y1_m - y0_m) / speed_mps
    edges_s = np.array([float(share) * over_s for share in sorted(shares)])
    # Exact crossings closer than the rounding of instants make a chord of no length, which is none.
    apart = np.append(True, np.diff(edges_s) > 1e-9)
    assume((np.diff(edges_s)[~apart[1:]] < 1e-11).all())
    edges_s = edges_s[apart]
    assert len(chords.x_m) == len(edges_s) - 1
    assert chords.begin_s == pytest.approx(edges_s[:-1], abs=1e-9)
    assert chords.end_s == pytest.approx(edges_s[1:], abs=1e-9)
    middle = (edges_s[:-1] + edges_s[1:]) / 2 / over_s
    assert chords.x_m == pytest.approx(x0_m + middle * (x1_m - x0_m), abs=1e-7)
    assert chords.y_m == pytest.approx(y0_m + middle * (y1_m - y0_m), abs=1e-7)


@given(
    coordinates, coordinates, coordinates, coordinates, st.floats(0.5, 40.0), st.floats(0.0, 1.0),
    st.floats(0.001, 1.0), st.sampled_from([0.0, 1234.5]),
)  # fmt: skip
def test_chords_do_not_depend_on_the_instants_asked_for(x0_m, y0_m, x1_m, y1_m, speed_mps, from_share, share, t0_s):
    assume(math.hypot(x1_m - x0_m, y1_m - y0_m) > 0.01)
    walked = leg(x0_m, y0_m, x1_m, y1_m, speed_mps, t0_s)
    every = whole(walked)
    over_s = walked.t1_s - walked.t0_s
    t_s = walked.t0_s + from_share * over_s
    end_s = np.minimum(t_s + share * over_s, walked.t1_s)
    assume(t_s < end_s)
    asked = chords_of(walked, np.array([0]), t_s, end_s, SIDE_M)
    same = (every.end_s > t_s) & (every.begin_s < end_s)
    for name in ("begin_s", "end_s", "x_m", "y_m"):
        assert (getattr(asked, name) == getattr(every, name)[same]).all()
    # Of the chord at an instant the very same midpoint, if the instant is not at an edge but for rounding.
    inside = (every.begin_s + 1e-9 < t_s) & (t_s < every.end_s - 1e-9)
    if inside.any():
        x_m, y_m = chord_midpoints(walked, t_s, SIDE_M)
        assert (x_m.item(), y_m.item()) == (every.x_m[inside].item(), every.y_m[inside].item())


def test_a_device_that_walks_along_a_line_stays_in_one_row_of_squares():
    chords = whole(leg(0.0, 10.0, 20.0, 10.0, 1.0))
    assert chords.x_m.tolist() == pytest.approx([2.5, 7.5, 12.5, 17.5])
    assert (chords.y_m == 10.0).all()
    back = whole(leg(20.0, 10.0, 0.0, 10.0, 1.0))
    assert back.x_m.tolist() == pytest.approx([17.5, 12.5, 7.5, 2.5])


@pytest.mark.parametrize("model", ["waypoint", "direction"])
def test_chords_of_many_devices_cover_the_time_asked_for(model):
    ids = np.array([5, 0, 17, 30])
    options = {"speed_mps": [1.0, 20.0]} | ({"pause_s": 4.0} if model == "waypoint" else {"turn_s": 4.0})
    moving = make_paths(model, options, Ground(100.0, np.zeros(40), np.zeros(40)), Streams(8))
    t_s, end_s = np.array([0.0, 3.0, 50.0, 7.7]), np.array([60.0, 3.1, 90.0, 30.0])
    chords = chords_until(moving, ids, t_s, end_s, SIDE_M)
    for at, device in enumerate(ids):
        own = chords.place == at
        assert chords.begin_s[own][0] <= t_s[at] < chords.end_s[own][0]
        assert chords.begin_s[own][-1] < end_s[at] <= chords.end_s[own][-1]
        assert chords.begin_s[own][1:] == pytest.approx(chords.end_s[own][:-1], abs=1e-9)
        middle_s = (chords.begin_s[own] + chords.end_s[own]) / 2
        legs = moving.ahead(np.full(len(middle_s), device), middle_s)
        x_m, y_m = legs.at(middle_s)
        assert np.floor(x_m / SIDE_M).tolist() == np.floor(chords.x_m[own] / SIDE_M).tolist()
        assert chord_midpoints(legs, middle_s, SIDE_M)[0].tolist() == chords.x_m[own].tolist()
        assert chord_midpoints(legs, middle_s, SIDE_M)[1].tolist() == chords.y_m[own].tolist()
        assert np.abs(np.floor(y_m / SIDE_M) - np.floor(chords.y_m[own] / SIDE_M)).max() == 0
