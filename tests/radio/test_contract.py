"""What every path-loss law and every allocator of the registries must keep to; their numbers have their own tests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.base.errors import EdgesimError
from edgesim.radio.allocators import ALLOCATORS, Request, Sizes
from edgesim.radio.allocators.equal_finish import allocate as equal_finish
from edgesim.radio.bandwidth import min_bandwidth_hz
from edgesim.radio.environment import Environment, load_environment
from edgesim.radio.laws import LAWS
from edgesim.radio.laws.law import Law
from edgesim.radio.link import ShannonLink

carriers = st.fixed_dictionaries({"carrier_hz": st.floats(0.5e9, 100e9)})
PARAMETERS: dict[str, st.SearchStrategy[dict[str, float]]] = {
    "free-space": st.fixed_dictionaries(
        {
            "carrier_hz": st.floats(1e6, 1e12),
            "station_height_m": st.floats(0, 100),
            "device_height_m": st.floats(0, 100),
        }
    ),
    "log-distance": st.fixed_dictionaries(
        {"loss_at_1_km_db": st.floats(0, 400), "slope_db_per_decade": st.floats(1, 200)}
    ),
    "inh-office": carriers,
    "uma": carriers,
    "umi-street-canyon": carriers,
}
distances = st.lists(st.floats(1.0, 5000.0), min_size=2, max_size=8).map(np.array)

laws = pytest.mark.parametrize("name", LAWS)


def law_of(name: str, data: st.DataObject) -> Law:
    return LAWS[name].model_validate(data.draw(PARAMETERS[name]))


@laws
@settings(max_examples=20)
@given(st.data())
def test_farther_is_never_louder_nor_more_often_in_sight_and_an_obstacle_never_helps(name, data):
    law, distance_m = law_of(name, data), np.geomspace(1.0, 5000.0, 500)
    in_sight_db, behind_db = law.loss_db(distance_m, True), law.loss_db(distance_m, False)
    for loss_db in (in_sight_db, behind_db):
        assert np.isfinite(loss_db).all()
        assert (np.diff(loss_db) >= -1e-9).all()
    assert (behind_db >= in_sight_db).all()
    chance = law.los_probability(distance_m)
    assert (np.diff(chance) <= 0).all()
    assert ((chance >= 0) & (chance <= 1)).all()


@laws
@settings(max_examples=10)
@given(st.data(), distances)
def test_each_device_has_the_loss_of_its_own_distance_and_sight(name, data, distance_m):
    law, count = law_of(name, data), len(distance_m)
    los = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    together = [law.loss_db(distance_m, los), law.los_probability(distance_m), law.beyond_fit(distance_m)]
    alone = [
        [law.loss_db(float(d), bool(sees)) for d, sees in zip(distance_m, los, strict=True)],
        [law.los_probability(float(d)) for d in distance_m],
        [law.beyond_fit(float(d)) for d in distance_m],
    ]
    for column, one_by_one in zip(together, alone, strict=True):
        np.testing.assert_allclose(column, np.array(one_by_one), rtol=1e-12, atol=1e-9)
        assert column.shape == (count,)
    assert law.beyond_fit(distance_m).dtype == bool
    deviation_db = law.shadowing_std_db(los)
    assert deviation_db is None or (deviation_db.shape == (count,) and (deviation_db >= 0).all())
    # Devices far away are always in sight where sight makes no difference, and nowhere else.
    assert (law.los_probability(np.array([4000.0]))[0] == 1) == (
        law.loss_db(4000.0, True) == law.loss_db(4000.0, False)
    )


HEAD = 'name = "x"\nsource = "y"\nshadowing = "per_run"\nnoise_figure_db = 0.0\n'
GIVEN = {
    "free-space": {"carrier_hz": 1e9, "station_height_m": 10.0, "device_height_m": 1.5},
    "log-distance": {"loss_at_1_km_db": 128.1, "slope_db_per_decade": 37.6},
} | {name: {"carrier_hz": 1e9} for name in ("inh-office", "uma", "umi-street-canyon")}


def load(path: Path, name: str, keys: dict[str, Any]) -> Environment:
    own_deviation = "los_shadowing_std_db" in LAWS[name].model_fields
    rows = "".join(f"{key} = {value}\n" for key, value in keys.items())
    path.write_text(f'{HEAD}{"" if own_deviation else "shadowing_std_db = 8.0"}\n[path_loss]\nlaw = "{name}"\n{rows}')
    found = load_environment(str(path))
    assert isinstance(found, Environment)
    return found


@laws
def test_a_parameter_that_is_wrong_missing_or_unknown_is_one_line_that_names_file_and_key(name, tmp_path):
    path, given = tmp_path / "air.toml", GIVEN[name]
    assert isinstance(load(path, name, given).path_loss, LAWS[name])
    bad = [
        (key, given | {key: value}) for key in LAWS[name].model_fields for value in ("[]", '"x"', "-1e9", "inf", "nan")
    ]
    bad += [(key, {other: value for other, value in given.items() if other != key}) for key in given]
    bad += [(f"{key}_", given | {f"{key}_": 1.0}) for key in LAWS[name].model_fields] + [("odd", given | {"odd": 1})]
    for key, keys in bad:
        with pytest.raises(EdgesimError) as refusal:
            load(path, name, keys)
        message = str(refusal.value)
        assert message.startswith(f"{path}: path_loss: ")
        assert key in message
        assert "\n" not in message
        assert not key.endswith("_") or f"did you mean {key[:-1]!r}" in message


ALL_ALLOCATORS = {name: kind().allocate for name, kind in ALLOCATORS.items()} | {"equal_finish": equal_finish}
allocators = pytest.mark.parametrize("allocate", ALL_ALLOCATORS.values(), ids=ALL_ALLOCATORS)

EVEN = {name: allocate for name, allocate in ALL_ALLOCATORS.items() if name != "least_error"}
even_allocators = pytest.mark.parametrize("allocate", EVEN.values(), ids=EVEN)
"""All but those whose shares are steps: of several equal uploads the first ones may get one more."""

NOISE_W_PER_HZ = 1e-20
DEADLINE_S = 2.0


def request_of(rows: list[tuple[float, float, float]], band_hz: float) -> Request:
    """Uploads of so many bits, begun at an instant, on power over noise density."""
    bits, ready_s, snr_hz = (np.array(column) for column in zip(*rows, strict=True))
    rx_power_w = snr_hz * NOISE_W_PER_HZ
    need_hz = min_bandwidth_hz(bits, DEADLINE_S - ready_s, rx_power_w, NOISE_W_PER_HZ)
    link = ShannonLink(NOISE_W_PER_HZ)
    sizes = Sizes(lambda s: bits * (2 * s).bit_length() / 2, np.ones(len(bits)))
    return Request(np.arange(len(bits)), bits, ready_s, rx_power_w, need_hz, link, 0.0, band_hz, DEADLINE_S, sizes)


uploads = st.lists(st.tuples(st.floats(1e4, 1e7), st.floats(0, 2.5), st.floats(1e6, 1e9)), min_size=1, max_size=10)
"""Some of them can never be in time."""


@allocators
@settings(max_examples=60)
@given(uploads, st.floats(1e5, 1e8))
def test_everyone_gets_something_and_all_together_no_more_than_the_band(allocate, rows, band_hz):
    request = request_of(rows, band_hz)
    before = [column.copy() for column in vars(request).values() if isinstance(column, np.ndarray)]
    bandwidth_hz = allocate(request)
    assert bandwidth_hz.shape == (len(rows),)
    assert np.isfinite(bandwidth_hz).all()
    assert (bandwidth_hz > 0).all()
    assert bandwidth_hz.sum() <= band_hz * (1 + 1e-9)
    after = [column for column in vars(request).values() if isinstance(column, np.ndarray)]
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))


@even_allocators
@settings(max_examples=25)
@given(uploads, st.floats(1e5, 1e8), st.randoms(use_true_random=False))
def test_the_order_of_the_uploads_changes_nobodys_share(allocate, rows, band_hz, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    shares_hz = allocate(request_of(rows, band_hz))
    shuffled_hz = allocate(request_of([rows[row] for row in order], band_hz))
    np.testing.assert_allclose(shuffled_hz, shares_hz[order], rtol=1e-6)


@even_allocators
@pytest.mark.parametrize("band_hz", [1e5, 1e6, 1e8])
def test_equal_uploads_get_equal_shares_and_a_lone_one_a_share_that_grows_with_the_band(allocate, band_hz):
    shares_hz = allocate(request_of([(1e6, 0.3, 1e8)] * 4, band_hz))
    np.testing.assert_allclose(shares_hz, shares_hz[0], rtol=1e-12)
    request = request_of([(1e6, 0.3, 1e8)], band_hz)
    assert allocate(request)[0] <= allocate(replace(request, bandwidth_hz=3 * band_hz))[0]
