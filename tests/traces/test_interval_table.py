"""An interval table where its recording is empty, repeated or at its end; `test_availability_oracle` asks the rest."""

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.traces.interval_table import AfterEnd, IntervalTable
from edgesim.traces.intervals import Intervals

Rows = list[tuple[int, float, float]]
DEVICES = 5


def table(
    rows: Rows, after_end: AfterEnd = "absent", lengths_s: list[float] | None = None, device_count: int = DEVICES
) -> IntervalTable:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    device, start_s, end_s = (np.array(column) for column in columns)
    lengths = np.array(lengths_s or [70.0] * device_count)
    return IntervalTable(
        Intervals(device.astype(np.int64), start_s.astype(float), end_s.astype(float), lengths), after_end
    )


def test_repeated_recordings_of_different_length_may_have_everybody_at_once_but_those_never_there():
    asked = table([(0, 0.0, 1.0), (1, 5.0, 6.0)], "wrap", [20.0, 30.0, 40.0], 3)
    assert asked.ever_has(2)
    assert not asked.ever_has(3)


def test_a_table_of_nobody_is_never_available():
    for asked in (table([]), table([], "wrap"), table([], "wrap", [1.0, 2.0, 3.0, 4.0, 5.0])):
        assert not asked.available(np.arange(DEVICES), 0.0).any()
        assert asked.next_time_with(1, 0.0) == np.inf


def test_a_run_of_known_end_is_refused_at_once_by_a_shorter_trace():
    asked = table([(0, 0.0, 5.0)], "raise")
    with pytest.raises(EdgesimError, match=r"ends at 70 s, but 70\.5 s \(stop_at_s\) .*after_end = \"wrap\""):
        asked.for_run_until(70.5)
    # Without a known end it is the clock that stops there; looks ahead find nobody.
    assert asked.for_run_until(None).known_until_s == 70.0
    covered = asked.for_run_until(70.0)
    assert covered.known_until_s == np.inf
    assert covered.available_until(np.array([0]), 2.0, 90.0).tolist() == [5.0]
    assert covered.next_time_with(1, 71.0) == np.inf
    wrapped = table([(0, 0.0, 5.0)], "wrap")
    assert wrapped.for_run_until(1e9) is wrapped


def test_recordings_of_different_length_that_do_not_meet_in_sight_never_do():
    # Both cycles are whole minutes: device 0 is there at even seconds only, device 1 at odd ones.
    rows = [(0, float(2 * k), 2.0 * k + 1) for k in range(10)] + [(1, 2.0 * k + 1, 2.0 * k + 2) for k in range(20)]
    asked = table(rows, "wrap", [20.0, 40.0], 2)
    assert asked.next_time_with(1, 7.0) == 7.0
    assert asked.next_time_with(2, 3.5) == np.inf


def test_a_stay_too_short_for_the_clock_to_show_is_passed_over():
    # At 1e9 s the clock goes in steps of 1.2e-7 s; stays of 1e-9 s at 5.3 s of every 10 lie between two of them.
    rows = [(0, 5.3, 5.3 + 1e-9), (1, 5.3, 5.3 + 1e-9), (1, 7.0, 8.0)]
    for lengths_s in ([10.0, 10.0], [10.0, 20.0]):
        asked, ids = table(rows, "wrap", lengths_s, 2), np.arange(2)
        assert asked.next_available(ids, 1e9).tolist() == [np.inf, 1e9 + 7.0]
        assert asked.next_time_with(1, 1e9) == 1e9 + 7.0
        assert asked.next_time_with(2, 1e9) == np.inf
