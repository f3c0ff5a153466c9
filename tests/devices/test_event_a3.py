"""Event A3: instants, stations and gains of handovers, beside worked numbers, a plain replay and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.devices.event_a3 import EventA3, Handovers, Ways, between_all, next_handovers, stretches
from edgesim.mobility.chords import Chords, chords_of
from edgesim.mobility.legs import Legs

WORKED = EventA3(3.0, 0.0, 0.256)
SPEED_MPS, STATIONS_M = 30.0, np.array([0.0, 500.0])

APART_M = 500.0
"""Distance between neighbouring hexagons' stations."""


def gains_db(x_m: np.ndarray) -> np.ndarray:
    """Gains of FedTeddi's macro law to the stations of the worked example, in dB, [2, k]."""
    away_m = np.maximum(np.abs(x_m - STATIONS_M[:, None]), 10.0)
    return -(128.1 + 37.6 * np.log10(away_m / 1000.0))


def worked_chords(side_m: float) -> Chords:
    """The way from x = 100 to 400 m at 30 m/s, in squares."""
    leg = Legs(*(np.array([value]) for value in (0.0, 10.0, 100.0, 0.0, SPEED_MPS, 0.0)))
    return chords_of(leg, np.array([0]), np.array([0.0]), np.array([10.0]), side_m)


def first_handover(chords: Chords, gain_db: np.ndarray, rule: EventA3 = WORKED, station: int = 0) -> Handovers:
    since_s = np.array([chords.begin_s[0]])
    return found_on(rule, Ways(chords.place, chords.begin_s, chords.end_s, gain_db), np.array([station]), since_s)


def found_on(rule: EventA3, ways: Ways, station: np.ndarray, since_s: np.ndarray) -> Handovers:
    return next_handovers(rule, ways, stretches(rule, ways, station), station, since_s)


@pytest.mark.parametrize(("side_m", "expected_s"), [(1.0, 6.022666666667), (5.0, 6.089333333333)])
def test_the_worked_handover_on_chords(side_m, expected_s):
    chords = worked_chords(side_m)
    found = first_handover(chords, gains_db(chords.x_m))
    assert found.t_s.item() == pytest.approx(expected_s, abs=1e-9)
    assert found.station.item() == 1
    x_m = 100.0 + SPEED_MPS * expected_s
    middle_m = (np.floor(x_m / side_m) + 0.5) * side_m
    assert (found.gain_from_db.item(), found.gain_to_db.item()) == pytest.approx(
        tuple(gains_db(np.array([middle_m]))[:, 0])
    )


def test_the_worked_handover_on_the_continuous_path():
    """The condition holds from d_own / d_other = 10^(3/37.6) on, x = 272.900237628625 m."""
    ratio = 10.0 ** (3.0 / 37.6)
    x_m = 500.0 * ratio / (1.0 + ratio)
    assert x_m == pytest.approx(272.900237628625, abs=1e-9)
    begin_s = np.array([0.0, (x_m - 100.0) / SPEED_MPS])
    gain_db = np.array([[0.0, 0.0], [2.9, 3.1]])
    chords = Chords(np.zeros(2, int), begin_s, np.array([begin_s[1], 10.0]), *np.zeros((2, 2)))
    assert first_handover(chords, gain_db).t_s.item() == pytest.approx(6.019341254287, abs=1e-9)


def replayed(
    rule: EventA3, begin_s: list[float], end_s: list[float], gain_db: np.ndarray, own: int, since_s: float
) -> tuple[float, int]:
    """Instant and station of a device's next handover, chord after chord and neighbour after neighbour."""
    held_since_s: dict[int, float] = {}
    for chord, (enters_s, leaves_s) in enumerate(zip(begin_s, end_s, strict=True)):
        for other, gain in enumerate(gain_db[:, chord]):
            if other != own and gain - rule.hysteresis_db > gain_db[own, chord] + rule.offset_db:
                held_since_s.setdefault(other, max(enters_s, since_s))
            else:
                held_since_s.pop(other, None)
        due = [(held_s + rule.trigger_s, -gain_db[other, chord], other) for other, held_s in held_since_s.items()]
        due = [candidate for candidate in due if candidate[0] < leaves_s]
        if due:
            return min(due)[0], min(due)[2]
    return math.inf, -1


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1.0, 3.0]),
    st.sampled_from([-2.0, 0.0, 1.0]),
    st.sampled_from([0.0, 0.4, 2.0]),
)
@settings(max_examples=60)
def test_handovers_of_many_devices_are_those_of_a_plain_replay(seed, hysteresis_db, offset_db, trigger_s):
    random, rule = np.random.default_rng(seed), EventA3(hysteresis_db, offset_db, trigger_s)
    counts = random.integers(1, 12, 5)
    place, stations = np.repeat(np.arange(5), counts), int(random.integers(1, 5))
    length_s = random.choice([0.25, 0.5, 1.0], len(place))
    begin_s = np.concatenate([np.cumsum(part) - part for part in np.split(length_s, np.cumsum(counts)[:-1])])
    # Few different gains, so that several neighbours are as strong.
    gain_db = random.integers(0, 6, (stations, len(place))).astype(float)
    own, since_s = random.integers(0, stations, 5), random.uniform(0, 0.25, 5)
    ways = Ways(place, begin_s, begin_s + length_s, gain_db)
    found, of_all = (
        found_on(rule, ways, own, since_s),
        next_handovers(rule, ways, between_all(rule, ways), own, since_s),
    )
    np.testing.assert_array_equal(of_all.t_s, found.t_s)
    np.testing.assert_array_equal(of_all.station, found.station)
    for device in range(5):
        rows = np.flatnonzero(place == device)
        expected = replayed(
            rule,
            begin_s[rows].tolist(),
            (begin_s + length_s)[rows].tolist(),
            gain_db[:, rows],
            own[device],
            since_s[device],
        )
        assert found.t_s[device] == expected[0]
        if math.isfinite(expected[0]):
            assert found.station[device] == expected[1]
            (chord,) = rows[(begin_s[rows] <= expected[0]) & (expected[0] < (begin_s + length_s)[rows])]
            assert found.gain_from_db[device] == gain_db[own[device], chord]
            assert found.gain_to_db[device] == gain_db[expected[1], chord]


def handovers_per_metre(stations_m: np.ndarray, random: np.random.Generator) -> float:
    """Handovers by distance of 40 devices per metre, on straight ways of 1 km from uniform places of two hexagons."""
    count, way_m, zero = 40, 1000.0, np.zeros(40)
    angle = random.uniform(0, 2 * np.pi, count)
    x_m, y_m = APART_M * random.uniform(-0.5, 0.5, (2, count)) * np.array([[1.0], [math.sqrt(3.0)]])
    legs = Legs(zero, zero + way_m, x_m, y_m, np.cos(angle), np.sin(angle))
    chords = chords_of(legs, np.arange(count), zero, zero + way_m, 5.0)
    gain_db = -np.hypot(chords.x_m - stations_m[:, :1], chords.y_m - stations_m[:, 1:])
    station = gain_db[:, np.searchsorted(chords.place, np.arange(count))].argmax(axis=0)
    since_s, handovers = zero, 0
    while np.isfinite(since_s).any():
        ways = Ways(chords.place, chords.begin_s, chords.end_s, gain_db)
        found = found_on(EventA3(0.0, 0.0, 0.0), ways, station, since_s)
        station, since_s = found.station, found.t_s
        handovers += np.count_nonzero(np.isfinite(since_s))
    return handovers / (count * way_m)


def test_rates_of_handovers_are_those_of_the_borders_of_cells():
    """(2 / pi) borders per area: 4 / (pi D) a metre for hexagons D apart, 4 sqrt(l) / pi for Poisson-Voronoi cells."""
    random, along = np.random.default_rng(1), np.arange(-5, 6)
    i, j = (column.ravel() for column in np.meshgrid(along, along))
    hexagons = np.column_stack((APART_M * (i + j / 2), APART_M * math.sqrt(0.75) * j))
    hexagons = hexagons[np.hypot(*hexagons.T) < 2000]
    density, half_m = 1 / (math.sqrt(0.75) * APART_M**2), 2200.0
    fields = [random.uniform(-half_m, half_m, (random.poisson(density * 4 * half_m**2), 2)) for _ in range(12)]
    assert 4 * math.sqrt(density) / math.pi == pytest.approx(0.002736369862, abs=1e-12)
    assert 4 / (math.pi * APART_M) == pytest.approx(0.002546479089, abs=1e-12)
    assert math.pi * APART_M / (4 * 15.0) == pytest.approx(26.179938780, abs=1e-9)
    for layouts, expected in (([hexagons] * 6, 4 / (math.pi * APART_M)), (fields, 4 * math.sqrt(density) / math.pi)):
        # Ways in one field of stations are not independent, their means in several fields are.
        rates = np.array([handovers_per_metre(layout, random) for layout in layouts])
        error = rates.std(ddof=1) / math.sqrt(len(rates))
        assert abs(rates.mean() - expected) <= 3 * error
        assert error < 0.05 * expected
