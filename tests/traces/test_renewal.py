"""Sessions drawn in windows of time; `test_availability_oracle` asks them as it does tables."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interval_rows import rows

from edgesim.config import AvailabilityConfig
from edgesim.streams import Streams
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import joined
from edgesim.traces.models import make_availability, renewal
from edgesim.traces.models.options import DAY_S
from edgesim.traces.models.renewal import Renewal

DEVICES = 12
OPTIONS: dict[str, dict[str, float]] = {
    "as it comes": {"length_s": 3 * DAY_S},
    "to no whole second": {"length_s": 30_000.7, "sessions_per_week": 500.0},
    "nearly always there": {"length_s": 40_000.0, "online_share": 0.95, "sessions_per_week": 500.0},
}


def drawn_on_demand(streams: Streams, devices: int = DEVICES, **options: Any) -> IntervalTable:
    made = make_availability(AvailabilityConfig(model="renewal", **options), devices, streams)
    assert isinstance(made, IntervalTable)
    return made


@pytest.mark.parametrize("name", OPTIONS)
def test_windows_of_time_laid_end_to_end_are_the_whole_time(name, monkeypatch):
    law = Renewal.model_validate(OPTIONS[name])
    whole = law.intervals(DEVICES, Streams(3))
    # A few devices at once.
    monkeypatch.setattr(renewal, "_AT_ONCE", 5)
    edges_s = np.append(np.unique(np.floor(np.linspace(0, law.length_s, 20)[:-1])), law.length_s)
    parts = list(law.windows(DEVICES, Streams(3), edges_s))
    device, start_s, end_s = (np.concatenate([getattr(part, column) for part in parts])
                              for column in ("device", "start_s", "end_s"))  # fmt: skip
    assert rows(joined(device, start_s, end_s, law.length_s, DEVICES)) == rows(whole)


class Counted(Streams):
    """Streams that count the sessions drawn."""

    sessions = 0

    def normal(self, name: str, *arguments: Any, **named: Any) -> Any:
        draws = super().normal(name, *arguments, **named)
        self.sessions += draws.size // 2 if name == "availability" else 0
        return draws


def test_what_nobody_asks_for_is_not_drawn():
    devices = 4000
    everyone = np.arange(devices)
    week, streams = Counted(0), Counted(0)
    Renewal().intervals(devices, week)
    asked = drawn_on_demand(streams, devices)
    assert streams.sessions == 0
    asked.available(everyone, 3600.0)
    asked.available_until(everyone, 3600.0, 4000.0)
    asked.next_change(3600.0)
    assert asked.ever_has(devices // 10)
    # The day before the first instant, in which the process begins, and the first hours, of eight days.
    assert 1 / 8 < streams.sessions / week.sessions < 1 / 6
    asked.available(everyone, 3.1 * DAY_S)
    assert 4.1 / 8 - 0.05 < streams.sessions / week.sessions < 4.1 / 8 + 0.05
    asked.available(everyone, 7 * DAY_S - 1)
    assert streams.sessions == week.sessions


@given(
    st.floats(0.0, 0.999999), st.floats(0.0, 23.9), st.lists(st.floats(-2 * DAY_S, 9 * DAY_S), min_size=1, max_size=50)
)
def test_the_time_of_gaps_is_turned_back_as_numpy_interpolates_it(rhythm, peak_h, at):
    found = renewal.Rhythm(rhythm, peak_h)
    minutes_s = np.arange(0.0, DAY_S + 60.0, 60.0)
    table_s = found.inner_s(minutes_s)
    # At the table's own values and next to them too.
    inner_s = np.concatenate([at, table_s, np.nextafter(table_s, -np.inf), np.nextafter(table_s, np.inf)])
    days, rest_s = np.divmod(inner_s - table_s[0], DAY_S)
    expected_s = days * DAY_S + np.interp(rest_s + table_s[0], table_s, minutes_s)
    assert found.real_s(inner_s).tolist() == expected_s.tolist()
