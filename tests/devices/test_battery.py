"""Batteries against hand-worked lines and the closed form of a reservoir with a lid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.config_file import parse
from edgesim.devices.battery import Batteries, make_batteries
from edgesim.streams import Streams


def one(charge_j: float, capacity_j: float = 10.0, recharge_w: float = 1.0, reserve_j: float = 2.0) -> Batteries:
    return Batteries(
        capacity_j, reserve_j, recharge_w, np.array([charge_j]), since_s=np.array([5.0]), draw_w=np.array([0.0])
    )


def test_a_resting_device_charges_at_the_chargers_power_until_it_is_full():
    battery = one(4.0)
    assert [float(battery.charge_at(0, t_s)) for t_s in (5.0, 7.0, 11.0, 50.0)] == [4.0, 6.0, 10.0, 10.0]


def test_a_device_at_work_drains_at_the_difference_and_says_when_it_is_empty():
    battery = one(4.0)
    assert battery.draw(0, 3.0, 6.0) == 6.0 + 5.0 / 2.0
    assert float(battery.charge_at(0, 7.0)) == 3.0
    assert float(battery.charge_at(0, 8.5)) == 0.0
    assert battery.draw(0, 0.0, 7.5) == np.inf
    assert float(battery.charge_at(0, 8.5)) == 3.0


def test_a_device_that_draws_no_more_than_the_charger_gives_never_runs_empty():
    assert one(0.0).draw(0, 1.0, 5.0) == np.inf


def test_devices_are_ready_when_their_reserve_is_back_or_since_they_had_it():
    batteries = Batteries(10.0, 2.0, 0.5, np.array([1.0, 2.0, 9.0]), np.array([5.0, 6.0, 7.0]), np.zeros(3))
    assert [span_s.tolist() for span_s in batteries.ready_s()] == [[7.0, 6.0, 7.0], [np.inf] * 3]
    batteries.recharge_w = 0.0
    assert [span_s.tolist() for span_s in batteries.ready_s()] == [[np.inf, 6.0, 7.0], [np.inf] * 3]
    # At rest 0.5 W more than the charger gives: 9 J are 2 J after 14 s.
    batteries.idle_w = 0.5
    assert [span_s.tolist() for span_s in batteries.ready_s()] == [[np.inf, 6.0, 7.0], [np.inf, 6.0, 21.0]]
    assert [batteries.ready(np.arange(3), t_s).tolist()[1:] for t_s in (6.0, 7.0, 21.0, 21.5)] == [
        [True, False], [False, True], [False, True], [False, False],
    ]  # fmt: skip


def test_idling_takes_its_part_of_what_the_charger_gives():
    batteries = Batteries(10.0, 2.0, 0.5, np.array([1.0]), np.array([5.0]), np.zeros(1), idle_w=0.3)
    assert batteries.ready_s()[0].tolist() == pytest.approx([10.0])
    assert float(batteries.charge_at(0, 10.0)) == pytest.approx(2.0)
    # 1 J, 0.2 W in and 1 W out: empty after 1.25 s.
    assert batteries.draw(0, 1.0, 5.0) == pytest.approx(6.25)


def test_drawn_charges_are_uniform_and_do_not_depend_on_who_else_there_is():
    def start(count: int) -> np.ndarray:
        config = parse({"devices": {"count": count, "battery_j": 50.0, "battery_start": "drawn"}}, "x").resolved()
        made = make_batteries(config.devices, Streams(3))
        assert made is not None
        return made.charge_j

    assert start(10).tolist() == start(4000)[:10].tolist()
    assert np.mean(start(4000)) == pytest.approx(25.0, abs=4 * 50 / np.sqrt(12 * 4000))
    assert (start(4000) < 50.0).all()


PHASES = st.lists(st.tuples(st.floats(0, 20), st.floats(0, 5)), max_size=12)


@given(PHASES, st.floats(0.1, 50), st.floats(0, 1), st.floats(0, 3))
def test_charge_stays_between_empty_and_full_and_the_balance_adds_up(phases, capacity_j, start, recharge_w):
    battery = one(start * capacity_j, capacity_j, recharge_w)
    now_s, spent_j = 5.0, 0.0
    # What the charge would be without a lid, at the ends of the phases.
    unbounded = [start * capacity_j]
    for length_s, power_w in phases:
        end_s = min(now_s + length_s, battery.draw(0, power_w, now_s))
        spent_j += power_w * (end_s - now_s)
        now_s = end_s
        unbounded.append(start * capacity_j + recharge_w * (now_s - 5.0) - spent_j)
        battery.draw(0, 0.0, now_s)
        assert 0 <= battery.charge_j[0] <= capacity_j
    # What ran over (Skorokhod's reflection at the lid): how far the charge without a lid ever got above it.
    spilled_j = max(0.0, max(unbounded) - capacity_j)
    recharged_j = recharge_w * (now_s - 5.0) - spilled_j
    scale_j = capacity_j + spent_j + recharge_w * now_s
    assert battery.charge_j[0] == pytest.approx(start * capacity_j + recharged_j - spent_j, abs=1e-12 * scale_j)
