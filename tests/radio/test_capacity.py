import numpy as np
import pytest
from refusals import in_one_line

from edgesim.radio.capacity import CapacityTables, one_capacity_table


def table(t_s: list[float], bps: list[float], until_s: float, wraps: bool = False) -> CapacityTables:
    return one_capacity_table("link.csv", np.asarray(t_s, float), np.asarray(bps, float), until_s, wraps)


# 10 bit/s for 2 s, nothing for 3 s, 40 bit/s for 1 s: 60 bits in 6 s.
STEPS = ([0.0, 2.0, 5.0], [10.0, 0.0, 40.0])
ONCE, AGAIN, FOREVER = table(*STEPS, 6.0), table(*STEPS, 6.0, wraps=True), table(*STEPS, np.inf)


def test_bits_of_a_table_worked_by_hand():
    assert ONCE.bits_between(0, 0.0, 6.0) == 60.0
    assert ONCE.bits_between(0, [0.5, 1.0, 3.0], [1.5, 5.5, 4.0]).tolist() == [10.0, 30.0, 0.0]
    assert AGAIN.bits_between(0, [5.0, 0.0, 7.0], [7.0, 60.0, 18.5]).tolist() == [50.0, 600.0, 115.0]
    assert FOREVER.bits_between(0, 5.0, 105.0) == 4000.0


def test_ends_of_a_table_worked_by_hand():
    # 15 bits from 0 s: 1.5 s. 20 bits end with the first row; 21 wait for the gap to pass; 60 end with the table.
    assert ONCE.end_s(0, [15.0, 20.0, 21.0, 60.0], 0.0).tolist() == [1.5, 2.0, 5.025, 6.0]
    # From 5 s on: 40 bits in the last second, 20 in the next two, then a gap of 3 s.
    assert AGAIN.end_s(0, [40.0, 50.0, 60.0, 61.0], 5.0).tolist() == [6.0, 7.0, 8.0, 11.025]
    assert AGAIN.end_s(0, 6000.0, 0.0) == 600.0
    assert FOREVER.end_s(0, 4000.0, 5.0) == 105.0


def test_an_upload_of_nothing_ends_as_it_starts_even_in_a_gap():
    assert AGAIN.end_s(0, 0.0, [0.0, 3.0, 6.0, 9.5]).tolist() == [0.0, 3.0, 6.0, 9.5]
    assert table([0.0, 1.0], [0.0, 10.0], 2.0, wraps=True).end_s(0, 0.0, [0.0, 0.5]).tolist() == [0.0, 0.5]


def test_where_nothing_flows_for_ever_an_upload_never_ends():
    dry = table([0.0, 1.0], [8.0, 0.0], np.inf)
    assert dry.end_s(0, [8.0, 8.5], 0.0).tolist() == [1.0, np.inf]
    assert dry.bits_between(0, 0.0, 1e6) == 8.0


@pytest.mark.parametrize("ask", [lambda: ONCE.bits_between(0, 0.0, 6.1), lambda: ONCE.end_s(0, 61.0, 0.0)])
def test_beyond_its_end_a_table_that_neither_wraps_nor_holds_is_not_asked(ask):
    with in_one_line(r"link.csv: the capacity is known up to 6 s.*after_end = \"wrap\""):
        ask()  # type: ignore[operator]


def test_a_run_plans_beyond_the_end_as_though_nothing_were_carried_there():
    record = one_capacity_table("link.csv", np.array([0.0, 2.0]), np.array([1e6, 3e6]), 6.0, wraps=False)
    for stop_at_s, known_until_s in ((None, 6.0), (6.0, np.inf)):
        table = record.for_run_until(stop_at_s)
        assert table.bits_between(0, 1.0, [6.0, 7.0, 1e9]).tolist() == [13e6] * 3
        assert table.bits_between(0, 8.0, 9.0) == 0.0
        assert table.end_s(0, [13e6, 13.1e6, 0.0], [1.0, 1.0, 7.0]).tolist() == [6.0, np.inf, 7.0]
        assert table.known_until_s(0) == known_until_s
    record.for_run_until(None).need_known(0, 5.9)
    with in_one_line(r"link\.csv: the capacity is known up to 6 s, but needed later"):
        record.for_run_until(None).need_known(0, 6.0)
    with in_one_line(r"link\.csv: the capacity is known up to 6 s, but needed up to 6\.5 s \(stop_at_s\)"):
        record.for_run_until(6.5)
