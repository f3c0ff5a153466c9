"""Who is without work and there, against asking everybody at every instant."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgesim.devices.battery import Batteries
from edgesim.engine.idle_devices import IdleDevices
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import joined

DEVICES = 4
periods = st.lists(
    st.tuples(st.integers(0, DEVICES - 1), st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=12
)
steps = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 7.0]), st.integers(0, DEVICES)), min_size=1, max_size=30)


def nobody_works(rows, batteries=None, wraps="wrap"):
    device, start, end = np.array(rows, dtype=float).reshape(-1, 3).T
    table = IntervalTable(joined(device.astype(np.int64), start, end, 40.0, DEVICES), wraps)
    return table, IdleDevices(table, batteries, np.ones(DEVICES, dtype=bool))


@given(periods, steps)
def test_those_there_and_the_next_to_come_are_those_of_a_look_at_everybody(rows, steps):
    table, idle = nobody_works(rows)
    t_s, at_work = 0.0, set()
    for wait_s, device in steps:
        t_s += wait_s
        rest = np.array([k for k in range(DEVICES) if k not in at_work], dtype=np.int64)
        there = table.available(rest, t_s)
        assert idle.there(t_s).tolist() == rest[there].tolist()
        if device in at_work:
            at_work.remove(device)
            idle.end(device)
        elif device in rest[there]:
            at_work.add(device)
            idle.begin(device)
        else:
            soonest_s = table.next_available(rest[~there], t_s).min(initial=np.inf)
            assert idle.next_back_s(t_s) == soonest_s


def test_a_device_is_back_when_it_is_both_available_and_charged():
    # Device 0 has its reserve of 8 J after 3 s, when it is away until 6 s; device 1 never leaves and is charged at 8 s.
    batteries = Batteries(10.0, 8.0, 1.0, np.array([5.0, 0.0, 9.0, 9.0]), np.zeros(4), np.zeros(4))
    _, idle = nobody_works([(0, 0, 2), (0, 6, 9), (1, 0, 40)], batteries, "absent")
    assert idle.there(0.0).tolist() == []
    assert idle.next_back_s(0.0) == 6.0
    assert idle.there(6.0).tolist() == [0]
    assert idle.next_back_s(6.0) == 8.0
    assert [idle.there(t_s).tolist() for t_s in (7.9, 8.0, 9.0)] == [[0], [0, 1], [1]]


def test_a_device_whose_battery_sinks_below_its_reserve_before_it_is_back_never_is():
    # Idling takes 1 W and nothing charges: device 0 has its 5 J until 4 s, device 1 until 8 s.
    batteries = Batteries(10.0, 5.0, 0.0, np.array([9.0, 13.0, 0.0, 0.0]), np.zeros(4), np.zeros(4), 1.0)
    _, idle = nobody_works([(0, 0, 2), (0, 5, 9), (1, 7, 40)], batteries, "absent")
    assert idle.there(1.0).tolist() == [0]
    assert idle.there(2.0).tolist() == []
    assert idle.next_back_s(2.0) == 7.0
    assert [idle.there(t_s).tolist() for t_s in (6.0, 8.0, 8.1)] == [[], [1], []]
