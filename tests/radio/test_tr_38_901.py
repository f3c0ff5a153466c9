"""3GPP TR 38.901 tables 7.4.1-1 and 7.4.2-1: worked numbers at 3.5 GHz with the report's own heights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.radio.laws.inh_office import IndoorOffice
from edgesim.radio.laws.uma import UrbanMacro
from edgesim.radio.laws.umi_street_canyon import UrbanMicroStreetCanyon

UMA = UrbanMacro(carrier_hz=3.5e9)
UMI = UrbanMicroStreetCanyon(carrier_hz=3.5e9)
INH = IndoorOffice(carrier_hz=3.5e9)
OUTDOORS = (UMA, UMI)

carriers = st.floats(0.5e9, 100e9)


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("law", "distance_m", "los_db", "nlos_db", "probability"),
    [
        (UMA, 250.0, 91.6781, 118.2075, 0.0895),
        (UMA, 800.0, 105.5328, 137.8814, 0.0225),
        (UMI, 100.0, 85.3142, 104.6438, 0.2310),
        (UMI, 300.0, 98.2386, 121.4372, 0.0602),
        (INH, 20.0, 65.8266, 80.7595, 0.2115),
    ],
)
def test_worked_losses_and_chances_of_sight(law, distance_m, los_db, nlos_db, probability):
    assert law.loss_db(distance_m, True) == pytest.approx(los_db, abs=5e-5)
    assert law.loss_db(distance_m, False) == pytest.approx(nlos_db, abs=5e-5)
    assert law.los_probability(distance_m) == pytest.approx(probability, abs=5e-5)


def test_worked_breakpoints():
    assert UMA.breakpoint_m == pytest.approx(560.39, abs=5e-3)
    assert UMI.breakpoint_m == pytest.approx(210.15, abs=5e-3)


def test_near_the_station_sight_is_certain_and_the_chance_is_continuous_where_it_begins_to_fall():
    for law in OUTDOORS:
        assert law.los_probability([0.0, 1.0, 18.0]).tolist() == [1.0, 1.0, 1.0]
        assert law.los_probability(18.0 + 1e-9) == pytest.approx(1.0, abs=1e-9)
    assert INH.los_probability([0.0, 1.2]).tolist() == [1.0, 1.0]
    assert INH.los_probability(1.2 + 1e-9) == pytest.approx(1.0, abs=1e-9)
    # exp(-5.3 / 4.7) below 6.5 m and 0.32 from there on: the report's own step.
    assert INH.los_probability(np.nextafter(6.5, 0)) == pytest.approx(0.323790, abs=1e-6)
    assert INH.los_probability(6.5) == pytest.approx(0.32, abs=1e-12)


def test_the_shadowing_deviations_are_those_of_the_table():
    both = np.array([True, False])
    assert UMA.shadowing_std_db(both).tolist() == [4.0, 6.0]
    assert UMI.shadowing_std_db(both).tolist() == [4.0, 7.82]
    assert INH.shadowing_std_db(both).tolist() == [3.0, 8.03]


def test_what_stands_in_the_way_never_helps():
    # Near an office's station the branch behind obstacles would lose less than that in sight.
    for law in (UMA, UMI, INH):
        in_sight_db, behind_db = law.loss_db([1.0, 2.0, 5.0], True), law.loss_db([1.0, 2.0, 5.0], False)
        assert (behind_db >= in_sight_db).all()
    assert INH.loss_db(1.0, False) == INH.loss_db(1.0, True)


@given(st.sampled_from([UrbanMacro, UrbanMicroStreetCanyon]), carriers, st.floats(2.0, 50.0), st.floats(1.5, 13.0))
def test_the_two_slopes_meet_at_the_breakpoint(kind, carrier_hz, station_height_m, device_height_m):
    law = kind(carrier_hz=carrier_hz, station_height_m=station_height_m, device_height_m=device_height_m)  # type: ignore[call-arg]
    before_db, behind_db = law.loss_db([law.breakpoint_m * (1 - 1e-9), law.breakpoint_m * (1 + 1e-9)], True)
    assert behind_db == pytest.approx(before_db, abs=1e-6)


@pytest.mark.parametrize(("law", "slope_db"), [(UMA, 22.0), (UMI, 21.0)])
def test_ten_times_the_direct_distance_costs_the_slope_of_its_side_of_the_breakpoint(law, slope_db):
    height_m = law.station_height_m - law.device_height_m

    def at_direct_db(direct_m: float) -> float:
        return float(law.loss_db(np.sqrt(direct_m**2 - height_m**2), True))

    assert at_direct_db(200.0) - at_direct_db(50.0) == pytest.approx(slope_db * np.log10(4.0), abs=1e-9)
    assert at_direct_db(10_000.0) - at_direct_db(1000.0) == pytest.approx(40.0, abs=1e-9)


def test_ten_times_the_carrier_costs_what_the_table_says():
    higher = {"carrier_hz": 35e9}
    for law, los_db, nlos_db in ((UMA, 20.0, 20.0), (UMI, 20.0, 21.3), (INH, 20.0, 24.9)):
        at_35_ghz = law.model_copy(update=higher)
        # 150 m lies before every breakpoint, which moves with the carrier.
        assert at_35_ghz.loss_db(150.0, True) - law.loss_db(150.0, True) == pytest.approx(los_db, abs=1e-9)
        assert at_35_ghz.loss_db(150.0, False) - law.loss_db(150.0, False) == pytest.approx(nlos_db, abs=1e-9)


def test_a_higher_device_loses_less_out_of_sight():
    # 0.6 and 0.3 dB per metre above 1.5 m, besides the shorter way, which 10 km hides.
    for law, per_metre_db in ((UMA, 0.6), (UMI, 0.3)):
        higher = law.model_copy(update={"device_height_m": 11.5})
        gained_db = law.loss_db(10_000.0, False) - higher.loss_db(10_000.0, False)
        assert gained_db == pytest.approx(10 * per_metre_db, abs=1e-3)
