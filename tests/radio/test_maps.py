"""Maps of shadowing and line of sight: Gudmundson's law, the same for whoever passes, and the limit of their size."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.base.errors import EdgesimError
from edgesim.radio.correlated_field import correlated_field, field_deviations, torus_size
from edgesim.radio.environment import Environment, load_environment
from edgesim.radio.maps import RadioMaps, draw_maps
from edgesim.radio.squares import Squares
from edgesim.streams import Streams

SIDE_M = 5.0
DISC = Squares.covering(SIDE_M, -250.0, 250.0, -250.0, 250.0)
CENTRE = np.array([[0.0, 0.0]])


def environment(name: str, **changes: object) -> Environment:
    loaded = load_environment(name)
    assert isinstance(loaded, Environment)
    return loaded.model_copy(update=changes)


def drawn(name: str = "fedteddi-macro", seed: int = 0, stations_m: np.ndarray = CENTRE, **others: float) -> RadioMaps:
    return draw_maps(environment(name), DISC, stations_m, 10.0, Streams(seed), **others)


def within_three_errors(samples: list[float], mean: float) -> None:
    assert abs(np.mean(samples) - mean) < 3 * np.std(samples) / math.sqrt(len(samples))


@pytest.mark.parametrize(("side_m", "distance_m"), [(5.0, 10.0), (5.0, 120.0), (20.0, 37.0)])
def test_the_covariance_that_is_drawn_is_right_up_to_the_edge_of_the_torus(side_m, distance_m):
    """The squared deviations, transformed back, are the covariance by lag; it is checked at every lag of the map."""
    squares = Squares.covering(side_m, 0.0, 30 * side_m, 0.0, 30 * side_m)
    deviations = field_deviations(squares, distance_m)
    covariance = np.fft.fft2(deviations**2).real
    lag = np.arange(squares.rows)
    expected = np.exp(-np.hypot(lag[:, None], lag) * side_m / distance_m)
    assert covariance[: squares.rows, : squares.columns] == pytest.approx(expected, abs=math.exp(-8.0))
    assert len(deviations) >= torus_size(squares, distance_m)


def test_a_torus_with_a_negative_eigenvalue_is_made_twice_as_large():
    squares = Squares.covering(1.0, 0.0, 27.5, 0.0, 27.5)
    assert torus_size(squares, 120.0) == 1024
    assert len(field_deviations(squares, 120.0)) == 2048


def test_the_numbers_of_a_map_are_these():
    """What libraries of other versions must give as well."""
    squares = Squares.covering(10.0, -5.0, 5.0, -5.0, 5.0)
    field = correlated_field("shadowing-map", Streams(7), squares, field_deviations(squares, 20.0))
    assert field.shape == (4, 4)
    # Rounded beyond the last bits of a transform.
    assert (np.round(field, 9) == field).all()
    # The transform as a sum over all frequencies.
    size = len(field_deviations(squares, 20.0))
    noise = Streams(7).normal("shadowing-map", np.arange(size)[:, None], np.arange(size), 2)
    weights = field_deviations(squares, 20.0) * (noise[..., 0] + 1j * noise[..., 1])
    frequency = np.arange(size)
    for row, column in ((0, 0), (2, 3)):
        y, x = squares.first_row + row, squares.first_column + column
        turns = np.exp(-2j * np.pi * (frequency[:, None] * y + frequency * x) / size)
        assert field[row, column] == pytest.approx((weights * turns).sum().real, abs=1e-9)


places = st.floats(-250.0, 250.0, allow_subnormal=False)


@given(places, places)
def test_a_place_has_the_square_that_begins_at_a_multiple_of_the_side(x_m, y_m):
    row, column = DISC.row_and_column(np.array([x_m]), np.array([y_m]))
    assert (DISC.first_row + row) * SIDE_M <= y_m < (DISC.first_row + row + 1) * SIDE_M
    assert (DISC.first_column + column) * SIDE_M <= x_m < (DISC.first_column + column + 1) * SIDE_M
    assert 1 <= row < DISC.rows - 1
    assert 1 <= column < DISC.columns - 1
    middle_x_m, middle_y_m = DISC.middles_m()
    assert abs(middle_x_m[0, column] - x_m) <= SIDE_M / 2
    assert abs(middle_y_m[row, 0] - y_m) <= SIDE_M / 2


def test_the_gain_is_the_law_at_the_place_and_the_shadowing_of_the_square():
    maps = drawn(seed=4)
    x_m, y_m = np.array([-100.0, -97.6, 0.3]), np.array([30.0, 31.0, -0.2])
    gain = maps.mean_power_gain(np.zeros(3, dtype=np.int64), x_m, y_m)
    away_m = np.maximum(np.hypot(x_m, y_m), 10.0)
    rows, columns = [57, 57, 50], [31, 31, 51]
    shadow_db = maps.shadowing_db[0, rows, columns]
    assert shadow_db[0] == shadow_db[1]
    expected_db = 128.1 + 37.6 * np.log10(away_m / 1000.0) + shadow_db
    assert 10 * np.log10(gain) == pytest.approx(-expected_db, abs=1e-9)
    assert maps.sees.all()


def test_the_deviation_is_that_of_the_environment_and_every_seed_and_station_has_its_own_map():
    stations_m = np.array([[0.0, 0.0], [200.0, 0.0]])
    maps = [drawn(seed=seed, stations_m=stations_m).shadowing_db for seed in range(15)]
    within_three_errors([(one[0] ** 2).mean() for one in maps], 64.0)
    within_three_errors([(one[0] * one[1]).mean() for one in maps], 0.0)
    within_three_errors([(one[0] * another[0]).mean() for one, another in pairwise(maps)], 0.0)
    alone = drawn(seed=3).shadowing_db
    assert (alone[0] == maps[3][0]).all()


@pytest.mark.parametrize("between", [0.5, 1.0])
def test_stations_share_a_part_of_their_shadowing(between):
    stations_m = np.array([[0.0, 0.0], [200.0, 0.0]])
    maps = [drawn(seed=seed, stations_m=stations_m, between_stations=between).shadowing_db for seed in range(15)]
    within_three_errors([(one[0] ** 2).mean() for one in maps], 64.0)
    within_three_errors([(one[0] * one[1]).mean() for one in maps], 64.0 * between)


def test_a_square_is_in_sight_with_the_probability_of_the_law_and_has_the_deviation_of_its_branch():
    maps = [drawn("uma", seed=seed) for seed in range(25)]
    middle_x_m, middle_y_m = DISC.middles_m()
    chance = maps[0].law.los_probability(np.hypot(middle_x_m, middle_y_m))
    for rows in (slice(0, 25), slice(25, 75), slice(75, 103)):
        within_three_errors([one.sees[0, rows].mean() for one in maps], chance[rows].mean())
    for sees, std_db in ((True, 4.0), (False, 6.0)):
        within_three_errors([(one.shadowing_db[0][one.sees[0] == sees] ** 2).mean() for one in maps], std_db**2)
    # Line of sight changes over 50 m: neighbours nearly agree, squares far apart do not.
    agree = [(one.sees[0, 1:] == one.sees[0, :-1]).mean() for one in maps]
    apart = [(one.sees[0, 60:] == one.sees[0, :-60]).mean() for one in maps]
    assert np.mean(agree) > 0.85
    assert np.mean(apart) < np.mean(agree) - 0.1
    x_m, y_m = np.array([150.0, -40.0]), np.array([120.0, 180.0])
    row, column = DISC.row_and_column(x_m, y_m)
    sees = maps[0].sees[0, row, column]
    loss_db = maps[0].law.loss_db(np.hypot(x_m, y_m), sees) + maps[0].shadowing_db[0, row, column]
    assert 10 * np.log10(maps[0].mean_power_gain(np.array([0, 0]), x_m, y_m)) == pytest.approx(-loss_db)


@pytest.mark.parametrize(
    ("name", "los_m", "nlos_m", "sight_m"),
    [("uma", 37.0, 50.0, 50.0), ("umi-street-canyon", 10.0, 13.0, 50.0), ("inh-office", 10.0, 6.0, 10.0)],
)
def test_laws_have_the_distances_of_their_tables(name, los_m, nlos_m, sight_m):
    law = environment(name).path_loss
    assert np.array_equal(law.decorrelation_m([True, False]), [los_m, nlos_m])
    assert law.sight_decorrelation_m == sight_m


def test_an_environment_states_the_distance_of_a_law_of_one_branch():
    assert environment("fedteddi-macro").decorrelation_m == 50.0
    plain = environment("fedteddi-macro").model_copy(update={"decorrelation_m": None})
    with pytest.raises(
        EdgesimError, match=r"^radio\.shadowing = 'map' needs decorrelation_m in the environment 'fedteddi-macro'"
    ):
        draw_maps(plain, DISC, CENTRE, 10.0, Streams(0))
    assert not drawn("free-space").shadowing_db.any()
    with pytest.raises(
        ValueError, match="decorrelation_m: this law has a distance for each branch; set los_decorrelation_m"
    ):
        Environment.model_validate(environment("uma").model_copy(update={"decorrelation_m": 3.0}).__dict__)


@pytest.mark.parametrize(
    ("radius_m", "stations", "fits"), [(2500.0, 30, "10"), (8000.0, 1, "5"), (250_000.0, 1, "200"), (9e6, 1, None)]
)
def test_maps_of_too_many_squares_name_a_grid_that_fits(radius_m, stations, fits):
    squares = Squares.covering(1.0, -radius_m, radius_m, -radius_m, radius_m)
    remedy = f"radio.grid_m = {fits} fits" if fits else "no grid is wide enough: .*per_run'"
    with pytest.raises(
        EdgesimError, match=rf"^radio.grid_m \(1\) makes maps of [\d,]+ squares, more than 16,777,216; {remedy}$"
    ):
        draw_maps(environment("fedteddi-macro"), squares, np.zeros((stations, 2)), 10.0, Streams(0))


def test_each_station_is_in_sight_as_often_as_its_own_distance_says():
    stations_m = np.array([[0.0, 0.0], [-240.0, 0.0]])
    seen = np.mean([drawn("uma", seed=seed, stations_m=stations_m).sees for seed in range(12)], axis=0)
    x_m, y_m = DISC.middles_m()
    near = [np.hypot(x_m - at[0], y_m - at[1]) < 60.0 for at in stations_m]
    for station, here in enumerate(near):
        assert seen[station][here].mean() > seen[station][near[1 - station]].mean() + 0.3
